//! What hints would save, simulated.

use std::path::PathBuf;

use headstart_hints::forecast::{forecast as run, Error, Settings, OPEN};
use headstart_host::Roots;
use headstart_trace::hints::Recording;
use headstart_types::{read_table, Bytes};
use pyo3::prelude::*;
use serde::Deserialize;
use toml::Table;

use crate::devices::table;
use crate::errors::{outside, to_python};
use headstart_hints::command::hinted_policy;

/// What is asked.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Question {
    hints: PathBuf,
    /// What is prefetched, where that is not what `hints` says.
    prefetch: Option<PathBuf>,
    device: Option<String>,
    #[serde(default)]
    device_keys: Table,
    scheduler: Option<String>,
    #[serde(default)]
    policies: Vec<String>,
    #[serde(default)]
    budgets: Vec<Bytes>,
    read_ahead: Option<Bytes>,
    #[serde(default)]
    trusted: bool,
    #[serde(default)]
    cached: bool,
}

/// Forecasts the command of a recording, of which `question` is a JSON object, with and without prefetching. `progress` is called with
/// the share done. Returns JSON.
#[pyfunction]
#[pyo3(signature = (question, *, progress=None))]
pub fn forecast_hints(py: Python<'_>, question: &str, progress: Option<Py<PyAny>>) -> PyResult<String> {
    outside(
        py,
        || "forecast".to_owned(),
        || {
            let question: Question = read_table(table(question).map_err(to_python)?).map_err(to_python)?;
            let recording = Recording::read(&question.hints).map_err(to_python)?;
            let prefetch = question.prefetch.as_deref().map(Recording::read).transpose().map_err(to_python)?;
            let policies = question.policies.iter().map(|name| hinted_policy(name)).collect::<Result<_, _>>();
            let settings = Settings {
                device: question.device.map(|name| (name, question.device_keys)),
                scheduler: question.scheduler,
                policies: policies.map_err(to_python)?,
                budgets: question.budgets.iter().map(|budget| budget.0).collect(),
                read_ahead_bytes: question.read_ahead.map(|bytes| bytes.0),
                trusted: question.trusted,
                hints: prefetch,
                cached: question.cached,
                open: OPEN,
                roots: Roots::of_machine(),
            };
            let mut raised = None;
            let between = |share: f64| {
                let called = Python::with_gil(|py| {
                    py.check_signals()?;
                    progress.as_ref().map(|call| call.call1(py, (share,))).transpose()
                });
                raised = called.err();
                raised.is_none()
            };
            let forecast = run(&recording, &settings, between).map_err(|error| match error {
                Error::Empty => to_python(format!("{}: {error}", question.hints.display())),
                Error::Hints(_) => {
                    let path = question.prefetch.as_ref().unwrap_or(&question.hints);
                    to_python(format!("{}: {error}", path.display()))
                }
                error => to_python(error),
            })?;
            match raised {
                Some(raised) => Err(raised),
                None => Ok(serde_json::to_string(&forecast).expect("numbers and texts")),
            }
        },
    )?
}
