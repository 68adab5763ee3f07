//! The block server, until it is to end.

use std::path::PathBuf;

use headstart_serve::server::TlsFiles;
use headstart_serve::{run, Report, Settings};
use headstart_types::KeyError;
use pyo3::prelude::*;

use crate::devices::table;
use crate::errors::{outside, to_python};

/// Serves `exports`, names and backings, behind a level with the keys `level` (a JSON object) of a scenario's `[[level]]`, until
/// Ctrl-C comes or `on_progress` ends it: that is called with the report as JSON as soon as clients can connect and 10 times a
/// second, and ends it by returning what is true, or by an exception. Returns the report at the end.
#[pyfunction]
#[pyo3(signature = (exports, *, listen, level, page, allow_remote=false, insecure=false, tls_cert=None, tls_key=None, tls_clients=None, writable=false, direct=false, no_lock=false, depth=None, connections=None, memory=None, record=None, hints=None, hint_policy=None, spill=None, openmetrics=None, log=None, on_progress=None))]
#[allow(clippy::too_many_arguments)] // One for each option.
pub fn serve(
    py: Python<'_>,
    exports: Vec<(String, String)>,
    listen: String,
    level: &str,
    page: String,
    allow_remote: bool,
    insecure: bool,
    tls_cert: Option<PathBuf>,
    tls_key: Option<PathBuf>,
    tls_clients: Option<PathBuf>,
    writable: bool,
    direct: bool,
    no_lock: bool,
    depth: Option<u32>,
    connections: Option<u32>,
    memory: Option<String>,
    record: Option<PathBuf>,
    hints: Option<PathBuf>,
    hint_policy: Option<String>,
    spill: Option<String>,
    openmetrics: Option<String>,
    log: Option<PathBuf>,
    on_progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let level = table(level).map_err(to_python)?;
    let tls = match (tls_cert, tls_key, tls_clients) {
        (Some(cert), Some(key), clients) => Some(TlsFiles { cert, key, clients }),
        (None, None, None) => None,
        (None, ..) => {
            return Err(to_python(KeyError::new("tls_cert", "is missing", "tls_cert and tls_key, or neither")))
        }
        (_, None, _) => {
            return Err(to_python(KeyError::new("tls_key", "is missing", "tls_cert and tls_key, or neither")))
        }
    };
    let settings = Settings {
        exports,
        listen,
        allow_remote,
        insecure,
        tls,
        level,
        page,
        writable,
        direct,
        no_lock,
        depth,
        connections,
        memory,
        record,
        hints,
        hint_policy,
        spill,
        openmetrics,
        log,
    };
    outside(
        py,
        || format!("serve {settings:?}"),
        || {
            let mut raised = None;
            let ended = run(&settings, &mut |report| {
                let stops = Python::with_gil(|py| stops(py, on_progress.as_ref(), report));
                stops.map_or_else(
                    |exception| {
                        raised = Some(exception);
                        false
                    },
                    |stops| !stops,
                )
            });
            match raised {
                Some(raised) => Err(raised),
                None => ended.map_err(to_python).and_then(|report| as_json(&report)),
            }
        },
    )?
}

fn as_json(report: &Report) -> PyResult<String> {
    serde_json::to_string(report).map_err(to_python)
}

/// Tells Python what has been done, and hears whether that is all.
fn stops(py: Python<'_>, on_progress: Option<&Py<PyAny>>, report: &Report) -> PyResult<bool> {
    py.check_signals()?;
    match on_progress {
        Some(on_progress) => on_progress.call1(py, (as_json(report)?,))?.is_truthy(py),
        None => Ok(false),
    }
}
