//! A real device's read-ahead: show, apply, restore, watch.

use std::path::PathBuf;
use std::time::Duration;

use headstart_host::{Clock, RealClock, Roots};
use headstart_tune::{
    forget_gone, Ended, Error, Pace, Report, Settings, Tuner, Wanted, Watch, WatchSettings, DEFAULT_STATE,
};
use headstart_types::{read_table, Bytes, KeyError, Nanos};
use pyo3::prelude::*;
use serde::Deserialize;
use toml::Table;

use crate::devices::table;
use crate::errors::{outside, to_python};

/// What is missing where there is no profile.
const PROFILE: &str = "--profile with a name of `headstart list devices`, or with the path of a profile, which \
                       `headstart profile` measures and writes";
/// How often a watch looks at what has happened and reports to Python.
const REFRESH: Duration = Duration::from_millis(100);

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
    /// Of a watch: how long, and where metrics go.
    duration: Option<Nanos>,
    openmetrics: Option<PathBuf>,
    /// Where the file systems of the kernel are, for tests.
    sys: Option<PathBuf>,
    proc: Option<PathBuf>,
    tracing: Option<PathBuf>,
    run: Option<PathBuf>,
}

impl Question {
    fn read(text: &str) -> Result<Self, KeyError> {
        read_table(table(text)?)
    }

    fn settings(&self) -> Settings {
        let machine = Roots::of_machine();
        let roots = Roots {
            sys: self.sys.clone().unwrap_or(machine.sys),
            proc: self.proc.clone().unwrap_or(machine.proc),
            tracing: self.tracing.clone().unwrap_or(machine.tracing),
            run: self.run.clone().unwrap_or(machine.run),
        };
        let state = self.state.clone().unwrap_or_else(|| DEFAULT_STATE.into());
        Settings { roots, device: self.device.clone(), state, force: self.force }
    }

    fn asks_for_nothing(&self) -> bool {
        self.profile.is_none() && self.depth.is_none() && self.keys.is_empty()
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

    fn watch_settings(&self) -> Result<WatchSettings, KeyError> {
        let Some(profile) = self.profile.clone() else {
            return Err(KeyError::new("profile", "is missing: to follow an arm takes its seek curve", PROFILE));
        };
        if self.depth.is_some() {
            return Err(KeyError::new("depth", "a watch finds it out", "--profile alone"));
        }
        let (keys, openmetrics) = (self.keys.clone(), self.openmetrics.clone());
        Ok(WatchSettings { profile, keys, pace: Pace::default(), openmetrics })
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
    outside(
        py,
        || format!("tune {action}, {question:?}"),
        || {
            let report = match action {
                "restore" => restore(&question),
                "dry-run" | "apply" => {
                    let nothing = action == "dry-run" && question.asks_for_nothing();
                    let wanted = if nothing { None } else { Some(question.wanted().map_err(to_python)?) };
                    let tuner = Tuner::new(question.settings()).map_err(to_python)?;
                    match wanted {
                        Some(wanted) if action == "apply" => tuner.apply(&wanted),
                        wanted => tuner.show(wanted.as_ref()),
                    }
                }
                _ => Err(KeyError::new("action", format!("\"{action}\""), "dry-run, apply, restore").into()),
            };
            report.map(|report| report.to_json()).map_err(to_python)
        },
    )?
}

/// Follows what a device does and sets its read-ahead by that, until `duration` is over, the device goes, another program sets
/// the number, Ctrl-C comes, or `on_progress` stops it: that is called with the status as JSON at once and 10 times a
/// second, and stops it by returning what is true, or by an exception. What was found is written at the end, however that
/// comes. Returns the last status.
#[pyfunction]
#[pyo3(signature = (question, *, on_progress=None))]
pub fn tune_watch(py: Python<'_>, question: &str, on_progress: Option<Py<PyAny>>) -> PyResult<String> {
    let question = Question::read(question).map_err(to_python)?;
    outside(
        py,
        || format!("tune --watch, {question:?}"),
        || {
            let settings = question.watch_settings().map_err(to_python)?;
            let tuner = Tuner::new(question.settings()).map_err(to_python)?;
            let mut watch = Watch::start(tuner, settings).map_err(to_python)?;
            let clock = RealClock::new(1, 1.0);
            clock.enter(0);
            let ended = loop {
                let now = clock.now();
                if let Some(ended) = watch.look(now).map_err(to_python)? {
                    break ended;
                }
                // An exception drops the watch, which writes what was found.
                if Python::with_gil(|py| stops(py, on_progress.as_ref(), &watch))? {
                    break Ended::Stopped;
                }
                match question.duration {
                    Some(duration) if now >= duration => break Ended::Time,
                    Some(duration) => std::thread::sleep(REFRESH.min(Duration::from_nanos((duration - now).0))),
                    None => std::thread::sleep(REFRESH),
                }
            };
            watch.end(ended).map(|status| status.to_json()).map_err(to_python)
        },
    )?
}

/// Tells Python what has been seen, and hears whether that is all.
fn stops(py: Python<'_>, on_progress: Option<&Py<PyAny>>, watch: &Watch) -> PyResult<bool> {
    py.check_signals()?;
    match on_progress {
        Some(on_progress) => on_progress.call1(py, (watch.status().to_json(),))?.is_truthy(py),
        None => Ok(false),
    }
}
