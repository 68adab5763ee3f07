//! What a method may inspect while it is called. The objects hold no state: outside of a call they raise.

use headstart_policy::readahead::Cached;
use headstart_policy::{BlockState, View};
use headstart_types::Block;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use scoped_tls_hkt::scoped_thread_local;

scoped_thread_local!(static VIEW: for<'a> &'a View<'a>);
scoped_thread_local!(static CACHED: for<'a> &'a (dyn Cached + 'a));

/// Runs `work` with `view` shown by [`Cache`].
pub fn showing<T>(view: &View<'_>, work: impl FnOnce() -> T) -> T {
    VIEW.set(view, work)
}

/// Runs `work` with `cached` shown by requests.
pub fn showing_cached<T>(cached: &dyn Cached, work: impl FnOnce() -> T) -> T {
    CACHED.set(cached, work)
}

fn gone() -> PyErr {
    PyRuntimeError::new_err("the cache can be looked at only while a method of the policy is called")
}

/// Inspects the cache of the read-ahead whose method is being called.
pub fn with_cached<T>(look: impl FnOnce(&dyn Cached) -> T) -> PyResult<T> {
    if CACHED.is_set() {
        return Ok(CACHED.with(|cached| look(cached)));
    }
    Err(gone())
}

fn with_view<T>(look: impl FnOnce(&View<'_>) -> T) -> PyResult<T> {
    if VIEW.is_set() {
        return Ok(VIEW.with(|view| look(view)));
    }
    Err(gone())
}

fn state(block: u32) -> PyResult<BlockState> {
    with_view(|view| view.state(Block(block)))
}

/// The cache as a policy sees it while one of its methods is called.
#[pyclass(frozen, module = "headstart")]
pub struct Cache;

#[pymethods]
impl Cache {
    /// Position of the next reference not yet served.
    #[getter]
    fn cursor(&self) -> PyResult<u32> {
        with_view(|view| view.cursor)
    }

    /// Frames without a block. They are used before any block is evicted.
    #[getter]
    fn free(&self) -> PyResult<u32> {
        with_view(|view| view.free)
    }

    /// Number of independent disks.
    #[getter]
    fn disks(&self) -> PyResult<usize> {
        with_view(|view| view.outstanding.len())
    }

    /// Neither in the cache nor in flight.
    fn is_absent(&self, block: u32) -> PyResult<bool> {
        state(block).map(BlockState::is_absent)
    }

    /// In the cache.
    fn is_resident(&self, block: u32) -> PyResult<bool> {
        state(block).map(BlockState::is_resident)
    }

    /// In flight into the cache.
    fn is_in_flight(&self, block: u32) -> PyResult<bool> {
        state(block).map(BlockState::is_in_flight)
    }

    /// In the cache and not waited for by any process, so that it may be a victim.
    fn is_evictable(&self, block: u32) -> PyResult<bool> {
        state(block).map(BlockState::is_evictable)
    }

    /// All blocks that may be victims, by number. Takes time proportional to the number of blocks.
    fn evictable(&self) -> PyResult<Vec<u32>> {
        with_view(|view| (0..view.blocks.len() as u32).filter(|at| view.state(Block(*at)).is_evictable()).collect())
    }

    /// Requests issued to a disk and not yet completed; a disk with none is idle.
    fn outstanding(&self, disk: usize) -> PyResult<Option<u32>> {
        with_view(|view| view.outstanding.get(disk).copied())
    }

    /// The disk of a block; `None` if the block does not exist.
    fn disk_of(&self, block: u32) -> PyResult<Option<u32>> {
        with_view(|view| view.disk_of.get(block as usize).map(|disk| disk.0))
    }
}
