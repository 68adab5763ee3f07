//! Schedulers: which queued request a free device serves next. One file each, one row each in the registry.

pub mod cscan;
pub mod fcfs;

use headstart_types::Nanos;

use crate::{Device, Request};

/// A request that waits for its device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Queued {
    /// What is asked.
    pub request: Request,
    /// When it joined the queue.
    pub arrived: Nanos,
    /// Order of arrival on this drive; unique and increasing.
    pub sequence: u64,
}

/// The order of one drive's queue.
pub trait Scheduler: Send {
    /// Adds a request. The caller guarantees that `sequence` increases from call to call.
    fn push(&mut self, queued: Queued);

    /// Takes the request to serve next; `None` when there is none to serve at `now`.
    fn pop(&mut self, now: Nanos, device: &dyn Device) -> Option<Queued>;

    /// How many requests wait.
    fn len(&self) -> usize;

    /// Whether none waits.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
