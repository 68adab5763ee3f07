//! The one place where errors of the core become Python exceptions.

use std::cell::RefCell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

use pyo3::create_exception;
use pyo3::exceptions::PyValueError;
use pyo3::PyErr;

create_exception!(
    headstart,
    HeadstartError,
    PyValueError,
    "A mistake in a scenario, a trace or an argument, in one line."
);
create_exception!(headstart, InternalError, HeadstartError, "A fault of headstart itself, in one line.");

/// Any error of the core as `HeadstartError`.
pub fn to_python(error: impl std::fmt::Display) -> PyErr {
    HeadstartError::new_err(error.to_string())
}

thread_local! {
    /// What a panic of this thread says: `None` outside of [`guarded`], where panics are printed as ever.
    static PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
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

/// Runs `work`; a panic in it, which is a fault of headstart and not of its user, becomes one `InternalError` that says
/// what was run.
pub fn guarded<T>(what: impl FnOnce() -> String, work: impl FnOnce() -> T) -> Result<T, PyErr> {
    keep_panics();
    let outer = PANIC.replace(Some(String::new()));
    // Nothing of what the work has changed is looked at after a panic.
    let outcome = panic::catch_unwind(AssertUnwindSafe(work));
    let said = PANIC.replace(outer).unwrap_or_default();
    outcome.map_err(|_| {
        let line = format!("internal error: {said}; {}; please report it", what());
        InternalError::new_err(line.split_whitespace().collect::<Vec<_>>().join(" "))
    })
}
