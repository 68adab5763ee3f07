//! What a command of this machine tells Python while it runs.

use std::fmt::Display;
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use serde::Serialize;
use serde_json::Value as Json;

use crate::errors::to_python;

/// Minimum time between two calls of Python.
const EVERY: Duration = Duration::from_millis(20);

/// Reports progress of a command to Python.
pub struct Teller {
    on_progress: Option<Py<PyAny>>,
    told: Option<Instant>,
    raised: Option<PyErr>,
}

impl Teller {
    pub fn new(on_progress: Option<Py<PyAny>>) -> Self {
        Self { on_progress, told: None, raised: None }
    }

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
    pub fn outcome<R: Serialize, E: Display>(&mut self, ended: Result<R, E>) -> PyResult<Json> {
        match self.raised.take() {
            Some(raised) => Err(raised),
            None => serde_json::to_value(ended.map_err(to_python)?).map_err(to_python),
        }
    }
}
