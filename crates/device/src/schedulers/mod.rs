//! Schedulers: which queued request a free device serves next. One file a family, one row a name in the registry.

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

use crate::{Device, Request};

/// A scheduler that has no keys.
fn without_keys(keys: Table, scheduler: impl Scheduler + 'static) -> Result<Box<dyn Scheduler>, KeyError> {
    read_keys::<NoKeys>(keys)?;
    Ok(Box::new(scheduler))
}

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
    /// Move the arm so first, then serve: a sweep that goes to the edge of the disk.
    ServeAfter(Stroke, Queued),
    /// Requests wait, and the scheduler keeps the device idle until this instant, which is after now, unless
    /// something arrives or ends before.
    Wait(Nanos),
    /// No request waits; or some do that may only be served once one that is in service has ended.
    Nothing,
}

/// A movement of the arm to the edges of the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stroke {
    /// To the last sector.
    ToEnd,
    /// To the first.
    ToStart,
    /// To the last, then back to the first.
    ToEndAndStart,
}

/// What a scheduler promises to a request that waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Promise {
    /// Nothing: a request may starve.
    Nothing,
    /// It is served before the sweep turns (or starts again) for the second time after its arrival. That is no
    /// bound of time: requests that keep coming at the very place of the sweep hold it there.
    NextSweep,
    /// Of the others that are served one at a time, merged ones counting once, at most
    /// `each * waiting + more` go before it once it has waited for `after`, where `waiting` requests wait beside it.
    Overtaken {
        /// From its arrival.
        after: Nanos,
        /// For each request that waits then.
        each: usize,
        /// Beyond those.
        more: usize,
    },
}

/// The order of one drive's queue.
///
/// A scheduler that merges gives one [`Queued`] whose request covers all its parts and carries the tag, arrival,
/// process and sequence of the part that arrived first; the parts themselves, that one included, go into `parts`.
/// A request that has not been merged leaves `parts` empty.
pub trait Scheduler: Send {
    /// Adds a request. The caller guarantees that `sequence` increases from call to call and that `arrived`, the
    /// present, never decreases.
    fn push(&mut self, queued: Queued);

    /// Takes the request to serve next. The caller hands in `parts` empty.
    fn pop(&mut self, now: Nanos, device: &dyn Device, parts: &mut Vec<Queued>) -> Next;

    /// How many requests wait; the parts of merged ones count each.
    fn len(&self) -> usize;

    /// Whether none waits.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What `pop` has given has been served; merged ones come whole. Called before the device is free for the next.
    fn completed(&mut self, _now: Nanos, _queued: &Queued) {}

    /// The most sectors of a merged request; zero for one that never merges.
    fn merges_up_to(&self) -> u32 {
        0
    }

    /// What this request may count on.
    fn promise(&self, _request: &Request) -> Promise {
        Promise::Nothing
    }

    /// The longest time without a break for which it keeps a free device idle while requests wait; zero for one
    /// that conserves work.
    fn idles_at_most(&self) -> Nanos {
        Nanos::ZERO
    }
}
