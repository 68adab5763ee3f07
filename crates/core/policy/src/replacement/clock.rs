//! CLOCK: FIFO with a second chance for blocks used since the hand last passed.
//!
//! Source: F. J. Corbató, "A Paging Experiment with the Multics System", in Honor of P. M. Morse, MIT Press, 1969.
//!
//! ```text
//! hit:        used = true; the block stays where it is
//! miss:       make room, insert behind the hand, used = false
//! make room:  at the hand: while used: used = false, the hand moves on
//!             that block is evicted
//! ```
//!
//! The ring is a queue here: the front is where the hand points, and a spared block goes to the back. Differences: the
//! first reference, which brings the block in, does not set its bit (some texts set it, which gives each block one more
//! round). A block that is not evictable is skipped and keeps its bit and its place at the front.
//!
//! Cost: constant per event, amortised (a block is spared at most once per hit); 16 bytes per resident block, 4 per
//! block of the universe. Not for loops longer than the cache, where it equals FIFO, nor for workloads with scans.

use headstart_types::{Block, KeyTable, Outcome, Position};

use super::second_chance;
use crate::lists::Lists;
use crate::row::{Context, ReplacementRow};
use crate::{Replacement, View};

/// Its row in the registry.
pub static ROW: ReplacementRow = ReplacementRow {
    name: "clock",
    summary: "FIFO with a second chance for blocks that were used",
    source: "Corbató, A Paging Experiment with the Multics System, 1969",
    hinted: false,
    keys: KeyTable::NONE,
    build: &|_, context| Ok(Box::new(make(context))),
    join: &|_, context, beside| Ok(beside.join(make(context), context.frames)),
};

fn make(context: &Context) -> Clock {
    Clock::new(&context.initial, context.disk_of.len())
}

/// Tags: `USED` since the hand passed; `NOT_USED` since then; `NEW`: not referenced since it arrived.
const USED: u16 = 1;
const NOT_USED: u16 = 0;
const NEW: u16 = 2;

/// CLOCK with one bit per block.
#[derive(Debug)]
pub struct Clock {
    ring: Lists<1>,
}

impl Clock {
    /// A cache that holds `initial`, oldest first, none used.
    #[must_use]
    pub fn new(initial: &[Block], blocks: usize) -> Self {
        let mut clock = Self { ring: Lists::new() };
        clock.grow(blocks);
        initial.iter().for_each(|block| clock.ring.push_back(0, *block));
        clock
    }
}

impl Replacement for Clock {
    fn grow(&mut self, blocks: usize) {
        self.ring.grow(blocks);
    }

    fn warm(&self, blocks: &[Block]) {
        self.ring.warm(blocks);
    }

    fn victim(&mut self, _incoming: Block, view: &View<'_>) -> Option<Block> {
        let victim = second_chance(&mut self.ring, 0, view, |tag| {
            let used = *tag == USED;
            if used {
                *tag = NOT_USED;
            }
            used
        })?;
        self.ring.remove(victim);
        Some(victim)
    }

    fn inserted(&mut self, block: Block) {
        self.ring.push_back(0, block);
        *self.ring.tag(block) = NEW;
    }

    fn referenced(&mut self, _position: Position, block: Block, _outcome: Outcome) {
        let tag = self.ring.tag(block);
        *tag = if *tag == NEW { NOT_USED } else { USED };
    }

    fn removed(&mut self, block: Block) {
        self.ring.remove(block);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replacement::by_hand::outcomes;

    #[test]
    fn a_used_block_gets_a_second_chance() {
        // 3 frames: a* b c (* used). d: a is spared, b leaves: c a d. b: c leaves: a d b. e: a, its bit cleared,
        // leaves: d b e. a: d leaves: b e a. b hits.
        assert_eq!(outcomes(Clock::new(&[], 26), 3, "abcadbeab"), "MMMHMMMMH");
    }

    #[test]
    fn when_all_are_used_it_is_fifo() {
        // a* b*; c: both are spared once, then a leaves. b hits, a does not.
        assert_eq!(outcomes(Clock::new(&[], 26), 2, "ababcba"), "MMHHMHM");
    }
}
