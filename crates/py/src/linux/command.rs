//! Commands of this machine: options as JSON in, a report as JSON out. A command is a row of [`COMMANDS`]: its crate
//! has the struct of its options, its report, and the code that does the work.

use headstart_hints::forecast::Forecast;
use headstart_serve::profile;
use headstart_tune::command as tune;
use headstart_types::{options, read_options, schema_of, KeyError, Keys};
use pyo3::prelude::*;
use serde_json::{json, Value as Json};
use toml::Table;

use super::teller::Teller;
use super::{forecast, record};
use crate::devices::table;
use crate::errors::{outside, to_python};

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
    let mut teller = Teller::new(on_progress);
    let report = outside(py, || format!("{name} {given}"), || (command.run)(options, &mut teller))??;
    Ok(report.to_string())
}

/// The JSON Schemas of a command's options and of its report: `{"options": {...}, "report": {...}}`.
#[pyfunction]
pub fn command_schema(py: Python<'_>, name: &str) -> PyResult<String> {
    let command = found(name)?;
    outside(py, || name.to_owned(), || (command.schema)().to_string())
}
