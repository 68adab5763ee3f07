//! SIEVE: a FIFO queue and a hand that moves from old to new blocks, spares used blocks and evicts unused ones.
//!
//! Source: Y. Zhang, J. Yang, Y. Yue, Y. Vigfusson and K. V. Rashmi, "SIEVE is Simpler than LRU: an Efficient Turn-Key
//! Eviction Algorithm for Web Caches", NSDI 2024, section 3.1 and Algorithm 1. Checked: the same misses as libCacheSim
//! 0.3.5, by one of its authors, on 10 traces.
//!
//! ```text
//! hit:        visited = true; the block stays where it is
//! miss:       make room, insert at the new end, visited = false
//! make room:  from the hand (at first, and past the new end, the old end) to newer blocks:
//!             while visited: visited = false, next
//!             that block is evicted; the hand moves to the next
//! ```
//!
//! Differences: none under demand fetching. The first reference of a prefetched block does not mark it (see [`super`]).
//! The hand skips a block that is not evictable and leaves its mark.
//!
//! Cost: constant per event, amortised (the hand spares a block at most once per hit); 16 bytes per resident block, 4
//! per block of the universe. Not for scans over a cache in use: a visited block that the hand has passed is safe for a
//! whole round, and new ones are evicted first; nor for loops, where it equals FIFO.

use headstart_types::{Block, KeyTable, Outcome, Position};

use crate::lists::Lists;
use crate::row::{Context, ReplacementRow};
use crate::{Replacement, View};

/// Its row in the registry.
pub static ROW: ReplacementRow = ReplacementRow {
    name: "sieve",
    summary: "a FIFO queue whose hand spares used blocks and evicts unused ones",
    source: "Zhang et al., NSDI 2024, Algorithm 1",
    hinted: false,
    keys: KeyTable::NONE,
    build: &|_, context| Ok(Box::new(make(context))),
    join: &|_, context, beside| Ok(beside.join(make(context), context.frames)),
};

fn make(context: &Context) -> Sieve {
    Sieve::new(&context.initial, context.disk_of.len())
}

/// Tags: `VISITED` since the hand passed; `NOT_VISITED` since then; `NEW`: not referenced since it arrived.
const VISITED: u16 = 1;
const NOT_VISITED: u16 = 0;
const NEW: u16 = 2;

/// The SIEVE policy.
#[derive(Debug)]
pub struct Sieve {
    queue: Lists<1>,
    /// Where the search begins; `None`: at the oldest block.
    hand: Option<Block>,
}

impl Sieve {
    /// A cache that holds `initial`, oldest first, none visited.
    #[must_use]
    pub fn new(initial: &[Block], blocks: usize) -> Self {
        let mut sieve = Self { queue: Lists::new(), hand: None };
        sieve.grow(blocks);
        initial.iter().for_each(|block| sieve.queue.push_back(0, *block));
        sieve
    }
}

impl Replacement for Sieve {
    fn grow(&mut self, blocks: usize) {
        self.queue.grow(blocks);
    }

    fn warm(&self, blocks: &[Block]) {
        self.queue.warm(blocks);
    }

    fn victim(&mut self, _incoming: Block, view: &View<'_>) -> Option<Block> {
        let mut at = self.hand;
        // After one round every evictable block has lost its mark, so the second round finds one if there is one.
        for _ in 0..=2 * self.queue.len(0) {
            let block = at.or_else(|| self.queue.front(0))?;
            at = self.queue.after(block);
            if !view.state(block).is_evictable() {
                continue;
            }
            let tag = self.queue.tag(block);
            if *tag == VISITED {
                *tag = NOT_VISITED;
                continue;
            }
            self.queue.remove(block);
            self.hand = at;
            return Some(block);
        }
        None
    }

    fn inserted(&mut self, block: Block) {
        self.queue.push_back(0, block);
        *self.queue.tag(block) = NEW;
    }

    fn referenced(&mut self, _position: Position, block: Block, _outcome: Outcome) {
        let tag = self.queue.tag(block);
        *tag = if *tag == NEW { NOT_VISITED } else { VISITED };
    }

    fn removed(&mut self, block: Block) {
        if self.hand == Some(block) {
            self.hand = self.queue.after(block);
        }
        self.queue.remove(block);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replacement::by_hand::outcomes;

    #[test]
    fn the_hand_spares_what_was_visited() {
        // 3 frames, old to new: a* b* c (* visited). d: the hand clears a and b, c leaves, the hand is past the new
        // end. e: from the old end, a leaves, the hand at b. c: b leaves. d, e, c are left.
        assert_eq!(outcomes(Sieve::new(&[], 26), 3, "abcabdecd"), "MMMHHMMMH");
        assert_eq!(outcomes(Sieve::new(&[], 26), 3, "abcabdeca"), "MMMHHMMMM");
    }

    #[test]
    fn the_hand_steps_off_a_block_that_is_taken_out() {
        // After d and e as above the hand is at b of b d e. b is taken out: the hand is at d; f takes the free
        // frame; g: d leaves, e f g are left.
        assert_eq!(outcomes(Sieve::new(&[], 26), 3, "abcabde -b f g e f d"), "MMMHHMMMMHHM");
    }

    #[test]
    fn the_first_reference_of_a_prefetched_block_is_no_visit() {
        // 2 frames. b is brought in, and used once: not visited. c: a leaves, d: b leaves.
        assert_eq!(outcomes(Sieve::new(&[], 26), 2, "a +b b c d b"), "MHMMM");
        // Used twice it is spared: d clears b and takes c's place.
        assert_eq!(outcomes(Sieve::new(&[], 26), 2, "a +b b b c d b"), "MHHMMH");
    }
}
