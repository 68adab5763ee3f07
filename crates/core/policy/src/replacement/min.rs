//! MIN: the victim is the resident block whose next disclosed reference is furthest away.
//!
//! Source: L. A. Belady, "A study of replacement algorithms for a virtual-storage computer", IBM Systems Journal 5(2),
//! 1966. With every reference disclosed and no prefetching it gives the fewest misses possible. With partial hints,
//! blocks without a known next reference go first, least recently used first. It trusts wrong hints until the cursor
//! has passed them.
//!
//! Cost: a few words per event (an ordered bitmap of positions). Memory: 4 bytes per reference, 16 per block.

use std::sync::Arc;

use headstart_types::{Block, KeyTable, Outcome, Position};

use crate::hinted::Residents;
use crate::row::{Context, ReplacementRow};
use crate::{Hints, Replacement, View};

/// Its row in the registry.
pub static ROW: ReplacementRow = ReplacementRow {
    name: "min",
    summary: "evict the block whose next reference is furthest away (off-line optimum)",
    source: "Belady, IBM Systems Journal 5(2), 1966",
    hinted: true,
    keys: KeyTable::NONE,
    build: &|_, context| Ok(Box::new(make(context))),
    join: &|_, context, beside| Ok(beside.join(make(context), context.frames)),
};

fn make(context: &Context) -> Min {
    let hints = context.hints.clone().expect("the host gives hints to rows that are `hinted`");
    Min::new(hints, &context.initial, context.disk_of.len())
}

/// Belady's MIN, the off-line optimum of replacement.
#[derive(Debug)]
pub struct Min {
    residents: Residents,
}

impl Min {
    /// A cache that holds `initial`, before the reference string of `hints`.
    #[must_use]
    pub fn new(hints: Arc<Hints>, initial: &[Block], blocks: usize) -> Self {
        let mut residents = Residents::new(hints, blocks);
        initial.iter().for_each(|block| residents.insert(*block));
        Self { residents }
    }
}

impl Replacement for Min {
    fn grow(&mut self, _blocks: usize) {
        // The whole reference string, and so every block, is known from the start.
    }

    fn victim(&mut self, _incoming: Block, view: &View<'_>) -> Option<Block> {
        let (victim, _) = self.residents.furthest(view)?;
        self.residents.remove(victim);
        Some(victim)
    }

    fn inserted(&mut self, block: Block) {
        self.residents.insert(block);
    }

    fn referenced(&mut self, position: Position, block: Block, _outcome: Outcome) {
        if let Some(hinted) = self.residents.wrongly_expected(position, block) {
            self.residents.skipped(position, hinted, self.residents.contains(hinted));
        }
        self.residents.served(position, block);
        self.residents.disclose(|_, _| {});
    }

    fn removed(&mut self, block: Block) {
        self.residents.remove(block);
    }
}
