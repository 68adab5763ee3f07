//! The destination of a level's orders.

use headstart_types::{Block, Disk, Nanos};

/// What to do with the blocks of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Fetch the block; a process waits for it.
    Demand,
    /// Fetch the block; no process waits for it.
    Prefetch,
    /// Report at once that the block has arrived, because it will be overwritten as a whole.
    Allocate,
    /// Write the block.
    Write,
}

/// An order of a level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IoRequest<'a> {
    /// The blocks, at least one. Several blocks are contiguous in one file, and form one request.
    pub blocks: &'a [Block],
    /// The disk of the first block.
    pub disk: Disk,
    /// What to do with the blocks.
    pub kind: Kind,
}

/// Carries out the orders of one level: devices, or the level below.
pub trait Backend {
    /// Queues an order. When it has been carried out the host calls [`Level::arrived`](crate::Level::arrived) for each
    /// of its blocks, or [`Level::written`](crate::Level::written) for a write. Returns the number of driver requests:
    /// one for each disk and contiguous place of its blocks, 0 if nothing has to be read or written.
    fn issue(&mut self, now: Nanos, order: IoRequest<'_>) -> u32;
}
