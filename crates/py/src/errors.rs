//! Converts errors of the core into Python exceptions; the only place that does.

use std::cell::RefCell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Once;

use headstart_types::KeyError;
use pyo3::create_exception;
use pyo3::exceptions::PyValueError;
use pyo3::{pyfunction, PyErr, PyResult, Python};

use crate::custom::Raised;

create_exception!(
    headstart,
    HeadstartError,
    PyValueError,
    "A mistake in a scenario, a trace or an argument, in one line."
);
create_exception!(headstart, InternalError, HeadstartError, "A fault of headstart itself, in one line.");

/// Parses `text`, the JSON of an argument. A failure becomes an error at `key` with a message of our own, since the
/// parser's names types and columns of a text that the user has never seen.
pub fn from_json<T: serde::de::DeserializeOwned>(key: &str, text: &str) -> Result<T, KeyError> {
    let allowed = "text, numbers, true and false, lists and tables";
    serde_json::from_str(text).map_err(|_| KeyError::new(key, "has a value that no key takes, such as null", allowed))
}

/// `text` without the passwords and queries of its URLs.
#[pyfunction]
pub fn without_credentials(text: &str) -> String {
    headstart_types::without_credentials(text)
}

/// Converts any error of the core to `HeadstartError`.
pub fn to_python(error: impl std::fmt::Display) -> PyErr {
    HeadstartError::new_err(headstart_types::without_credentials(&error.to_string()))
}

thread_local! {
    /// Message of this thread's panic; `None` outside of [`guarded`], where panics are printed as usual.
    static PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Whether all work fails, for tests.
static PLANTED: AtomicBool = AtomicBool::new(false);

/// While `on`, every function of this module fails as if headstart had a bug, so that tests can check how that is
/// reported.
#[pyfunction]
pub fn panic_for_tests(on: bool) {
    PLANTED.store(on, Ordering::Relaxed);
}

/// Stores panics within [`guarded`] instead of printing them.
fn keep_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let print = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            let kept = PANIC.with_borrow_mut(|kept| kept.as_mut().map(|kept| *kept = panic.to_string()).is_some());
            if !kept {
                print(panic);
            }
        }));
    });
}

/// Like [`guarded`], with the GIL released: every function of this module does its work here.
pub fn outside<T: Send>(
    py: Python<'_>,
    what: impl FnOnce() -> String + Send,
    work: impl FnOnce() -> T + Send,
) -> PyResult<T> {
    py.allow_threads(|| guarded(what, work))
}

/// Runs `work`; a panic, which is a bug of headstart and not the user's fault, becomes an `InternalError` that says
/// what was run. An exception raised by a policy written in Python is returned unchanged.
pub fn guarded<T>(what: impl FnOnce() -> String, work: impl FnOnce() -> T) -> Result<T, PyErr> {
    keep_panics();
    let outer = PANIC.replace(Some(String::new()));
    // Nothing that the work has changed is used after a panic.
    let outcome = panic::catch_unwind(AssertUnwindSafe(|| {
        assert!(!PLANTED.load(Ordering::Relaxed), "planted\nby a test");
        work()
    }));
    let said = PANIC.replace(outer).unwrap_or_default();
    outcome.map_err(|payload| match payload.downcast::<Raised>() {
        Ok(raised) => raised.0,
        Err(_) => {
            let line = format!("internal error: {said}; {}; please report it", what());
            InternalError::new_err(headstart_types::without_credentials(
                &line.split_whitespace().collect::<Vec<_>>().join(" "),
            ))
        }
    })
}

/// Runs a check that panics with its finding, which is returned in one line; a Python exception is returned separately.
pub fn asserted<T>(work: impl FnOnce() -> T) -> Result<Result<T, String>, PyErr> {
    keep_panics();
    let outer = PANIC.replace(Some(String::new()));
    let outcome = panic::catch_unwind(AssertUnwindSafe(work));
    PANIC.set(outer);
    let payload = match outcome {
        Ok(done) => return Ok(Ok(done)),
        Err(payload) => payload.downcast::<Raised>().map(|raised| raised.0),
    };
    let payload = match payload {
        Ok(raised) => return Err(raised),
        Err(payload) => payload,
    };
    let text = payload.downcast_ref::<String>().map(String::as_str).or(payload.downcast_ref::<&str>().copied());
    Ok(Err(text.unwrap_or("a check failed").split_whitespace().collect::<Vec<_>>().join(" ")))
}
