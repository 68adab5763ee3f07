//! Recordings of what commands read: create, show, merge, check.

use std::cell::RefCell;
use std::ffi::OsString;
use std::path::PathBuf;

use headstart_hints::record::{record as run, Settings, Summary, BUFFER_KIB, WALK_MAX};
use headstart_host::Roots;
use headstart_trace::convert;
use headstart_trace::hints::{check, merge, Recording};
use headstart_types::{keys, Bytes};
use pyo3::prelude::*;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{json, Value};

use super::teller::Teller;
use crate::errors::{outside, to_python};

keys! {
    /// Options of `headstart record`.
    pub struct Options {
        /// The file to write.
        #[schemars(extend("x-names" = ["-o", "--output"], "x-required" = true, "x-metavar" = "FILE", "x-file" = "own"))]
        pub target: PathBuf = PathBuf::new(),
        /// The command and its arguments.
        #[schemars(extend("x-argument" = true, "x-required" = true, "x-metavar" = "-- CMD..."))]
        pub command: Vec<String> = Vec::new(),
        /// Drop the page cache and the dentry and inode caches first. This affects all programs.
        pub cold: bool = false,
        /// Size of the kernel's buffer per processor. Default: 4MiB. Increase it if events are lost.
        #[schemars(extend("x-metavar" = "SIZE", "x-min" = "8KiB"))]
        pub buffer: Option<Bytes> = None,
        /// Format of the file: "hints", or "csv" for a trace.
        #[schemars(extend("x-names" = []))]
        pub to: String = "hints".to_owned(),
        /// Mount point of tracefs, if it is not the usual one.
        #[schemars(extend("x-names" = [], "x-file" = "any"))]
        pub tracing: Option<PathBuf> = None,
    }
}

/// Statistics of a recording (docs/hints-format.md).
#[derive(Serialize, JsonSchema)]
pub struct Report {
    /// The recorded run.
    about: Value,
    /// Totals of what was read.
    summary: Value,
    /// The processes that have read something.
    processes: Value,
}

/// Runs a command and writes what it reads. `teller` reports the pid of the process.
pub fn record(options: &Options, teller: &mut Teller) -> Result<Report, String> {
    let mut roots = Roots::of_machine();
    roots.tracing = options.tracing.clone().unwrap_or(roots.tracing);
    let buffer_kib = options.buffer.map_or(BUFFER_KIB, |Bytes(bytes)| bytes / 1024);
    let command = options.command.iter().map(OsString::from).collect();
    let settings = Settings { roots, command, cold: options.cold, buffer_kib, walk_max: WALK_MAX, elapsed_max: None };
    let teller = RefCell::new(teller);
    let started = |pid: u32| {
        teller.borrow_mut().tell_now(&(pid,));
    };
    let recording = run(&settings, started, || {
        teller.borrow_mut().look();
        true
    })
    .map_err(|error| error.to_string())?;
    if teller.borrow().has_raised() {
        return Err("stopped".to_owned());
    }
    match options.to.as_str() {
        "hints" => recording.write(&options.target).map_err(|error| error.to_string())?,
        to => {
            let reader = headstart_trace::recording_reader(recording.clone(), &options.target);
            let mut reader = reader.map_err(|error| error.to_string())?;
            convert(&mut *reader, to, &options.target, recording.about.page_bytes)
                .map_err(|error| error.to_string())?;
        }
    }
    let described = described(&recording);
    let [about, summary, processes] = ["about", "summary", "processes"].map(|key| described[key].clone());
    Ok(Report { about, summary, processes })
}

/// A recording in numbers, with a summary per file.
fn described(recording: &Recording) -> Value {
    json!({"about": recording.about, "summary": Summary::of(recording), "processes": recording.processes})
}

/// The content of the recording at `path`, as JSON, including its files and reads.
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

/// The files of the recording at `path` that have changed since, as JSON.
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
