//! Splits orders of several blocks into contiguous pieces; an order ends when its last piece ends.

use headstart_types::{Block, Nanos};

use crate::devices::{Ended, What};

/// An unfinished order.
#[derive(Debug, Default)]
struct Open {
    level: u32,
    blocks: Vec<Block>,
    pieces: u32,
    service: Nanos,
}

/// All unfinished orders.
#[derive(Debug, Default)]
pub struct Pieces {
    /// Indexed by slot; the slots in `free` are unused.
    open: Vec<Open>,
    free: Vec<usize>,
}

impl Pieces {
    /// Creates an order of `blocks` for `level`; returns its slot.
    pub fn open(&mut self, level: u32, blocks: &[Block]) -> usize {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.open.push(Open::default());
            self.open.len() - 1
        });
        let open = &mut self.open[slot];
        open.blocks.clear();
        open.blocks.extend_from_slice(blocks);
        (open.level, open.pieces, open.service) = (level, 0, Nanos::ZERO);
        slot
    }

    /// Adds a piece to the order in `slot`.
    pub fn add(&mut self, slot: usize) {
        self.open[slot].pieces += 1;
    }

    /// Ends a piece of the order in `slot` after `service`. Returns the end of the order if this was its last piece;
    /// each block is given an equal share of the service time. [`Pieces::take`] returns the blocks.
    pub fn ended(&mut self, slot: usize, service: Nanos, written: bool) -> Option<Ended> {
        let open = &mut self.open[slot];
        open.pieces -= 1;
        open.service += service;
        if open.pieces > 0 {
            return None;
        }
        let share = Nanos(open.service.0 / open.blocks.len() as u64);
        Some(Ended { level: open.level, what: if written { What::Written } else { What::Fetched(share) } })
    }

    /// Moves the blocks of the completed order in `slot` to `into`, which is empty.
    pub fn take(&mut self, slot: usize, into: &mut Vec<Block>) {
        std::mem::swap(&mut self.open[slot].blocks, into);
        self.free.push(slot);
    }
}
