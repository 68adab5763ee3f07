//! The conformance suites for Python classes.

use std::sync::Arc;

use headstart_policy::registry::Context;
use headstart_policy::{conformance as checks, registry, Hints};
use pyo3::exceptions::PyAssertionError;
use pyo3::prelude::*;

use super::call::start_counting;
use super::rows::PythonRows;
use crate::errors::{asserted, to_python};

/// Checks the class `name` with its default keys, in hundreds of small systems.
#[pyfunction]
pub fn conformance(py: Python<'_>, name: &str) -> PyResult<()> {
    let rows = PythonRows::new(None);
    py.allow_threads(|| {
        start_counting();
        let checked = asserted(|| {
            let class = rows.conforming(name)?;
            if class.replaces() {
                checks::replacement(|system| {
                    let row = registry::REPLACEMENTS[0];
                    class.replacement(&Context::plain(row, system.frames, system.initial.clone(), system.blocks))
                });
            }
            if class.reads_ahead() {
                checks::read_ahead(|context| class.read_ahead(context));
            }
            if class.decides() {
                headstart_engine::conformance::policy(|system| {
                    let blocks = system.disk_of.len();
                    let mut context =
                        Context::plain(registry::REPLACEMENTS[0], system.frames, system.initial(), blocks);
                    context.disks = system.disks;
                    context.disk_of = system.disk_of();
                    context.hints = Some(Arc::new(Hints::all(system.blocks())));
                    class.policy(&context)
                });
            }
            Ok::<_, headstart_types::KeyError>(())
        })?;
        match checked {
            Ok(done) => done.map_err(to_python),
            Err(broken) => Err(PyAssertionError::new_err(format!("{name}: {broken}"))),
        }
    })
}
