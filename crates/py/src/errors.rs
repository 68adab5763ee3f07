//! The one place where errors of the core become a Python exception.

use pyo3::create_exception;
use pyo3::exceptions::PyValueError;
use pyo3::PyErr;

create_exception!(_core, HeadstartError, PyValueError, "A mistake in a scenario, a trace or an argument, in one line.");

/// Any error of the core as `HeadstartError`.
pub fn to_python(error: impl std::fmt::Display) -> PyErr {
    HeadstartError::new_err(error.to_string())
}
