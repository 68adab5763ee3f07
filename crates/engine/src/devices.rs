//! The devices below the lowest levels, as a [`System`](crate::System) sees them.

use headstart_types::{Block, Disk, Nanos};

use crate::backend::Order;

/// Whose order it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct From {
    /// The level that gives it.
    pub level: u32,
    /// The process for which it is given, where that is known: for schedulers that tell processes apart.
    pub process: Option<u32>,
}

/// What has become of a block of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// The block has been fetched; the disk worked on it for that long: of an order of several blocks, its share.
    Fetched(Nanos),
    /// The block needed no fetch.
    Allocated,
    /// The block was to be prefetched, and was there already: not by the level's doing, so that it is no prefetch.
    Unneeded,
    /// The block has been written.
    Written,
}

/// One block of an order that has been carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// The level that gave the order.
    pub level: u32,
    /// The block.
    pub block: Block,
    /// Where it is.
    pub disk: Disk,
    /// What has become of it.
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

    /// The next block whose order has ended by `now`.
    fn ended(&mut self, now: Nanos, space: &S) -> Option<Ended>;
}
