//! Orders of several blocks, cut into pieces that lie in one place each: the order has ended when its last piece has.

use headstart_types::{Block, Nanos};

use crate::devices::{Ended, What};

/// An order that has not ended.
#[derive(Debug, Default)]
struct Open {
    level: u32,
    blocks: Vec<Block>,
    pieces: u32,
    service: Nanos,
}

/// The orders that have not ended.
#[derive(Debug, Default)]
pub struct Pieces {
    /// By slot; those of `free` are old.
    open: Vec<Open>,
    free: Vec<usize>,
}

impl Pieces {
    /// The slot of a new order of `blocks` for `level`.
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

    /// The order in `slot` has one more piece.
    pub fn add(&mut self, slot: usize) {
        self.open[slot].pieces += 1;
    }

    /// A piece of the order in `slot` has ended after `service`: if it is the last, the order has, and each of its blocks has
    /// its share of the time. [`Pieces::take`] gives them.
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

    /// Moves the blocks of the order in `slot`, which has ended, to `into`, which is empty.
    pub fn take(&mut self, slot: usize, into: &mut Vec<Block>) {
        std::mem::swap(&mut self.open[slot].blocks, into);
        self.free.push(slot);
    }
}
