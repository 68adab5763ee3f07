//! Misses over the size of a cache.

use std::path::PathBuf;

use headstart_policy::registry;
use headstart_sim::{CurveKeys, CurveSize};
use headstart_trace::reuse::Sample;
use headstart_types::{Bytes, Chosen, KeyError};
use pyo3::prelude::*;
use serde::Deserialize;
use toml::Table;

use crate::errors::{from_json, to_python};
use crate::simulation::{source, watched, Traces};

/// A request from Python.
#[derive(Deserialize)]
struct Asked {
    /// "10MiB", "1280" (blocks) or "5%".
    sizes: Vec<String>,
    rate: Option<f64>,
    sample_blocks: Option<usize>,
    seeds: u64,
    admit: Option<String>,
    /// Names and keys.
    replacements: Vec<(String, Table)>,
}

fn size(text: &str) -> Result<CurveSize, KeyError> {
    let text = text.trim();
    let wrong = |problem: String| KeyError::new("cache", problem, "a size such as 10MiB, blocks such as 1280, or 5%");
    if let Some(share) = text.strip_suffix('%') {
        let share: f64 = share.trim().parse().map_err(|_| wrong(format!("\"{text}\"")))?;
        // More than 100 % equals 100 %, and is allowed.
        return if share > 0.0 && share.is_finite() {
            Ok(CurveSize::Share(share / 100.0))
        } else {
            Err(wrong(format!("\"{text}\"")))
        };
    }
    match (text.parse::<u64>(), text.parse::<Bytes>()) {
        (Ok(blocks), _) => Ok(CurveSize::Blocks(blocks)),
        (_, Ok(Bytes(bytes))) => Ok(CurveSize::Bytes(bytes)),
        (_, Err(_)) => Err(wrong(format!("\"{text}\""))),
    }
}

impl Asked {
    fn keys(self) -> Result<CurveKeys, KeyError> {
        let sample = match (self.rate, self.sample_blocks) {
            (Some(rate), _) if !(rate > 0.0 && rate <= 1.0) => {
                return Err(KeyError::new("rate", format!("{rate} is no share"), "a number above 0 and at most 1"));
            }
            (Some(_), Some(_)) => return Err(KeyError::new("sample", "given beside rate", "one of the two")),
            (Some(rate), None) => Sample::Rate(rate),
            (None, Some(blocks)) => Sample::Blocks(blocks),
            (None, None) => Sample::All,
        };
        let admit = self.admit.map(|text| text.parse::<Bytes>().map_err(|problem| (text, problem)));
        let admitted_max = match admit.transpose() {
            Ok(admit) => admit.map(|Bytes(bytes)| bytes),
            Err((text, _)) => return Err(KeyError::new("admit", format!("\"{text}\" is no size"), Bytes::ALLOWED)),
        };
        let sizes = self.sizes.iter().map(|text| size(text)).collect::<Result<_, _>>()?;
        let replacements = self.replacements.into_iter();
        let replacements =
            replacements.map(|(name, keys)| registry::replacement(&name).and_then(|row| Chosen::read(row, keys)));
        Ok(CurveKeys {
            sizes,
            sample,
            seeds: self.seeds,
            admitted_max,
            replacements: replacements.collect::<Result<_, _>>()?,
        })
    }
}

/// The misses of a scenario's references over the size of the cache, as JSON; `asked` is JSON too. `on_progress` as in
/// `simulate`.
#[pyfunction]
#[pyo3(signature = (*, path=None, json=None, overrides=Vec::new(), asked, on_progress=None, traces=None))]
pub fn curve(
    py: Python<'_>,
    path: Option<PathBuf>,
    json: Option<String>,
    overrides: Vec<String>,
    asked: String,
    on_progress: Option<Py<PyAny>>,
    traces: Option<Py<Traces>>,
) -> PyResult<String> {
    let keys = from_json::<Asked>("curve", &asked).and_then(Asked::keys).map_err(to_python)?;
    let asked = (&source(path, json), &*overrides);
    let told = (on_progress.as_ref(), traces.as_ref());
    let curve = watched(py, asked, told, |scenario, progress| headstart_sim::curve(scenario, &keys, progress))?;
    serde_json::to_string(&curve).map_err(to_python)
}
