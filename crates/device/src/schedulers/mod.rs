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

/// What a scheduler wants done with a free device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Serve this.
    Serve(Queued),
    /// Move the arm to this sector's cylinder first, then serve: a sweep that goes to the edge of the disk.
    ServeAfter(u64, Queued),
    /// Requests wait, and the scheduler keeps the device idle until this instant, which is after now, unless
    /// something arrives before.
    Wait(Nanos),
    /// No request waits.
    Nothing,
}

/// The order of one drive's queue.
///
/// A scheduler that merges gives one [`Queued`] whose request covers all its parts and carries the tag, arrival
/// and sequence of the part that arrived first; the parts themselves, that one included, go into `parts`.
/// A request that has not been merged leaves `parts` empty.
pub trait Scheduler: Send {
    /// Adds a request. The caller guarantees that `sequence` increases from call to call.
    fn push(&mut self, queued: Queued);

    /// Takes the request to serve next. The caller hands in `parts` empty.
    fn pop(&mut self, now: Nanos, device: &dyn Device, parts: &mut Vec<Queued>) -> Next;

    /// How many requests wait; the parts of merged ones count each.
    fn len(&self) -> usize;

    /// Whether none waits.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A request has been served; merged ones come whole. Called before the device is free for the next.
    fn completed(&mut self, _now: Nanos, _request: &Request) {}

    /// An upper bound of the number of requests, served one at a time, that may be served between the arrival of a
    /// request and its own service when `waiting` others wait at its arrival; `None` where there is none.
    fn overtaken_at_most(&self, _waiting: usize) -> Option<usize> {
        None
    }
}
