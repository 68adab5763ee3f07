//! Running scenarios.

use std::fmt::Display;
use std::path::PathBuf;
use std::sync::Arc;

use headstart_sim::{Error, Progress, Scenario, Source};
use pyo3::prelude::*;

use crate::custom::{self, PythonRows};
use crate::errors::{guarded, outside, to_python};
use crate::heed::Heed;

/// The source of a scenario.
pub fn source(path: Option<PathBuf>, json: Option<String>) -> Source {
    match (path, json) {
        (Some(path), _) => Source::File(path),
        (None, json) => Source::Json(json.unwrap_or_else(|| "{}".to_owned())),
    }
}

/// Text for the report of an internal error: the scenario and its seed.
pub fn described<'a>(source: &'a Source, overrides: &'a [String]) -> impl FnOnce() -> String + 'a {
    move || {
        let seed =
            read_with_python(source, overrides).map_or_else(|_| "unknown".to_owned(), |read| read.seed.to_string());
        let text = match source {
            Source::File(path) => path.display().to_string(),
            Source::Json(text) => text.clone(),
        };
        let set: String = overrides.iter().map(|each| format!(" --set {each}")).collect();
        format!("scenario {text}{set}, seed {seed}")
    }
}

/// Traces shared by several runs: each is decoded and hashed once.
#[pyclass(frozen, module = "headstart")]
pub struct Traces(headstart_sim::Traces);

#[pymethods]
impl Traces {
    #[new]
    fn new() -> Self {
        Self(headstart_sim::Traces::shared())
    }
}

/// Reads a scenario whose policies may be Python classes.
fn read_with_python(source: &Source, overrides: &[String]) -> Result<Scenario, Error> {
    let file = match source {
        Source::File(path) => Some(path),
        Source::Json(_) => None,
    };
    Scenario::read_with(source, overrides, &PythonRows::new(file))
}

/// Reads the scenario of a run that shares its trace through `traces`, if given.
fn read(source: &Source, overrides: &[String], traces: Option<&Py<Traces>>) -> Result<Scenario, Error> {
    custom::start_counting();
    let mut scenario = read_with_python(source, overrides)?;
    if let Some(traces) = traces {
        scenario.traces = traces.get().0.clone();
    }
    Ok(scenario)
}

/// Does `work` on the scenario and reports progress to Python; it stops with the exception that Python raises, and on
/// Ctrl-C.
pub fn watched<T: Send>(
    py: Python<'_>,
    (source, overrides): (&Source, &[String]),
    (on_progress, traces): (Option<&Py<PyAny>>, Option<&Py<Traces>>),
    work: impl FnOnce(&Scenario, &mut dyn FnMut(Progress) -> bool) -> Result<T, Error> + Send,
) -> PyResult<T> {
    outside(py, described(source, overrides), || {
        let mut scenario = read(source, overrides, traces).map_err(to_python)?;
        let heed = Heed::new(on_progress);
        let watch = heed.clone();
        // Progress does not change while the trace is read.
        scenario.traces = scenario.traces.watched(Arc::new(move |_| watch.tell(None)));
        let result = work(&scenario, &mut |progress| heed.tell(Some(progress)));
        heed.outcome(result, |error| matches!(error, Error::Stopped))
    })?
}

/// Does `work` and reports progress to Python; it stops with the exception that Python raises, and on Ctrl-C. `is_stop`
/// recognises the error of stopped work.
pub fn heeded<T, E: Display>(
    on_progress: Option<&Py<PyAny>>,
    is_stop: impl FnOnce(&E) -> bool,
    work: impl FnOnce(&mut dyn FnMut(Progress) -> bool) -> Result<T, E>,
) -> PyResult<T> {
    let heed = Heed::new(on_progress);
    let result = work(&mut |progress| heed.tell(Some(progress)));
    heed.outcome(result, is_stop)
}

