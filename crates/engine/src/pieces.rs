//! Orders of several blocks, cut into pieces that lie in one place each: the order has ended when its last piece has.

use std::collections::VecDeque;

use headstart_types::{Block, Disk, Nanos};

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

    /// A piece of the order in `slot` has ended after `service`: if it is the last, all of the order's blocks have, each
    /// with its share of the time, on the disks that `disk_of` tells.
    pub fn ended(
        &mut self,
        slot: usize,
        service: Nanos,
        written: bool,
        disk_of: impl Fn(Block) -> Disk,
        into: &mut VecDeque<Ended>,
    ) {
        let open = &mut self.open[slot];
        open.pieces -= 1;
        open.service += service;
        if open.pieces > 0 {
            return;
        }
        let share = Nanos(open.service.0 / open.blocks.len() as u64);
        let what = if written { What::Written } else { What::Fetched(share) };
        let level = open.level;
        into.extend(open.blocks.iter().map(|block| Ended { level, block: *block, disk: disk_of(*block), what }));
        self.free.push(slot);
    }
}
