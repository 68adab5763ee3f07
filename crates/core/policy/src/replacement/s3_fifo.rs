//! S3-FIFO: a small FIFO queue filters out blocks that are used once; a main FIFO queue gives the others further
//! chances.
//!
//! Source: J. Yang, Y. Zhang, Z. Qiu, Y. Yue and K. V. Rashmi, "FIFO Queues are All You Need for Cache Eviction", SOSP
//! 2023, section 4.1 and Algorithm 1; a tenth of the cache for S, a ghost list as long as M. Checked: with `fill_main`
//! the same misses as libCacheSim 0.3.5, the authors' program, on 10 traces.
//!
//! ```text
//! hit:        frequency = min(frequency + 1, 3)
//! miss:       make room; insert, frequency 0, into M if in G, else into S
//! make room:  from S if |S| >= small, else from M; from the other one if it has no victim
//! from S:     the front: if frequency > 1, move to M with frequency 0 and look at the next;
//!             else it is evicted and remembered in G, which forgets its front when it is full
//! from M:     the front: if frequency > 0, move to M's back with frequency - 1 and look at the next;
//!             else it is evicted
//! ```
//!
//! Differences: Algorithm 1 also evicts from M when a move from S fills it, which would free two frames for one block;
//! here one block is evicted, as in that program. With `fill_main`, S does not exceed its size before the first
//! eviction either: new blocks go into M instead, as in later versions of that program. This has a lasting effect: on a
//! loop longer than the cache M then keeps the first blocks, and without it nothing ever hits. By [`super`]'s rule a
//! block that was in G enters M with its reference.
//!
//! Cost: constant per event, amortised (a block is spared at most 3 times for as many hits); 16 bytes per listed block
//! (frames and G), 4 per block of the universe. Not for workloads without blocks used once, and not if a block's second
//! and third use come late: S is too short for them, and popular blocks are evicted once before they stay.

use headstart_types::{keys, Block, KeyTable, Outcome, Position, TypedKeys};

use super::{second_chance, GHOSTS_MAX};
use crate::lists::Lists;
use crate::row::{Context, ReplacementRow};
use crate::{Replacement, View};

/// Its row in the registry.
pub static ROW: ReplacementRow = ReplacementRow {
    name: "s3-fifo",
    summary: "a small FIFO queue filters new blocks, a main one gives further chances, a ghost queue remembers evicted blocks",
    source: "Yang et al., SOSP 2023, Algorithm 1",
    hinted: false,
    keys: KeyTable::of::<S3FifoKeys>(),
    build: &|keys, context| Ok(Box::new(make(keys, context))),
    join: &|keys, context, beside| Ok(beside.join(make(keys, context), context.frames)),
};

keys! {
    /// Keys of `s3-fifo`.
    pub struct S3FifoKeys {
        /// Size of S, as a share of the cache's blocks. Rounded down, at least one block.
        #[schemars(range(min = 0.0, max = 1.0))]
        pub small: f64 = 0.1,
        /// Size of G, as a multiple of the cache's blocks. 0: no evicted block is remembered.
        #[schemars(range(min = 0.0, max = GHOSTS_MAX))]
        pub ghosts: f64 = 0.9,
        /// Whether new blocks go into M while S is full and nothing has been evicted yet.
        pub fill_main: bool = false,
    }
}

fn make(keys: &TypedKeys, context: &Context) -> S3Fifo {
    let keys: &S3FifoKeys = keys.get();
    let small = context.share(keys.small);
    let ghosts = context.share(keys.ghosts);
    S3Fifo::new(small, ghosts, keys.fill_main, &context.initial, context.disk_of.len())
}

const SMALL: usize = 0;
const MAIN: usize = 1;
const GHOSTS: usize = 2;
/// In flight; was in G when the fetch was issued.
const RETURNING: usize = 3;

/// Tags up to this: the frequency, 0 to 3, of a block that has been referenced since it arrived.
const FREQUENCY_MAX: u16 = 3;
/// Tags of blocks not referenced since they arrived: `NEW`, or `FROM_GHOSTS` if it was in G.
const NEW: u16 = 4;
const FROM_GHOSTS: u16 = 5;

/// The S3-FIFO policy.
#[derive(Debug)]
pub struct S3Fifo {
    lists: Lists<4>,
    /// Desired number of blocks in S, at least 1.
    small: usize,
    /// Maximum number of blocks in G.
    ghosts: usize,
    /// Whether new blocks go into M while S is full.
    filling: bool,
}

impl S3Fifo {
    /// A cache that holds `initial`, oldest first, each referenced once. S has `small` blocks, at least one; G has
    /// `ghosts`. `fill_main`: new blocks go into M while S is full, until the first eviction.
    #[must_use]
    pub fn new(small: usize, ghosts: usize, fill_main: bool, initial: &[Block], blocks: usize) -> Self {
        let mut s3_fifo = Self { lists: Lists::new(), small: small.max(1), ghosts, filling: fill_main };
        s3_fifo.grow(blocks);
        for block in initial {
            s3_fifo.inserted(*block);
            s3_fifo.referenced(0, *block, Outcome::Miss);
        }
        s3_fifo
    }

