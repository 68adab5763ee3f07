//! Schedulers: which queued request a free device serves next. One file per family, with a row per name.

pub mod anticipatory;
mod batches;
pub mod cscan;
pub mod deadline;
pub mod fcfs;
mod history;
mod merging;
pub mod scan;
mod sorted;
pub mod sptf;
pub mod sstf;
mod sweep;

use headstart_types::{read_keys, KeyError, Nanos, NoKeys};
use toml::Table;

use crate::row::SchedulerRow;
use crate::{Device, Request};

/// All schedulers.
pub static SCHEDULERS: &[SchedulerRow] = &[
    fcfs::ROW,
    sstf::ROW,
    sptf::ROW,
    scan::ROW,
    scan::LOOK,
    cscan::ROW,
    cscan::CLOOK,
    deadline::ROW,
    anticipatory::ROW,
    anticipatory::BLIND,
];

/// A scheduler that has no keys.
fn without_keys(keys: Table, scheduler: impl Scheduler + 'static) -> Result<Box<dyn Scheduler>, KeyError> {
    read_keys::<NoKeys>(keys)?;
    Ok(Box::new(scheduler))
}

/// A request that waits for its device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Queued {
    pub request: Request,
    /// When it joined the queue.
    pub arrived: Nanos,
    /// Order of arrival on this drive; unique and increasing.
    pub sequence: u64,
}

/// What a scheduler does with a free device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Serve this request.
    Serve(Queued),
    /// Move the arm first, then serve: a sweep that goes to the edge of the disk.
    ServeAfter(Stroke, Queued),
    /// Requests wait, and the scheduler keeps the device idle until this instant, which is after now, unless a request
    /// arrives or ends before.
    Wait(Nanos),
    /// No request waits, or those that do must wait for the end of one in service.
    Nothing,
}

/// A movement of the arm to the edges of the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stroke {
    /// To the last sector.
    ToEnd,
    /// To the first sector.
    ToStart,
    /// To the last sector, then back to the first.
    ToEndAndStart,
}

/// What a scheduler guarantees a waiting request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Promise {
    /// Nothing: a request may starve.
    Nothing,
    /// It is served before the sweep turns (or restarts) for the second time after its arrival. This does not bound
    /// time: requests that keep arriving at the sweep's position hold it there.
    NextSweep,
    /// At most `each * waiting + more` of the other requests that are served one at a time, merged ones counting once,
    /// precede it once it has waited for `after`, where `waiting` requests wait besides it.
    Overtaken {
        /// Since its arrival.
        after: Nanos,
        /// Per request that waits then.
        each: usize,
        /// In addition to those.
        more: usize,
    },
}

/// The order of one drive's queue.
///
/// A scheduler that merges returns one [`Queued`] whose request covers all its parts and carries the tag, arrival,
/// process and sequence of the part that arrived first; the parts themselves, including that one, go into `parts`. A
/// request that has not been merged leaves `parts` empty.
pub trait Scheduler: Send {
    /// Adds a request. The caller guarantees that `sequence` increases from call to call and that `arrived`, the
    /// current time, never decreases.
    fn push(&mut self, queued: Queued);

    /// Takes the request to serve next. The caller passes `parts` empty.
    fn pop(&mut self, now: Nanos, device: &dyn Device, parts: &mut Vec<Queued>) -> Next;

    /// Number of waiting requests; the parts of merged ones count individually.
    fn len(&self) -> usize;

    /// Whether no request waits.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A request returned by `pop` was served; merged ones are passed whole. Called before the device is free for the
    /// next.
    fn completed(&mut self, _now: Nanos, _queued: &Queued) {}

    /// Maximum number of sectors of a merged request; zero if it never merges.
    fn merges_up_to(&self) -> u32 {
        0
    }

    /// The guarantee for this request.
    fn promise(&self, _request: &Request) -> Promise {
        Promise::Nothing
    }

    /// The longest uninterrupted time for which it keeps a free device idle while requests wait; zero if it is
    /// work-conserving.
    fn idles_at_most(&self) -> Nanos {
        Nanos::ZERO
    }
}