/// Runs the scenario in the TOML file `path`, or in `json`, with `overrides` ("a.b=value"), and returns the result as
/// JSON. `on_progress(share_done, references)` is called regularly; the run stops with the exception that it raises,
/// and on Ctrl-C.
#[pyfunction]
#[pyo3(signature = (*, path=None, json=None, overrides=Vec::new(), on_progress=None, traces=None))]
pub fn simulate(
    py: Python<'_>,
    path: Option<PathBuf>,
    json: Option<String>,
    overrides: Vec<String>,
    on_progress: Option<Py<PyAny>>,
    traces: Option<Py<Traces>>,
) -> PyResult<String> {
    let asked = (&source(path, json), &*overrides);
    let told = (on_progress.as_ref(), traces.as_ref());
    let report = watched(py, asked, told, |scenario, progress| headstart_sim::simulate(scenario, progress))?;
    serde_json::to_string(&report).map_err(to_python)
}

/// Runs a scenario as `simulate` does; returns the result as JSON, and the events as a JSON list.
#[pyfunction]
#[pyo3(signature = (*, path=None, json=None, overrides=Vec::new(), on_progress=None, events_max=headstart_sim::EVENTS_MAX))]
pub fn timeline(
    py: Python<'_>,
    path: Option<PathBuf>,
    json: Option<String>,
    overrides: Vec<String>,
    on_progress: Option<Py<PyAny>>,
    events_max: usize,
) -> PyResult<(String, String)> {
    let asked = (&source(path, json), &*overrides);
    let (report, events) = watched(py, asked, (on_progress.as_ref(), None), |scenario, progress| {
        headstart_sim::timeline(scenario, events_max, progress)
    })?;
    let report = serde_json::to_string(&report).map_err(to_python)?;
    Ok((report, serde_json::to_string(&events).map_err(to_python)?))
}

/// The scenario with every default, as TOML. Defaults that depend on the run are comments at its end.
#[pyfunction]
#[pyo3(signature = (*, path=None, json=None, overrides=Vec::new()))]
pub fn explain(path: Option<PathBuf>, json: Option<String>, overrides: Vec<String>) -> PyResult<String> {
    let source = source(path, json);
    let scenario = guarded(described(&source, &overrides), || {
        let scenario = read_with_python(&source, &overrides)?;
        headstart_sim::check_devices(&scenario).map(|()| scenario)
    })?
    .map_err(to_python)?;
    let mut text = toml::to_string(&scenario.table()).map_err(to_python)?;
    for (key, default) in scenario.computed_defaults() {
        text.push_str(&format!("# {key}: {default}\n"));
    }
    Ok(text)
}

/// What the trace or generator of the scenario carries, as JSON: `{"addresses": false, ...}`, or null.
#[pyfunction]
#[pyo3(signature = (*, path=None, json=None, overrides=Vec::new(), traces=None))]
pub fn carries(
    py: Python<'_>,
    path: Option<PathBuf>,
    json: Option<String>,
    overrides: Vec<String>,
    traces: Option<Py<Traces>>,
) -> PyResult<String> {
    let asked = (&source(path, json), &*overrides);
    let carried = watched(py, asked, (None, traces.as_ref()), |scenario, _| headstart_sim::carries(scenario))?;
    serde_json::to_string(&carried).map_err(to_python)
}

/// Whether the processes of the scenario's trace read concurrently.
#[pyfunction]
#[pyo3(signature = (*, path=None, json=None, overrides=Vec::new(), traces=None))]
pub fn reads_at_once(
    py: Python<'_>,
    path: Option<PathBuf>,
    json: Option<String>,
    overrides: Vec<String>,
    traces: Option<Py<Traces>>,
) -> PyResult<bool> {
    let asked = (&source(path, json), &*overrides);
    watched(py, asked, (None, traces.as_ref()), |scenario, _| headstart_sim::reads_at_once(scenario))
}

/// A lower bound on the elapsed time of the scenario under any policy, as JSON. `on_progress` as in `simulate`.
#[pyfunction]
#[pyo3(signature = (*, path=None, json=None, overrides=Vec::new(), on_progress=None, traces=None))]
pub fn lower_bound(
    py: Python<'_>,
    path: Option<PathBuf>,
    json: Option<String>,
    overrides: Vec<String>,
    on_progress: Option<Py<PyAny>>,
    traces: Option<Py<Traces>>,
) -> PyResult<String> {
    let asked = (&source(path, json), &*overrides);
    let told = (on_progress.as_ref(), traces.as_ref());
    let bound = watched(py, asked, told, |scenario, _| headstart_sim::lower_bound(scenario))?;
    serde_json::to_string(&bound).map_err(to_python)
}
