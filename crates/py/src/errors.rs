//! The one place where errors of the core become Python exceptions.

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

/// What `text`, the JSON of an argument, says. What cannot be read becomes an error at `key`, in words of ours: the parser's
/// name types and columns of a text that the user has never seen.
pub fn from_json<T: serde::de::DeserializeOwned>(key: &str, text: &str) -> Result<T, KeyError> {
    let allowed = "text, numbers, true and false, lists and tables";
    serde_json::from_str(text).map_err(|_| KeyError::new(key, "has a value that no key takes, such as null", allowed))
}

/// `text` without the passwords and the queries of the URLs in it.
#[pyfunction]
pub fn without_credentials(text: &str) -> String {
    headstart_types::without_credentials(text)
}

/// Any error of the core as `HeadstartError`.
pub fn to_python(error: impl std::fmt::Display) -> PyErr {
    HeadstartError::new_err(headstart_types::without_credentials(&error.to_string()))
}

thread_local! {
    /// What a panic of this thread says: `None` outside of [`guarded`], where panics are printed as usual.
    static PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Whether all work fails, for tests.
static PLANTED: AtomicBool = AtomicBool::new(false);

/// While `on`, every function of this module fails as if headstart had a fault, so that tests can check how it is reported.
#[pyfunction]
pub fn panic_for_tests(on: bool) {
    PLANTED.store(on, Ordering::Relaxed);
}

/// Panics within [`guarded`] are kept, not printed.
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

/// Runs `work` as [`guarded`] does while other threads of Python go on: every function of this module does its work here.
pub fn outside<T: Send>(
    py: Python<'_>,
    what: impl FnOnce() -> String + Send,
    work: impl FnOnce() -> T + Send,
) -> PyResult<T> {
    py.allow_threads(|| guarded(what, work))
}

/// Runs `work`; a panic in it, which is a fault of headstart and not of its user, becomes one `InternalError` that says
/// what was run. An exception that a policy written in Python has raised is returned as it is.
pub fn guarded<T>(what: impl FnOnce() -> String, work: impl FnOnce() -> T) -> Result<T, PyErr> {
    keep_panics();
    let outer = PANIC.replace(Some(String::new()));
    // Nothing of what the work has changed is looked at after a panic.
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

/// Runs a check that panics with what it has found, which is returned in one line; an exception of Python is one of its own.
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
