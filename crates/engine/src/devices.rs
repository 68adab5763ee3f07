//! The devices below the lowest levels, as a [`System`](crate::System) sees them.

use headstart_types::{Block, Nanos};

use crate::backend::Order;

/// Whose order it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct From {
    /// The level that gives it.
    pub level: u32,
    /// The process for which it is given, where that is known: for schedulers that tell processes apart.
    pub process: Option<u32>,
}

/// What has become of the blocks of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// They have been fetched; the disk worked on each for that long: of an order of several blocks, its share.
    Fetched(Nanos),
    /// They needed no fetch.
    Allocated,
    /// They were to be prefetched, and were there already: not by the level's doing, so that they are no prefetches.
    Unneeded,
    /// They have been written.
    Written,
}

/// An order, or a part of one, that has been carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// The level that gave the order.
    pub level: u32,
    /// What has become of its blocks.
    pub what: What,
}

/// What carries out orders for blocks that lie in an `S`, and reports their ends: simulated drives, or a mailbox between a live host and its disks.
pub trait Devices<S>: Send {
    /// Queues an order; `space` says where its blocks lie. Returns to how many requests it has come, as
    /// [`Backend::issue`](crate::Backend::issue) does.
    fn submit(&mut self, now: Nanos, from: From, order: Order<'_>, space: &S) -> u32;

    /// All orders of one step of this instant have been queued: idle devices may start, having seen them together.
    fn start(&mut self, now: Nanos);

    /// When the next order ends, or a device wants to be asked again, as far as that is known.
    fn next_event(&self) -> Option<Nanos>;

    /// The next order that has ended by `now`. Its blocks go to `into`, which is empty.
    fn ended(&mut self, now: Nanos, space: &S, into: &mut Vec<Block>) -> Option<Ended>;
}
