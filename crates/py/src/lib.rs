//! `headstart._core`: JSON in, JSON out. The Python package adds types and texts.
//!
//! Every function that runs or reads releases the GIL while it works. All errors of the core become `HeadstartError`,
//! whose text is one line.

mod cached_file;
mod catalog;
mod curve;
mod custom;
mod devices;
mod errors;
mod heed;
mod linux;
mod model;
mod replay;
mod simulation;
mod traces;

use pyo3::prelude::*;

#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("HeadstartError", module.py().get_type::<errors::HeadstartError>())?;
    module.add("InternalError", module.py().get_type::<errors::InternalError>())?;
    module.add_function(wrap_pyfunction!(errors::panic_for_tests, module)?)?;
    module.add_function(wrap_pyfunction!(errors::without_credentials, module)?)?;
    module.add_function(wrap_pyfunction!(catalog::catalog, module)?)?;
    module.add_function(wrap_pyfunction!(catalog::schema, module)?)?;
    module.add_function(wrap_pyfunction!(catalog::metrics, module)?)?;
    module.add_function(wrap_pyfunction!(devices::device_show, module)?)?;
    module.add_function(wrap_pyfunction!(devices::device_probe, module)?)?;
    module.add_function(wrap_pyfunction!(devices::device_survey, module)?)?;
    module.add_function(wrap_pyfunction!(devices::device_import_diskspecs, module)?)?;
    module.add_function(wrap_pyfunction!(replay::device_replay, module)?)?;
    module.add_function(wrap_pyfunction!(cached_file::kernel_pages, module)?)?;
    module.add_class::<simulation::Traces>()?;
    module.add_class::<custom::Cache>()?;
    module.add_class::<custom::PyHints>()?;
    module.add_class::<custom::Request>()?;
    module.add_function(wrap_pyfunction!(custom::checks::conformance, module)?)?;
    module.add_function(wrap_pyfunction!(custom::call::cost, module)?)?;
    module.add_function(wrap_pyfunction!(simulation::simulate, module)?)?;
    module.add_function(wrap_pyfunction!(curve::curve, module)?)?;
    module.add_function(wrap_pyfunction!(simulation::timeline, module)?)?;
    module.add_function(wrap_pyfunction!(simulation::explain, module)?)?;
    module.add_function(wrap_pyfunction!(model::model_competitive, module)?)?;
    module.add_function(wrap_pyfunction!(model::model_defeat, module)?)?;
    module.add_function(wrap_pyfunction!(model::model_file_system, module)?)?;
    module.add_function(wrap_pyfunction!(model::model_scenario, module)?)?;
    module.add_function(wrap_pyfunction!(model::model_open, module)?)?;
    module.add_function(wrap_pyfunction!(model::model_trace, module)?)?;
    module.add_function(wrap_pyfunction!(model::model_terms, module)?)?;
    module.add_function(wrap_pyfunction!(simulation::carries, module)?)?;
    module.add_function(wrap_pyfunction!(simulation::reads_at_once, module)?)?;
    module.add_function(wrap_pyfunction!(simulation::lower_bound, module)?)?;
    module.add_function(wrap_pyfunction!(traces::size_bytes, module)?)?;
    module.add_function(wrap_pyfunction!(traces::is_trace, module)?)?;
    module.add_function(wrap_pyfunction!(traces::trace_info, module)?)?;
    module.add_function(wrap_pyfunction!(traces::trace_convert, module)?)?;
    module.add_function(wrap_pyfunction!(traces::trace_filter, module)?)?;
    module.add_function(wrap_pyfunction!(traces::trace_generate, module)?)?;
    module.add_function(wrap_pyfunction!(traces::remove_pending_files, module)?)?;
    linux::add(module)
}
