//! MRU: the victim is the resident block that was referenced last.
//!
//! Source: H.-T. Chou and D. J. DeWitt, "An Evaluation of Buffer Management Strategies for Relational Database
//! Systems", VLDB 1985, section 4: the right choice for a loop longer than the cache, of which it keeps all but one
//! frame's worth.
//!
//! ```text
//! reference:  move to the back of the used
//! arrival:    to the back of the unused (a demanded block is referenced at once)
//! victim:     the back of the used; if there is none, the back of the unused
//! ```
//!
//! A block that has arrived ahead of its first reference is unused: it is spared as long as another block is evictable,
//! otherwise each prefetched block would evict the one before it.
//!
//! Cost: constant per event; 16 bytes per resident block, 4 per block of the universe. Only for loops: old blocks stay
//! for good, including wasted prefetches.

use headstart_types::{Block, KeyTable, Outcome, Position};

use crate::lists::Lists;
use crate::row::{Context, ReplacementRow};
use crate::{Replacement, View};

/// Its row in the registry.
pub static ROW: ReplacementRow = ReplacementRow {
    name: "mru",
    summary: "evict the block that was referenced last (for loops)",
    source: "Chou and DeWitt, VLDB 1985, section 4",
    hinted: false,
    keys: KeyTable::NONE,
    build: &|_, context| Ok(Box::new(make(context))),
    join: &|_, context, beside| Ok(beside.join(make(context), context.frames)),
};

fn make(context: &Context) -> Mru {
    Mru::new(&context.initial, context.disk_of.len())
}

const USED: usize = 0;
const UNUSED: usize = 1;

/// The MRU policy.
#[derive(Debug)]
pub struct Mru {
    recency: Lists<2>,
}

impl Mru {
    /// A cache that holds `initial`, oldest first, all used.
    #[must_use]
    pub fn new(initial: &[Block], blocks: usize) -> Self {
        let mut mru = Self { recency: Lists::new() };
        mru.grow(blocks);
        initial.iter().for_each(|block| mru.recency.push_back(USED, *block));
        mru
    }
}

impl Replacement for Mru {
    fn grow(&mut self, blocks: usize) {
        self.recency.grow(blocks);
    }

    fn warm(&self, blocks: &[Block]) {
        self.recency.warm(blocks);
    }

    fn victim(&mut self, _incoming: Block, view: &View<'_>) -> Option<Block> {
        let newest = |list| self.recency.iter_back(list).find(|block| view.state(*block).is_evictable());
        let victim = newest(USED).or_else(|| newest(UNUSED))?;
        self.recency.remove(victim);
        Some(victim)
    }

    fn inserted(&mut self, block: Block) {
        self.recency.push_back(UNUSED, block);
    }

    fn referenced(&mut self, _position: Position, block: Block, _outcome: Outcome) {
        self.recency.move_to_back(USED, block);
    }

    fn removed(&mut self, block: Block) {
        self.recency.remove(block);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replacement::by_hand::outcomes;

    #[test]
    fn a_loop_keeps_all_but_one() {
        // 3 frames: a b c; d takes c's place; a, b hit; c takes b's; d, a hit; b takes a's.
        assert_eq!(outcomes(Mru::new(&[], 26), 3, "abcdabcdab"), "MMMMHHMHHM");
    }

    #[test]
    fn what_has_not_been_used_is_spared() {
        // c and d arrive ahead, in place of b and a, the used ones. c is used: e takes its place, not d's. d hits.
        assert_eq!(outcomes(Mru::new(&[], 26), 2, "ab +c +d c e d"), "MMHMH");
    }
}
