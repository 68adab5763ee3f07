//! Traces: information, conversion, generation.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use headstart_policy::registry;
use headstart_sim::{read_selection, Filtered, Progress};
use headstart_trace::{
    convert, generate, info, open_with, selected, watched, GeneratorContext, RecordReader, Selection, TraceError,
};
use headstart_types::{Bytes, Chosen, KeyError};
use pyo3::prelude::*;
use toml::Value;

use crate::devices::table;
use crate::errors::{guarded, outside, to_python};
use crate::heed::Heed;

fn bytes(key: &str, text: &str) -> PyResult<u64> {
    match text.parse::<Bytes>() {
        Ok(Bytes(bytes)) if bytes > 0 => Ok(bytes),
        Ok(_) => Err(to_python(KeyError::new(key, "must be above zero", Bytes::ALLOWED))),
        Err(problem) => Err(to_python(KeyError::new(key, problem, Bytes::ALLOWED))),
    }
}

/// Parses a size as users write it, in bytes.
#[pyfunction]
pub fn size_bytes(text: &str) -> PyResult<u64> {
    let parsed = guarded(|| format!("size {text}"), || text.parse())?;
    parsed.map(|Bytes(bytes)| bytes).map_err(|problem| to_python(KeyError::new("size", problem, Bytes::ALLOWED)))
}

fn block_bytes(text: &str) -> PyResult<u64> {
    bytes("block_size", text)
}

/// Size of requests, for a trace with offsets but no sizes.
pub(crate) fn request_bytes(text: Option<&str>) -> PyResult<Option<u64>> {
    text.map(|text| bytes("request_size", text)).transpose()
}

/// Does `work` on the result of `open` and reports to Python how much was read; it stops with the exception that Python
/// raises, and on Ctrl-C.
fn reading<T: Send>(
    py: Python<'_>,
    what: impl FnOnce() -> String + Send,
    on_progress: Option<&Py<PyAny>>,
    open: impl FnOnce() -> Result<Box<dyn RecordReader>, TraceError> + Send,
    work: impl FnOnce(Box<dyn RecordReader>) -> Result<T, TraceError> + Send,
) -> PyResult<T> {
    outside(py, what, || {
        let heed = Heed::new(on_progress);
        let told = heed.clone();
        let watch = move |(done, total): (u64, u64)| {
            told.tell(Some(Progress { share: done as f64 / total.max(1) as f64, references: 0 }))
        };
        let result = open().and_then(|reader| work(watched(reader, Arc::new(watch))));
        heed.outcome(result, |error| matches!(error, TraceError::Stopped))
    })?
}

/// Parses the selection of a trace's requests, in the form of the key `workload.select`, as JSON.
pub(crate) fn selection(select: &str) -> PyResult<Selection> {
    let value = Value::Table(table(select).map_err(to_python)?);
    read_selection(value).map_err(to_python)
}

/// Opens the trace at `path` and reads the selected requests.
pub(crate) fn opened(
    path: &Path,
    format: &str,
    request_bytes: Option<u64>,
    selection: &Selection,
) -> Result<Box<dyn RecordReader>, TraceError> {
    selected(open_with(path, format, request_bytes)?, selection)
}

/// A summary of a trace, as JSON. With block size "object", the trace's own units are the blocks.
#[pyfunction]
#[pyo3(signature = (path, *, format="auto", block_size="8KiB", request_size=None, select="{}", on_progress=None))]
#[allow(clippy::too_many_arguments)]
pub fn trace_info(
    py: Python<'_>,
    path: PathBuf,
    format: &str,
    block_size: &str,
    request_size: Option<&str>,
    select: &str,
    on_progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let selection = selection(select)?;
    let block_bytes = if block_size == "object" { None } else { Some(block_bytes(block_size)?) };
    let request_bytes = request_bytes(request_size)?;
    let found = reading(
        py,
        || format!("trace {}", path.display()),
        on_progress.as_ref(),
        || opened(&path, format, request_bytes, &selection),
        |mut reader| info(&mut *reader, block_bytes),
    )?;
    serde_json::to_string(&found).map_err(to_python)
}

/// Whether the file is a trace of a recognised format, whose first requests can be read.
#[pyfunction]
pub fn is_trace(py: Python<'_>, path: PathBuf) -> PyResult<bool> {
    let starts = |size: Option<u64>| {
        let first = open_with(&path, "auto", size).and_then(|mut reader| reader.read(&mut Vec::new()));
        first.is_ok_and(|any| any)
    };
    // A list of offsets has no sizes and is only readable with a size of requests.
    outside(py, || format!("trace {}", path.display()), || [None, Some(4096)].into_iter().any(starts))
}

