//! A read-ahead written in Python, alone or combined with its own replacement.

use headstart_policy::readahead::{Asked, Cached, Found, Integrated, Run};
use headstart_policy::{ReadAhead, Replacement, View};
use headstart_types::{Block, Nanos, Outcome, Position};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::call::{wrong, Fault, Method};
use super::replacement::{shown, PyReplacement};
use super::view::{showing_cached, with_cached};

/// A request as a level sees it: `count` blocks of `file`, from `first`.
#[pyclass(frozen, get_all, module = "headstart")]
pub struct Request {
    /// File, device, or 0 if the trace does not distinguish them.
    file: u32,
    /// First block, counted from the start of the file.
    first: u64,
    /// Blocks, at least 1.
    count: u32,
    /// The block after the last.
    end: u64,
    /// The process at the first level, the level above at others.
    client: u32,
    /// Time in nanoseconds since the start of the run.
    now_ns: u64,
    /// Blocks of the file, or of the device if there are no files; `None` if unknown.
    file_blocks: Option<u64>,
    /// State of each block: "ready", "ready-prefetched", "unready", "unready-prefetched", "absent".
    found: Py<PyTuple>,
}

#[pymethods]
impl Request {
    /// Whether block `index` of the file is in the cache or in flight.
    fn is_cached(&self, index: u64) -> PyResult<bool> {
        with_cached(|cached| cached.is_cached(self.file, index))
    }

    /// Whether block `index` of the file is in the cache.
    fn is_resident(&self, index: u64) -> PyResult<bool> {
        with_cached(|cached| cached.is_resident(self.file, index))
    }

    fn __repr__(&self) -> String {
        format!("<headstart.Request: file {}, blocks {} to {}>", self.file, self.first, self.end)
    }
}

pub struct PyReadAhead {
    requested: Method,
    evicted: Method,
}

fn word(found: Found) -> &'static str {
    match found {
        Found::Ready => "ready",
        Found::ReadyPrefetched => "ready-prefetched",
        Found::Unready => "unready",
        Found::UnreadyPrefetched => "unready-prefetched",
        Found::Absent => "absent",
    }
}

impl PyReadAhead {
    /// `object` is of the class that the user names `class`.
    pub fn new(object: &Bound<'_, PyAny>, class: &str) -> PyResult<Self> {
        let method = |name| Method::of(object, class, "Readahead", name);
        Ok(Self { requested: method("requested")?, evicted: method("evicted")? })
    }
}

const ALLOWED: &str = "allowed: blocks of the file, as numbers from 0 and ranges of step 1";

/// Parses the returned runs.
fn runs(file: u32, answer: &Bound<'_, PyAny>, most: usize, prefetch: &mut Vec<Run>) -> Result<(), Fault> {
    if answer.is_none() || push_range(file, answer, prefetch)? {
        return Ok(());
    }
    let Ok(items) = answer.try_iter() else {
        return wrong(format!("returned {}; {ALLOWED}", shown(answer)));
    };
    for (at, item) in items.enumerate() {
        let item = item?;
        if at >= most {
            return wrong(format!("named more than {most} blocks; {ALLOWED}"));
        }
        if push_range(file, &item, prefetch)? {
            continue;
        }
        match item.extract::<i128>() {
            Ok(first) if first >= 0 => prefetch.push(Run { file, first: clamped(first), count: 1 }),
            _ => return wrong(format!("named {}; {ALLOWED}", shown(&item))),
        }
    }
    Ok(())
}

/// A block beyond all numbers is beyond the end of its file, like the last number.
fn clamped(index: i128) -> u64 {
    u64::try_from(index).unwrap_or(u64::MAX)
}

/// Parses `item` as a range of blocks; false if it is none.
fn push_range(file: u32, item: &Bound<'_, PyAny>, prefetch: &mut Vec<Run>) -> Result<bool, Fault> {
    if item.get_type().name()? != "range" {
        return Ok(false);
    }
    let bound = |name| item.getattr(name)?.extract::<i128>();
    let (start, stop, step) = (bound("start")?, bound("stop")?, bound("step")?);
    if start < 0 || step != 1 {
        return wrong(format!("named {}; {ALLOWED}", shown(item)));
    }
    prefetch.push(Run::between(file, clamped(start), clamped(stop.max(start))));
    Ok(true)
}

impl ReadAhead for PyReadAhead {
    fn asked(&mut self, now: Nanos, asked: &Asked, found: &[Found], cached: &dyn Cached, prefetch: &mut Vec<Run>) {
        let Asked { file, first, count, client, .. } = *asked;
        let found: Vec<&str> = found.iter().map(|found| word(*found)).collect();
        let most = 4 * cached.frames() as usize + 1024;
        let request = Python::with_gil(|py| {
            let found = PyTuple::new(py, found)?.unbind();
            let file_blocks = cached.file_blocks(file);
            let end = asked.end();
            Py::new(py, Request { file, first, count, end, client, now_ns: now.0, file_blocks, found })
        });
        let request = request.unwrap_or_else(|error| super::call::raise(error));
        showing_cached(cached, || self.requested.call((request,), |answer| runs(file, answer, most, prefetch)));
    }

    fn evicted(&mut self, file: u32, index: u64, unused: bool) {
        self.evicted.tell((file, index, unused));
    }
}

/// A class that is both: one object used through both traits.
pub struct PyIntegrated {
    read_ahead: PyReadAhead,
    replacement: PyReplacement,
    placed: Method,
}

impl PyIntegrated {
    /// `object` is of the class that the user names `class`.
    pub fn new(object: &Bound<'_, PyAny>, class: &str) -> PyResult<Self> {
        Ok(Self {
            read_ahead: PyReadAhead::new(object, class)?,
            replacement: PyReplacement::new(object, class)?,
            placed: Method::of(object, class, "Readahead", "placed")?,
        })
    }
}

impl ReadAhead for PyIntegrated {
    fn asked(&mut self, now: Nanos, asked: &Asked, found: &[Found], cached: &dyn Cached, prefetch: &mut Vec<Run>) {
        self.read_ahead.asked(now, asked, found, cached, prefetch);
    }

    fn evicted(&mut self, file: u32, index: u64, unused: bool) {
        self.read_ahead.evicted(file, index, unused);
    }
}

impl Replacement for PyIntegrated {
    fn grow(&mut self, blocks: usize) {
        self.replacement.grow(blocks);
    }

    fn victim(&mut self, incoming: Block, view: &View<'_>) -> Option<Block> {
        self.replacement.victim(incoming, view)
    }

    fn inserted(&mut self, block: Block) {
        self.replacement.inserted(block);
    }

    fn referenced(&mut self, position: Position, block: Block, outcome: Outcome) {
        self.replacement.referenced(position, block, outcome);
    }

    fn removed(&mut self, block: Block) {
        self.replacement.removed(block);
    }
}

impl Integrated for PyIntegrated {
    fn placed(&mut self, block: Block, file: u32, index: u64) {
        self.replacement.grow(block.index() + 1);
        self.placed.tell((block.0, file, index));
    }
}
