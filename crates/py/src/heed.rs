//! Lets long work report progress to Python and learn whether to continue: it stops on Ctrl-C, and if the progress
//! function raises. The work may ask as often as it likes; Python is called fifty times a second.

use std::fmt::Display;
use std::sync::{Arc, Mutex};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use headstart_sim::Progress;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;

use crate::errors::to_python;

/// Minimum time between two calls of Python.
const EVERY: Duration = Duration::from_millis(20);

/// Progress of one run; clones share it.
#[derive(Clone)]
pub struct Heed {
    state: Arc<Mutex<State>>,
    /// The caller's thread: Python handles signals in no other, and read-ahead threads end with it.
    owner: ThreadId,
}

struct State {
    on_progress: Option<Py<PyAny>>,
    last: Option<Progress>,
    /// `None` before the first call.
    told: Option<Instant>,
    raised: Option<PyErr>,
}

impl Heed {
    /// `on_progress(share_done, references)` is called regularly.
    pub fn new(on_progress: Option<&Py<PyAny>>) -> Self {
        let on_progress = on_progress.map(|each| Python::with_gil(|py| each.clone_ref(py)));
        let state = State { on_progress, last: None, told: None, raised: None };
        Self { state: Arc::new(Mutex::new(state)), owner: thread::current().id() }
    }

    /// Whether the work should continue. `progress` has changed since the last call; without any, only signals are
    /// checked.
    #[expect(clippy::disallowed_methods, reason = "it says how often Python is called, and decides nothing in a run")]
    pub fn tell(&self, progress: Option<Progress>) -> bool {
        if thread::current().id() != self.owner {
            return true;
        }
        let Ok(mut state) = self.state.lock() else { return false };
        let State { on_progress, last, told, raised } = &mut *state;
        *last = progress.or(*last);
        if raised.is_none() && told.is_none_or(|told| told.elapsed() >= EVERY) {
            *told = Some(Instant::now());
            *raised = Python::with_gil(|py| call(py, on_progress.as_ref(), *last)).err();
        }
        raised.is_none()
    }

    /// The result of completed work: an exception raised by Python takes precedence over the work's own error.
    pub fn outcome<T, E: Display>(&self, result: Result<T, E>, is_stop: impl FnOnce(&E) -> bool) -> PyResult<T> {
        let raised = self.state.lock().ok().and_then(|mut state| state.raised.take());
        match (result, raised) {
            (_, Some(raised)) => Err(raised),
            (Ok(done), None) => Ok(done),
            (Err(error), None) if is_stop(&error) => Err(PyKeyboardInterrupt::new_err("stopped")),
            (Err(error), None) => Err(to_python(error)),
        }
    }
}

fn call(py: Python<'_>, on_progress: Option<&Py<PyAny>>, progress: Option<Progress>) -> PyResult<()> {
    py.check_signals()?;
    if let (Some(on_progress), Some(progress)) = (on_progress, progress) {
        on_progress.call1(py, (progress.share, progress.references))?;
    }
    Ok(())
}