    fn evict_small(&mut self, view: &View<'_>) -> Option<Block> {
        let mut at = self.lists.front(SMALL);
        while let Some(block) = at {
            at = self.lists.after(block);
            if !view.state(block).is_evictable() {
                continue;
            }
            match *self.lists.tag(block) {
                2..=FREQUENCY_MAX => {
                    *self.lists.tag(block) = 0;
                    self.lists.move_to_back(MAIN, block);
                }
                NEW => {
                    self.lists.remove(block);
                    return Some(block);
                }
                _ => {
                    *self.lists.tag(block) = 0;
                    self.lists.move_to_back(GHOSTS, block);
                    return Some(block);
                }
            }
        }
        None
    }

    fn evict_main(&mut self, view: &View<'_>) -> Option<Block> {
        let victim = second_chance(&mut self.lists, MAIN, view, |frequency| {
            let spared = (1..=FREQUENCY_MAX).contains(frequency);
            *frequency -= u16::from(spared);
            spared
        })?;
        self.lists.remove(victim);
        Some(victim)
    }
}

impl Replacement for S3Fifo {
    fn grow(&mut self, blocks: usize) {
        self.lists.grow(blocks);
    }

    fn warm(&self, blocks: &[Block]) {
        self.lists.warm(blocks);
    }

    fn victim(&mut self, incoming: Block, view: &View<'_>) -> Option<Block> {
        let victim = if self.lists.len(SMALL) >= self.small {
            self.evict_small(view).or_else(|| self.evict_main(view))
        } else {
            // Blocks of S that were not evicted may have moved to M.
            self.evict_main(view).or_else(|| self.evict_small(view)).or_else(|| self.evict_main(view))
        }?;
        self.filling = false;
        if self.lists.list_of(incoming) == Some(GHOSTS) {
            self.lists.move_to_back(RETURNING, incoming);
        }
        while self.lists.len(GHOSTS) > self.ghosts {
            self.lists.pop_front(GHOSTS);
        }
        Some(victim)
    }

    fn inserted(&mut self, block: Block) {
        let known = self.lists.list_of(block).is_some();
        let full = self.filling && self.lists.len(SMALL) >= self.small;
        self.lists.move_to_back(if full { MAIN } else { SMALL }, block);
        *self.lists.tag(block) = if known { FROM_GHOSTS } else { NEW };
    }

    fn referenced(&mut self, _position: Position, block: Block, _outcome: Outcome) {
        let tag = self.lists.tag(block);
        match *tag {
            NEW => *tag = 0,
            FROM_GHOSTS => {
                *tag = 0;
                self.lists.move_to_back(MAIN, block);
            }
            frequency => *tag = (frequency + 1).min(FREQUENCY_MAX),
        }
    }

    fn removed(&mut self, block: Block) {
        self.lists.remove(block);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replacement::by_hand::outcomes;

    #[test]
    fn small_filters_ghosts_return_main_gives_chances() {
        // 4 frames, S should have 1, G has 3. a b c d fill S; a hits twice. e: a (2 > 1) moves to M, b leaves to G.
        // b: known, c leaves; M = a b. a hits (1). f, g, h: d, e, f leave; G = d e f, c forgotten. b hits (1).
        // c is new: g leaves; S = h c.
        let first = "abcdaaebafghbc";
        assert_eq!(outcomes(S3Fifo::new(1, 3, false, &[], 26), 4, first), "MMMMHHMMHMMMHM");
        // h and c hit twice. i: both move to M, S is empty; of M = a1 b1 h0 c0, a and b are spared, h leaves, and
        // is not remembered: it is new. S = i gives i. a is still there.
        let more = format!("{first}hhccihai");
        assert_eq!(outcomes(S3Fifo::new(1, 3, false, &[], 26), 4, &more)[14..], *"HHHHMMHM");
    }

    #[test]
    fn what_fills_the_cache_may_go_into_main() {
        // A loop of 4 over 3 frames. S = a b c, then each block leaves just before its turn. With S = a, M = b c the
        // loop's d and a, no longer than remembered by G, take turns in S; a's second stay is in M, for b.
        assert_eq!(outcomes(S3Fifo::new(1, 1, false, &[], 26), 3, "abcdabcd"), "MMMMMMMM");
        assert_eq!(outcomes(S3Fifo::new(1, 1, true, &[], 26), 3, "abcdbcdb"), "MMMMHHHH");
    }

    #[test]
    fn one_hit_is_not_enough() {
        // 2 frames. a (1 hit) is not above 1: it leaves for c. With 2 hits it would move to M, and b leave.
        assert_eq!(outcomes(S3Fifo::new(1, 1, false, &[], 26), 2, "aabca"), "MHMMM");
        assert_eq!(outcomes(S3Fifo::new(1, 1, false, &[], 26), 2, "aaabca"), "MHHMMH");
    }
}
