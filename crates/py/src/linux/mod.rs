//! What runs on this machine rather than in the simulator, and needs Linux. [`add`] is the only list, on all systems.

#[cfg(target_os = "linux")]
mod command;
#[cfg(target_os = "linux")]
mod forecast;
#[cfg(target_os = "linux")]
mod hints;
#[cfg(target_os = "linux")]
mod live;
#[cfg(target_os = "linux")]
mod record;
#[cfg(target_os = "linux")]
mod teller;

use pyo3::prelude::*;

/// Adds the functions that need Linux. On other systems they exist and raise an error.
macro_rules! functions {
    ($to:expr, $($module:ident::$name:ident),+ $(,)?) => {
        $(
            #[cfg(target_os = "linux")]
            $to.add_function(pyo3::wrap_pyfunction!($module::$name, $to)?)?;
            #[cfg(not(target_os = "linux"))]
            $to.add(stringify!($name), elsewhere::refusing(stringify!($name), $to.py())?)?;
        )+
    };
}

/// Adds all functions to the module.
pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    functions!(
        module,
        command::command,
        hints::run_command,
        hints::run_hinted,
        live::play,
        record::hints_check,
        record::hints_merge,
        record::hints_show,
    );
    #[cfg(target_os = "linux")]
    {
        module.add("COMMANDS", command::names())?;
        module.add_function(pyo3::wrap_pyfunction!(hints::run_options, module)?)?;
        module.add_function(pyo3::wrap_pyfunction!(command::command_schema, module)?)?;
    }
    #[cfg(not(target_os = "linux"))]
    elsewhere::add(module)?;
    Ok(())
}

/// Systems that are not Linux.
#[cfg(not(target_os = "linux"))]
mod elsewhere {
    use pyo3::prelude::*;
    use pyo3::types::{PyCFunction, PyDict, PyTuple};

    use crate::errors::HeadstartError;

    /// A function that always raises an error.
    pub fn refusing<'py>(name: &'static str, py: Python<'py>) -> PyResult<Bound<'py, PyCFunction>> {
        PyCFunction::new_closure(py, None, None, move |given: &Bound<'_, PyTuple>, _: Option<&Bound<'_, PyDict>>| {
            let first =
                given.get_item(0).and_then(|first| first.extract::<String>()).ok().filter(|_| name == "command");
            let command = first.as_deref().or(name.split('_').next()).unwrap_or(name);
            let allowed = "allowed here: what simulates, such as simulate, compare, advise, curve";
            Err::<(), PyErr>(HeadstartError::new_err(format!("{command}: needs Linux; {allowed}")))
        })
    }

    #[pyfunction]
    fn run_options() -> &'static str {
        r#"{"command": "CMD...", "options": []}"#
    }

    #[pyfunction]
    fn command_schema(_name: &str) -> &'static str {
        r#"{"options": {}, "report": {}}"#
    }

    /// What the package needs when it is loaded.
    pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("COMMANDS", Vec::<&str>::new())?;
        module.add_function(pyo3::wrap_pyfunction!(run_options, module)?)?;
        module.add_function(pyo3::wrap_pyfunction!(command_schema, module)?)
    }
}
