//! Replacement policies: which block leaves when a frame is needed.

mod arc;
mod fifo;
mod lru;
mod min;

use headstart_types::{Block, Outcome, Position};

pub use arc::Arc;
pub use fifo::Fifo;
pub use lru::Lru;
pub use min::Min;

use crate::View;

/// A replacement policy. It tracks resident blocks only; blocks in flight cannot be victims.
pub trait Replacement: Send {
    /// Every block number from now on is below `blocks`.
    fn grow(&mut self, blocks: usize);

    /// See [`Policy::warm`](crate::Policy::warm).
    fn warm(&self, _blocks: &[Block]) {}

    /// Chooses the block that makes way for `incoming` and forgets it as a resident.
    ///
    /// The caller guarantees that no frame is free and that `incoming` is absent. `None`: no resident block is
    /// evictable, that is, all frames are in flight or pinned.
    fn victim(&mut self, incoming: Block, view: &View<'_>) -> Option<Block>;

    /// `block` has arrived in the cache.
    fn inserted(&mut self, block: Block);

    /// The resident `block` has been handed to the process as reference `position`.
    fn referenced(&mut self, position: Position, block: Block, outcome: Outcome);
}
