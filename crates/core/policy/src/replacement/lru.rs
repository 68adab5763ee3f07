//! LRU: the victim is the resident block whose last reference (or arrival, if it was never referenced) is oldest.
//!
//! Cost: constant per event; 16 bytes per listed block, 4 per block of the universe. Not for loops longer than the
//! cache, where it evicts each block just before its use (use `min` as the bound, `arc` against scans).

use headstart_types::{Block, KeyTable, Outcome, Position};

use crate::lists::Lists;
use crate::row::{Context, ReplacementRow};
use crate::{Replacement, View};

/// Its row in the registry.
pub static ROW: ReplacementRow = ReplacementRow {
    name: "lru",
    summary: "evict the block whose last reference is oldest",
    source: "folklore; see Coffman and Denning, Operating Systems Theory, 1973",
    hinted: false,
    keys: KeyTable::NONE,
    build: &|_, context| Ok(Box::new(make(context))),
    join: &|_, context, beside| Ok(beside.join(make(context), context.frames)),
};

fn make(context: &Context) -> Lru {
    Lru::new(&context.initial, context.disk_of.len())
}

/// The LRU policy.
#[derive(Debug)]
pub struct Lru {
    recency: Lists<1>,
}

impl Lru {
    /// A cache that holds `initial`, oldest first.
    #[must_use]
    pub fn new(initial: &[Block], blocks: usize) -> Self {
        let mut lru = Self { recency: Lists::new() };
        lru.grow(blocks);
        initial.iter().for_each(|block| lru.inserted(*block));
        lru
    }
}

impl Replacement for Lru {
    fn grow(&mut self, blocks: usize) {
        self.recency.grow(blocks);
    }

    fn warm(&self, blocks: &[Block]) {
        self.recency.warm(blocks);
    }

    fn victim(&mut self, _incoming: Block, view: &View<'_>) -> Option<Block> {
        self.recency.take_victim(0, view)
    }

    fn inserted(&mut self, block: Block) {
        self.recency.push_back(0, block);
    }

    fn referenced(&mut self, _position: Position, block: Block, _outcome: Outcome) {
        self.recency.move_to_back(0, block);
    }

    fn removed(&mut self, block: Block) {
        self.recency.remove(block);
    }
}
