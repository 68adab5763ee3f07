//! What a level gives orders to.

use headstart_types::{Block, Disk, Nanos};

/// What is to be done with the blocks of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Fetch the block: a process waits for it.
    Demand,
    /// Fetch the block: nobody waits for it.
    Prefetch,
    /// Only report at once that the block has arrived: it is going to be written whole.
    Allocate,
    /// Write the block.
    Write,
}

/// An order of a level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Order<'a> {
    /// The blocks: at least one. Several follow one another in one file, and are one request.
    pub blocks: &'a [Block],
    /// The disk of the first.
    pub disk: Disk,
    /// What to do.
    pub kind: Kind,
}

/// What takes the orders of one level: devices, or the level below.
pub trait Backend {
    /// Queues an order. When it has been carried out the host calls [`Level::arrived`](crate::Level::arrived) for each
    /// of its blocks, or [`Level::written`](crate::Level::written) for a write. Returns to how many requests of a driver it
    /// has come: one for each disk and place that its blocks lie in, none where nothing is to be read or written.
    fn issue(&mut self, now: Nanos, order: Order<'_>) -> u32;
}