/// Writes a trace in another format ("csv" or "oracleGeneral"); returns a summary as JSON.
#[pyfunction]
#[pyo3(signature = (path, target, *, to, format="auto", block_size="8KiB", request_size=None, select="{}", on_progress=None))]
#[allow(clippy::too_many_arguments)]
pub fn trace_convert(
    py: Python<'_>,
    path: PathBuf,
    target: PathBuf,
    to: &str,
    format: &str,
    block_size: &str,
    request_size: Option<&str>,
    select: &str,
    on_progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let selection = selection(select)?;
    let (block_bytes, request_bytes) = (block_bytes(block_size)?, request_bytes(request_size)?);
    let done = reading(
        py,
        || format!("trace {} to {to}", path.display()),
        on_progress.as_ref(),
        || opened(&path, format, request_bytes, &selection),
        |mut reader| convert(&mut *reader, to, &target, block_bytes),
    )?;
    serde_json::to_string(&done).map_err(to_python)
}

/// Writes the requests that miss in a cache of `cache` ("10MiB", or blocks) in front; returns a summary as JSON.
#[pyfunction]
#[pyo3(signature = (path, target, *, cache, replacement="lru", keys="{}", to="csv", format="auto", block_size="8KiB", request_size=None, select="{}", on_progress=None))]
#[allow(clippy::too_many_arguments)]
pub fn trace_filter(
    py: Python<'_>,
    path: PathBuf,
    target: PathBuf,
    cache: &str,
    replacement: &str,
    keys: &str,
    to: &str,
    format: &str,
    block_size: &str,
    request_size: Option<&str>,
    select: &str,
    on_progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let selection = selection(select)?;
    let (block_bytes, request_bytes) = (block_bytes(block_size)?, request_bytes(request_size)?);
    let blocks = match cache.trim().parse::<u64>() {
        Ok(blocks) => blocks,
        Err(_) => bytes("cache", cache)? / block_bytes,
    };
    if blocks == 0 || blocks >= u64::from(u32::MAX) {
        let problem = format!("a cache of {blocks} blocks");
        return Err(to_python(KeyError::new("cache", problem, "at least one block, fewer than 4294967295")));
    }
    let row = registry::replacement(replacement).map_err(to_python)?;
    if row.hinted {
        let problem = format!("{replacement} knows the future");
        return Err(to_python(KeyError::new("replacement", problem, "a replacement without hints, such as lru")));
    }
    let replacement = table(keys).and_then(|keys| Chosen::read(row, keys)).map_err(to_python)?;
    let what = || format!("trace {} behind a cache of {blocks} blocks", path.display());
    let open = || opened(&path, format, request_bytes, &selection);
    let (summary, references, misses) = reading(py, what, on_progress.as_ref(), open, |reader| {
        let mut filtered = Filtered::try_new(reader, &replacement, blocks, block_bytes)?;
        let summary = convert(&mut filtered, to, &target, block_bytes)?;
        Ok((summary, filtered.references, filtered.misses))
    })?;
    let mut found = serde_json::to_value(summary).map_err(to_python)?;
    if let Some(found) = found.as_object_mut() {
        found.remove("requests");
        found.insert("references".into(), references.into());
        found.insert("misses".into(), misses.into());
    }
    Ok(found.to_string())
}

/// Removes the temporary files of running conversions when the process is about to end.
#[pyfunction]
pub fn remove_pending_files() -> PyResult<()> {
    guarded(|| "temporary files".to_owned(), headstart_trace::remove_pending_files)
}

/// Writes the output of a generator to a file; `keys` is a JSON object of the generator's keys.
#[pyfunction]
#[pyo3(signature = (generator, target, *, to="csv", keys="{}", seed=1, block_size="8KiB", on_progress=None))]
#[allow(clippy::too_many_arguments)]
pub fn trace_generate(
    py: Python<'_>,
    generator: &str,
    target: PathBuf,
    to: &str,
    keys: &str,
    seed: u64,
    block_size: &str,
    on_progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let context = GeneratorContext { seed, block_bytes: block_bytes(block_size)? };
    let keys = table(keys).map_err(to_python)?;
    let what = || format!("generator {generator}, keys {keys}, seed {seed}");
    let make = || Ok(generate(generator, keys.clone(), &context)?);
    let done = reading(py, what, on_progress.as_ref(), make, |mut reader| {
        convert(&mut *reader, to, &target, context.block_bytes)
    })?;
    serde_json::to_string(&done).map_err(to_python)
}
