//! Calls methods of Python objects, counts and times them, and adds class and method to their errors.

use std::cell::Cell;
use std::panic::resume_unwind;
use std::time::Instant;

use pyo3::call::PyCallArgs;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::PyTraceback;

use crate::errors::HeadstartError;

/// A Python exception that unwinds through the simulator.
pub struct Raised(pub PyErr);

/// Why a call failed.
pub enum Fault {
    /// The method raised an exception.
    Raised(PyErr),
    /// The method returned something that a policy may not return: what is wrong, and what is allowed.
    Wrong(String),
}

impl From<PyErr> for Fault {
    fn from(error: PyErr) -> Self {
        Fault::Raised(error)
    }
}

pub fn wrong<T>(what: impl Into<String>) -> Result<T, Fault> {
    Err(Fault::Wrong(what.into()))
}

thread_local! {
    /// Number of calls in this thread's run, and nanoseconds spent in them.
    static COST: Cell<(u64, u64)> = const { Cell::new((0, 0)) };
}

/// Resets the counters of this thread at the start of a run.
pub fn start_counting() {
    COST.set((0, 0));
}

/// Number of calls of Python methods in this thread's last run, and nanoseconds spent in them.
#[pyfunction]
#[pyo3(name = "python_cost")]
pub fn cost() -> (u64, u64) {
    COST.get()
}

#[expect(clippy::disallowed_methods, reason = "what a call costs is shown and decides nothing")]
fn now() -> Instant {
    Instant::now()
}

/// A method of a user's object.
pub struct Method {
    /// The name of the class as the user wrote it.
    class: String,
    name: &'static str,
    /// `None` if the class inherits the base class's method, which does nothing.
    bound: Option<Py<PyAny>>,
}

impl Method {
    /// Method `name` of `object`, whose class is named `class` by the user and derives from `base` of
    /// `headstart.custom`.
    pub fn of(object: &Bound<'_, PyAny>, class: &str, base: &str, name: &'static str) -> PyResult<Self> {
        let own = object.get_type().getattr(name)?;
        let inherited = object.py().import("headstart.custom")?.getattr(base)?.getattr(name)?;
        let bound = if own.is(&inherited) { None } else { Some(object.getattr(name)?.unbind()) };
        Ok(Self { class: class.to_owned(), name, bound })
    }

    /// Whether the class overrides the method.
    pub fn is_there(&self) -> bool {
        self.bound.is_some()
    }

    /// Calls the method if the class overrides it, and passes the result to `read`. An error unwinds.
    pub fn call<T>(
        &self,
        args: impl for<'py> PyCallArgs<'py>,
        read: impl FnOnce(&Bound<'_, PyAny>) -> Result<T, Fault>,
    ) -> Option<T> {
        let bound = self.bound.as_ref()?;
        let started = now();
        let answer = Python::with_gil(|py| {
            let answer = bound.bind(py).call1(args).map_err(Fault::Raised).and_then(|answer| read(&answer));
            answer.map_err(|fault| self.described(py, fault))
        });
        let (calls, time_ns) = COST.get();
        let took_ns = u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX);
        COST.set((calls + 1, time_ns.saturating_add(took_ns)));
        Some(answer.unwrap_or_else(|error| raise(error)))
    }

    /// Calls a method whose result is ignored.
    pub fn tell(&self, args: impl for<'py> PyCallArgs<'py>) {
        self.call(args, |_| Ok(()));
    }

    /// Ends the run: the method returned something wrong.
    pub fn refuse(&self, what: &str) -> ! {
        raise(Python::with_gil(|py| self.described(py, Fault::Wrong(what.to_owned()))))
    }

    fn described(&self, py: Python<'_>, fault: Fault) -> PyErr {
        described(py, &format!("{}.{}", self.class, self.name), fault)
    }
}

/// Ends the run with a Python exception.
pub fn raise(error: PyErr) -> ! {
    resume_unwind(Box::new(Raised(error)))
}

/// An error of `what`, a class or a method, in one line; Ctrl-C is passed on unchanged.
pub fn described(py: Python<'_>, what: &str, fault: Fault) -> PyErr {
    let error = match fault {
        Fault::Wrong(wrong) => return HeadstartError::new_err(format!("{what} {wrong}")),
        Fault::Raised(error) if error.is_instance_of::<PyKeyboardInterrupt>(py) => return error,
        Fault::Raised(error) => error,
    };
    let kind = error.get_type(py).name().map_or_else(|_| "error".to_owned(), |name| name.to_string());
    let said = error.value(py).str().map_or_else(|_| String::new(), |text| text.to_string());
    let place = error.traceback(py).and_then(|traceback| place(&traceback).ok()).unwrap_or_default();
    let line = format!("{what}: {kind}: {said}{place}");
    let line = HeadstartError::new_err(line.split_whitespace().collect::<Vec<_>>().join(" "));
    line.set_cause(py, Some(error));
    line
}

/// The place where an exception was raised: " (mine.py, line 7)".
fn place(traceback: &Bound<'_, PyTraceback>) -> PyResult<String> {
    let mut last = traceback.clone().into_any();
    loop {
        let next = last.getattr("tb_next")?;
        if next.is_none() {
            break;
        }
        last = next;
    }
    let file: String = last.getattr("tb_frame")?.getattr("f_code")?.getattr("co_filename")?.extract()?;
    let line: u32 = last.getattr("tb_lineno")?.extract()?;
    let name = std::path::Path::new(&file).file_name().map_or(file.clone(), |name| name.to_string_lossy().into_owned());
    Ok(format!(" ({name}, line {line})"))
}
