//! Measurements of real devices.

use std::path::PathBuf;

use headstart_profile::{profile as measure, Profile, Progress, Settings};
use headstart_serve::profile as object;
use headstart_types::Nanos;
use pyo3::prelude::*;

use crate::errors::{outside, to_python};

/// Measures the block device or file at `path` through direct reads, or the object at a URL through requests for ranges, for about `time_ns`; `name` is written into the profile,
/// `seed` is that of the random places. `on_progress` is called 10 times a second with the share done, 0 to 1, and what is
/// under way; an exception of it ends the measurement. Returns what was found, as JSON, and the profile, TOML.
#[pyfunction]
#[pyo3(signature = (path, *, name, time_ns, seed, on_progress=None))]
pub fn profile(
    py: Python<'_>,
    path: PathBuf,
    name: &str,
    time_ns: u64,
    seed: u64,
    on_progress: Option<Py<PyAny>>,
) -> PyResult<(String, String)> {
    let settings = Settings { time: Nanos(time_ns), seed };
    outside(
        py,
        || format!("profile {}, {settings:?}", path.display()),
        || {
            let mut raised = None;
            let tell = |progress: Progress| {
                let told = Python::with_gil(|py| {
                    py.check_signals()?;
                    match &on_progress {
                        Some(tell) => tell.call1(py, (progress.share, progress.phase.name())).map(|_| ()),
                        None => Ok(()),
                    }
                });
                let goes_on = told.is_ok() && raised.is_none();
                raised = raised.take().or(told.err());
                goes_on
            };
            let measured = match path.to_str().filter(|url| object::is_object(url)) {
                Some(url) => object::profile(url, name, &settings, tell),
                None => measure(&path, name, &settings, tell),
            };
            match (raised, measured) {
                (Some(raised), _) => Err(raised),
                (None, Ok(Profile { findings, toml, .. })) => {
                    Ok((serde_json::to_string(&findings).map_err(to_python)?, toml))
                }
                (None, Err(error)) => Err(to_python(error)),
            }
        },
    )?
}
