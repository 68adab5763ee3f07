//! Runs a command while prefetching what it is going to read.

use std::ffi::OsString;
use std::path::PathBuf;

use headstart_device::build_device;
use headstart_hints::{command, run, Error, HintList, Settings, Status};
use headstart_host::Roots;
use headstart_trace::hints::Recording;
use headstart_types::{read_table, Bytes};
use pyo3::prelude::*;
use serde::Deserialize;
use serde_json::json;
use toml::Table;

use crate::devices::table;
use crate::errors::{outside, to_python};

/// How to run a command.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Question {
    command: Vec<String>,
    hints: PathBuf,
    policy: String,
    #[serde(default)]
    keys: Table,
    budget: Option<Bytes>,
    #[serde(default)]
    trusted: bool,
    device: Option<String>,
    /// Mount point of tracefs, for tests.
    tracing: Option<PathBuf>,
}

/// Runs a command with the hints of a recording; `question` is a JSON object. Returns its exit and the report as JSON:
/// `code` or `signal`, `report`, `openmetrics`; or `not_started` and `missing` if the program does not exist.
#[pyfunction]
pub fn run_hinted(py: Python<'_>, question: &str) -> PyResult<String> {
    outside(
        py,
        || "run".to_owned(),
        || {
            let mut question: Question = read_table(table(question).map_err(to_python)?).map_err(to_python)?;
            let recording = Recording::read(&question.hints).map_err(to_python)?;
            let list = HintList::try_from(&recording)
                .map_err(|error| to_python(format!("{}: {error}", question.hints.display())))?;
            let machine = Roots::of_machine();
            let roots = Roots { tracing: question.tracing.take().unwrap_or(machine.tracing.clone()), ..machine };
            let arm = match &question.device {
                None => None,
                Some(name) => Some(build_device(name, Table::new()).map_err(to_python)?.drive_facts().is_some()),
            };
            let budget = question.budget.map(|bytes| bytes.0);
            let settings = Settings {
                command: question.command.into_iter().map(Into::into).collect(),
                list,
                row: command::hinted_policy(&question.policy).map_err(to_python)?,
                keys: question.keys,
                budget_bytes: budget.unwrap_or(0),
                trusted: question.trusted,
                arm,
                roots,
            };
            let answer = match run(settings) {
                Ok((status, report)) => {
                    let (code, signal) = match status {
                        Status::Code(code) => (Some(code), None),
                        Status::Signal(signal) => (None, Some(signal)),
                    };
                    let (line, openmetrics) = (report.line(), report.to_openmetrics());
                    json!({"code": code, "signal": signal, "report": report, "line": line, "openmetrics": openmetrics})
                }
                Err(error @ Error::Start { .. }) => {
                    json!({"not_started": error.to_string(), "missing": error.is_missing()})
                }
                Err(error) => return Err(to_python(error)),
            };
            Ok(answer.to_string())
        },
    )?
}

/// The whole of `headstart run` with the arguments `words`; docs/run.md. Returns the exit status, ends this process by
/// the signal that ended the command, or replaces this process by the command if there is nothing to do for it.
#[pyfunction]
pub fn run_command(py: Python<'_>, words: Vec<OsString>) -> PyResult<i32> {
    let status = outside(py, || "run".to_owned(), || command::main(&words))?;
    match status {
        Status::Code(code) => Ok(code),
        Status::Signal(_) => command::end(status),
    }
}

/// The options of `headstart run` as JSON.
#[pyfunction]
pub fn run_options(py: Python<'_>) -> PyResult<String> {
    outside(py, || "run".to_owned(), || json!({"command": command::COMMAND, "options": command::OPTIONS}).to_string())
}
