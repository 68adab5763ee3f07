//! Recordings of what commands read: made, shown, merged, checked.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use headstart_hints::record::{record as run, Settings, Summary, BUFFER_KIB, WALK_MAX};
use headstart_host::Roots;
use headstart_trace::convert;
use headstart_trace::hints::{check, merge, Recording};
use headstart_types::{Bytes, KeyError};
use pyo3::prelude::*;
use serde_json::json;

use crate::errors::{outside, to_python};

/// How often Python looks at its signals.
const REFRESH: Duration = Duration::from_millis(50);

/// Runs `command`, records what it reads into `target` in the format `to` ("hints" or "csv"), and returns exit status and
/// summary as JSON. `on_start` is called with the number of the process. `tracing` is where tracefs is, for tests.
#[pyfunction]
#[pyo3(signature = (command, target, *, to="hints", cold=false, buffer=None, tracing=None, on_start=None))]
#[allow(clippy::too_many_arguments, clippy::disallowed_methods)]
pub fn record(
    py: Python<'_>,
    command: Vec<OsString>,
    target: PathBuf,
    to: &str,
    cold: bool,
    buffer: Option<&str>,
    tracing: Option<PathBuf>,
    on_start: Option<Py<PyAny>>,
) -> PyResult<String> {
    let buffer_kib = match buffer.map(str::parse::<Bytes>) {
        None => BUFFER_KIB,
        Some(Ok(Bytes(bytes))) if bytes >= 8192 => bytes / 1024,
        Some(_) => return Err(to_python(KeyError::new("buffer", "is no size of 8 KiB or more", Bytes::ALLOWED))),
    };
    let mut roots = Roots::of_machine();
    roots.tracing = tracing.unwrap_or(roots.tracing);
    let settings = Settings { roots, command, cold, buffer_kib, walk_max: WALK_MAX, elapsed_max: None };
    outside(
        py,
        || format!("record {settings:?}"),
        || {
            let (mut raised, mut looked) = (None, Instant::now());
            let started = |pid: u32| {
                Python::with_gil(|py| on_start.as_ref().map(|call| call.call1(py, (pid,))).transpose()).map(|_| ())
            };
            let between = || {
                if raised.is_none() && looked.elapsed() >= REFRESH {
                    looked = Instant::now();
                    raised = Python::with_gil(|py| py.check_signals()).err();
                }
                true
            };
            let recording = run(&settings, |pid| drop(started(pid)), between).map_err(to_python)?;
            if let Some(raised) = raised {
                return Err(raised);
            }
            match to {
                "hints" => recording.write(&target).map_err(to_python)?,
                _ => {
                    let mut reader =
                        headstart_trace::recording_reader(recording.clone(), &target).map_err(to_python)?;
                    convert(&mut *reader, to, &target, recording.about.page_bytes).map_err(to_python)?;
                }
            }
            Ok(described(&recording).to_string())
        },
    )?
}

/// A recording in numbers, with what it holds of each file.
fn described(recording: &Recording) -> serde_json::Value {
    json!({"about": recording.about, "summary": Summary::of(recording), "processes": recording.processes})
}

/// What the recording at `path` holds, as JSON; its files and reads, too.
#[pyfunction]
pub fn hints_show(py: Python<'_>, path: PathBuf) -> PyResult<String> {
    let shown = outside(
        py,
        || format!("recording {}", path.display()),
        || -> Result<_, headstart_trace::TraceError> {
            let recording = Recording::read(&path)?;
            let mut shown = described(&recording);
            shown["files"] = recording
                .files
                .iter()
                .map(|file| {
                    json!({"kind": file.kind, "path": file.path.to_string_lossy(), "device": format!("{}:{}", file.major, file.minor),
                           "inode": file.inode, "size_bytes": file.size_bytes, "mtime_ns": file.mtime_ns})
                })
                .collect();
            shown["reads"] = recording
                .reads
                .iter()
                .map(|read| {
                    json!({"time_ns": read.time_ns, "wait_ns": read.wait_ns, "process": read.process, "file": read.file,
                           "start": read.start, "pages": read.pages, "kind": read.kind, "hit": read.hit})
                })
                .collect();
            Ok(shown.to_string())
        },
    )?;
    shown.map_err(to_python)
}

/// Merges the recordings at `paths` into `target`: ranges that are in at least `share` of them. Returns JSON.
#[pyfunction]
pub fn hints_merge(py: Python<'_>, target: PathBuf, paths: Vec<PathBuf>, share: f64) -> PyResult<String> {
    let merged = outside(
        py,
        || format!("merge of {paths:?}"),
        || -> Result<_, headstart_trace::TraceError> {
            let recordings = paths.iter().map(|path| Recording::read(path)).collect::<Result<Vec<_>, _>>()?;
            let merged = merge(&recordings, share)?;
            merged.write(&target)?;
            Ok(described(&merged).to_string())
        },
    )?;
    merged.map_err(to_python)
}

/// The files of the recording at `path` that are no longer as they were, as JSON.
#[pyfunction]
pub fn hints_check(py: Python<'_>, path: PathBuf) -> PyResult<String> {
    let checked = outside(
        py,
        || format!("recording {}", path.display()),
        || -> Result<_, headstart_trace::TraceError> {
            let recording = Recording::read(&path)?;
            let stale: Vec<_> = check(&recording)
                .into_iter()
                .map(|stale| {
                    let file = &recording.files[stale.file];
                    json!({"path": file.path.to_string_lossy(), "change": stale.change, "bytes": stale.bytes})
                })
                .collect();
            let files = recording.files.iter().filter(|file| !file.path.as_os_str().is_empty()).count();
            Ok(json!({"files": files, "stale": stale}).to_string())
        },
    )?;
    checked.map_err(to_python)
}
