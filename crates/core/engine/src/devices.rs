//! The devices below the lowest levels, as seen by a [`System`](crate::System).

use headstart_types::{Block, Nanos};

use crate::backend::IoRequest;

/// The origin of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct From {
    /// The level that issues it.
    pub level: u32,
    /// The process for which it is issued, if known; for schedulers that distinguish processes.
    pub process: Option<u32>,
}

/// How an order ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// The blocks were fetched; the value is the disk's time per block, for an order of several blocks its share.
    Fetched(Nanos),
    /// The blocks needed no fetch.
    Allocated,
    /// The blocks were to be prefetched but were present already, not because of the level, so they do not count as
    /// prefetches.
    Unneeded,
    /// The blocks were written.
    Written,
}

/// An order, or a part of one, that has been carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// The level that issued the order.
    pub level: u32,
    /// How it ended.
    pub what: What,
}

/// Carries out orders for blocks placed in an `S` and reports when they end: simulated drives, or a mailbox between a
/// live host and its disks.
pub trait Devices<S>: Send {
    /// Queues an order; `space` gives the places of its blocks. Returns the number of driver requests, as
    /// [`Backend::issue`](crate::Backend::issue) does.
    fn submit(&mut self, now: Nanos, from: From, order: IoRequest<'_>, space: &S) -> u32;

    /// Called when all orders of one step at this instant have been queued: idle devices may start, knowing all of
    /// them.
    fn start(&mut self, now: Nanos);

    /// When the next order ends or a device wants to be polled again; `None` if unknown.
    fn next_event(&self) -> Option<Nanos>;

    /// The next order that has ended by `now`. Its blocks are stored in `into`, which is empty.
    fn ended(&mut self, now: Nanos, space: &S, into: &mut Vec<Block>) -> Option<Ended>;
}
