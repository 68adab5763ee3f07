//! FIFO: the victim is the resident block that arrived first, regardless of its use.
//!
//! Cost: constant per event; 16 bytes per listed block, 4 per block of the universe. A baseline; more frames can mean
//! more misses (Belady's anomaly).

use headstart_types::{Block, KeyTable, Outcome, Position};

use crate::lists::Lists;
use crate::row::{Context, ReplacementRow};
use crate::{Replacement, View};

/// Its row in the registry.
pub static ROW: ReplacementRow = ReplacementRow {
    name: "fifo",
    summary: "evict the block that arrived first",
    source: "folklore; Belady, IBM Systems Journal 5(2), 1966",
    hinted: false,
    keys: KeyTable::NONE,
    build: &|_, context| Ok(Box::new(make(context))),
    join: &|_, context, beside| Ok(beside.join(make(context), context.frames)),
};

fn make(context: &Context) -> Fifo {
    Fifo::new(&context.initial, context.disk_of.len())
}

/// The FIFO policy.
#[derive(Debug)]
pub struct Fifo {
    arrivals: Lists<1>,
}

impl Fifo {
    /// A cache that holds `initial`, oldest first.
    #[must_use]
    pub fn new(initial: &[Block], blocks: usize) -> Self {
        let mut fifo = Self { arrivals: Lists::new() };
        fifo.grow(blocks);
        initial.iter().for_each(|block| fifo.inserted(*block));
        fifo
    }
}

impl Replacement for Fifo {
    fn grow(&mut self, blocks: usize) {
        self.arrivals.grow(blocks);
    }

    fn victim(&mut self, _incoming: Block, view: &View<'_>) -> Option<Block> {
        self.arrivals.take_victim(0, view)
    }

    fn inserted(&mut self, block: Block) {
        self.arrivals.push_back(0, block);
    }

    fn referenced(&mut self, _position: Position, _block: Block, _outcome: Outcome) {}

    fn removed(&mut self, block: Block) {
        self.arrivals.remove(block);
    }
}
