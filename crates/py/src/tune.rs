//! A real device's read-ahead: show, apply, restore.

use std::path::PathBuf;

use headstart_live::tune::{forget_gone, Error, Report, Roots, Settings, Tuner, Wanted, DEFAULT_STATE};
use headstart_types::{typed_keys, Bytes, KeyError};
use pyo3::prelude::*;
use serde::Deserialize;
use toml::Table;

use crate::devices::table;
use crate::errors::to_python;

/// What is wanted of a device.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Question {
    device: PathBuf,
    profile: Option<String>,
    #[serde(default)]
    keys: Table,
    depth: Option<Bytes>,
    state: Option<PathBuf>,
    #[serde(default)]
    force: bool,
    /// Where the file systems of the kernel are, for tests.
    sys: Option<PathBuf>,
    proc: Option<PathBuf>,
    tracing: Option<PathBuf>,
}

impl Question {
    fn read(text: &str) -> Result<Self, KeyError> {
        typed_keys(table(text)?)
    }

    fn settings(&self) -> Settings {
        let machine = Roots::of_machine();
        let roots = Roots {
            sys: self.sys.clone().unwrap_or(machine.sys),
            proc: self.proc.clone().unwrap_or(machine.proc),
            tracing: self.tracing.clone().unwrap_or(machine.tracing),
        };
        let state = self.state.clone().unwrap_or_else(|| DEFAULT_STATE.into());
        Settings { roots, device: self.device.clone(), state }
    }

    fn wanted(&self) -> Result<Wanted, KeyError> {
        match (&self.profile, self.depth) {
            (Some(name), None) => Ok(Wanted::Profile { name: name.clone(), keys: self.keys.clone() }),
            (None, Some(depth)) if self.keys.is_empty() => Ok(Wanted::Depth(depth)),
            (None, Some(_)) => Err(KeyError::new("set", "a depth has no keys", "--set with --profile")),
            (Some(_), Some(_)) => Err(KeyError::new("depth", "there is a profile too", "one of the two")),
            (None, None) => {
                let allowed =
                    "--profile with a name of `headstart list devices`, or with the path of a profile, which \
                               `headstart profile` measures and writes; or --depth SIZE";
                Err(KeyError::new("profile", "is missing: how deep is not known", allowed))
            }
        }
    }
}

fn restore(question: &Question) -> Result<Report, Error> {
    let tuner = Tuner::new(question.settings()).or_else(|error| forget_gone(&question.settings()).and(Err(error)))?;
    tuner.restore(question.force)
}

/// Shows a device's read-ahead beside what it should be (`action` "dry-run"), writes that ("apply"), or writes what was
/// found before ("restore"). `question` is a JSON object. Returns the report as JSON.
#[pyfunction]
pub fn tune(py: Python<'_>, action: &str, question: &str) -> PyResult<String> {
    let question = Question::read(question).map_err(to_python)?;
    py.allow_threads(|| {
        let report = match action {
            "restore" => restore(&question),
            "dry-run" | "apply" => {
                let wanted = question.wanted().map_err(to_python)?;
                let tuner = Tuner::new(question.settings()).map_err(to_python)?;
                if action == "apply" {
                    tuner.apply(&wanted)
                } else {
                    tuner.show(&wanted)
                }
            }
            _ => Err(KeyError::new("action", format!("\"{action}\""), "dry-run, apply, restore").into()),
        };
        report.map(|report| report.to_json()).map_err(to_python)
    })
}
