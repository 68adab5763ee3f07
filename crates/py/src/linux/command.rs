//! Commands of this machine: options as JSON in, a report as JSON out. A command is a row of [`COMMANDS`]: its crate
//! has the struct of its options, its report, and the code that does the work.

use std::fmt::Display;
use std::time::{Duration, Instant};

use headstart_hints::forecast::Forecast;
use headstart_serve::profile;
use headstart_tune::command as tune;
use headstart_types::{options, read_options, schema_of, KeyError, Keys};
use pyo3::prelude::*;
use serde::Serialize;
use serde_json::{json, Value as Json};
use toml::Table;

use super::{forecast, record};
use crate::devices::table;
use crate::errors::{outside, to_python};

/// Minimum time between two calls of Python.
const EVERY: Duration = Duration::from_millis(20);

struct Command {
    name: &'static str,
    schema: fn() -> Json,
    run: fn(Table, &mut Teller) -> PyResult<Json>,
}

macro_rules! command {
    ($name:literal, $keys:ty => $report:ty, $run:expr) => {
        Command {
            name: $name,
            schema: || json!({"options": options(<$keys>::schema()), "report": schema_of::<$report>()}),
            run: |given, teller| {
                let run: fn(&$keys, &mut Teller) -> Result<$report, _> = $run;
                let keys = read_options::<$keys>(given).map_err(to_python)?;
                let ended = run(&keys, teller);
                teller.outcome(ended)
            },
        }
    };
}

const COMMANDS: &[Command] = &[
    command!("serve", headstart_serve::Settings => headstart_serve::Report, |settings, teller| {
        headstart_serve::run(settings, &mut |report| teller.tell_now(report))
    }),
    command!("store", headstart_store::Settings => headstart_store::Report, |settings, teller| {
        headstart_store::run(settings, &mut |report| teller.tell_now(report))
    }),
    command!("play", headstart_play::Settings => headstart_play::Report, |settings, teller| {
        headstart_play::play(settings, &mut |told| teller.tell(&told))
    }),
    command!("tune", tune::Options => headstart_tune::Report, |options, _| tune::tune(options)),
    command!("tune-watch", tune::Options => headstart_tune::Status, |options, teller| {
        tune::watch(options, &mut |status| teller.tell_now(status))
    }),
    command!("emulate", headstart_emulate::Settings => headstart_emulate::Ended, |settings, teller| {
        headstart_emulate::emulate(settings, &mut |statistics| teller.tell_now(statistics))
    }),
    command!("profile", profile::Options => profile::Report, |options, teller| {
        profile::measured(options, &mut |told| teller.tell(&told))
    }),
    command!("record", record::Options => record::Report, record::record),
    command!("forecast", forecast::Options => Forecast, |options, teller| {
        forecast::forecast(options, &mut |share| teller.tell(&(share,)))
    }),
];

/// Reports progress of a command to Python.
pub struct Teller {
    on_progress: Option<Py<PyAny>>,
    told: Option<Instant>,
    raised: Option<PyErr>,
}

impl Teller {
    /// Calls Python with `progress` as JSON, at most 50 times a second, and checks its signals; returns whether the
    /// command should continue. It stops if the function returns a true value or raises, and on Ctrl-C.
    pub fn tell(&mut self, progress: &impl Serialize) -> bool {
        self.call(|py, on_progress| match on_progress {
            Some(call) => call.call1(py, (serde_json::to_string(progress).map_err(to_python)?,))?.is_truthy(py),
            None => Ok(false),
        })
    }

    /// Like [`Teller::tell`], without a minimum time since the last call: the last report must not be lost.
    pub fn tell_now(&mut self, progress: &impl Serialize) -> bool {
        self.told = None;
        self.tell(progress)
    }

    /// Only checks Python's signals.
    pub fn look(&mut self) -> bool {
        self.call(|_, _| Ok(false))
    }

    /// Whether Python has raised an exception.
    pub fn has_raised(&self) -> bool {
        self.raised.is_some()
    }

    #[expect(clippy::disallowed_methods, reason = "it says how often Python is called, and decides nothing in a run")]
    fn call(&mut self, call: impl FnOnce(Python<'_>, Option<&Py<PyAny>>) -> PyResult<bool>) -> bool {
        if self.has_raised() {
            return false;
        }
        if self.told.is_some_and(|told| told.elapsed() < EVERY) {
            return true;
        }
        self.told = Some(Instant::now());
        let stops = Python::with_gil(|py| {
            py.check_signals()?;
            call(py, self.on_progress.as_ref())
        });
        stops.map_or_else(
            |exception| {
                self.raised = Some(exception);
                false
            },
            |stops| !stops,
        )
    }

    /// The report of a completed command; a Python exception takes precedence over its own error.
    fn outcome<R: Serialize, E: Display>(&mut self, ended: Result<R, E>) -> PyResult<Json> {
        match self.raised.take() {
            Some(raised) => Err(raised),
            None => serde_json::to_value(ended.map_err(to_python)?).map_err(to_python),
        }
    }
}

pub fn names() -> Vec<&'static str> {
    COMMANDS.iter().map(|each| each.name).collect()
}

fn found(name: &str) -> PyResult<&'static Command> {
    let names = COMMANDS.iter().map(|each| each.name);
    let unknown = || to_python(KeyError::unknown("command", "command", name, names));
    COMMANDS.iter().find(|each| each.name == name).ok_or_else(unknown)
}

/// Runs a command of this machine with the options `given`, a JSON object, and returns its report as JSON.
/// `on_progress` receives progress as JSON; it ends the command by returning a true value or by raising.
#[pyfunction]
#[pyo3(signature = (name, given, *, on_progress=None))]
pub fn command(py: Python<'_>, name: &str, given: &str, on_progress: Option<Py<PyAny>>) -> PyResult<String> {
    let (command, options) = (found(name)?, table(given).map_err(to_python)?);
    let mut teller = Teller { on_progress, told: None, raised: None };
    let report = outside(py, || format!("{name} {given}"), || (command.run)(options, &mut teller))??;
    Ok(report.to_string())
}

/// The JSON Schemas of a command's options and of its report: `{"options": {...}, "report": {...}}`.
#[pyfunction]
pub fn command_schema(py: Python<'_>, name: &str) -> PyResult<String> {
    let command = found(name)?;
    outside(py, || name.to_owned(), || (command.schema)().to_string())
}
