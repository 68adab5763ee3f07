//! 2Q: a short FIFO queue tests new blocks; only those that return soon after leaving it enter the LRU list.
//!
//! Source: T. Johnson and D. Shasha, "2Q: A Low Overhead High Performance Buffer Management Replacement Algorithm",
//! VLDB 1994, section 2.2 ("full version"); Kin = 25 % and Kout = 50 % of the frames are its choice. Checked: the same
//! misses as libCacheSim 0.3.5 on 10 traces; the VLDB text was not available.
//!
//! ```text
//! hit in Am:      move to the back of Am
//! hit in A1in:    nothing; references in quick succession count as one
//! miss, in A1out: make room, insert into Am
//! miss:           make room, insert into A1in
//! make room:      if |A1in| > Kin: the front of A1in is evicted and remembered in A1out,
//!                                  which forgets its front when it holds more than Kout
//!                 else:            the front of Am is evicted and forgotten
//! ```
//!
//! Differences: a missed block leaves A1out before its victim enters it (the paper's text leaves that open), and by
//! [`super`]'s rule it enters Am with its reference, not with its arrival. If the preferred list has no evictable
//! block, the other one supplies the victim.
//!
//! Cost: constant per event; 16 bytes per listed block (frames and Kout), 4 per block of the universe. Not for
//! workloads whose blocks return later than A1out remembers: with too small a Kout it is a FIFO queue.

use headstart_types::{keys, Block, KeyTable, Outcome, Position, TypedKeys};

use super::GHOSTS_MAX;
use crate::lists::Lists;
use crate::row::{Context, ReplacementRow};
use crate::{Replacement, View};

/// Its row in the registry.
pub static ROW: ReplacementRow = ReplacementRow {
    name: "2q",
    summary: "test new blocks in a FIFO queue, keep those that return in an LRU list",
    source: "Johnson and Shasha, VLDB 1994, section 2.2 (full version)",
    hinted: false,
    keys: KeyTable::of::<TwoQKeys>(),
    build: &|keys, context| Ok(Box::new(make(keys, context))),
    join: &|keys, context, beside| Ok(beside.join(make(keys, context), context.frames)),
};

keys! {
    /// Keys of `2q`.
    pub struct TwoQKeys {
        /// Kin, as a share of the cache's blocks. Rounded down, at least one block.
        #[schemars(range(min = 0.0, max = 1.0))]
        pub kin: f64 = 0.25,
        /// Kout, as a multiple of the cache's blocks. 0: no evicted block is remembered, so that the policy is FIFO.
        #[schemars(range(min = 0.0, max = GHOSTS_MAX))]
        pub kout: f64 = 0.5,
    }
}

fn make(keys: &TypedKeys, context: &Context) -> TwoQ {
    let keys: &TwoQKeys = keys.get();
    let kin = context.share(keys.kin);
    let kout = context.share(keys.kout);
    TwoQ::new(kin, kout, &context.initial, context.disk_of.len())
}

const A1IN: usize = 0;
const AM: usize = 1;
const A1OUT: usize = 2;
/// In flight; was in A1out when the fetch was issued.
const RETURNING: usize = 3;

/// Tags in A1in: `SEEN` has been referenced since it arrived; the others have not: `NEW`, or `FROM_A1OUT` if it was in
/// A1out.
const SEEN: u16 = 0;
const NEW: u16 = 1;
const FROM_A1OUT: u16 = 2;

/// The 2Q policy, full version.
#[derive(Debug)]
pub struct TwoQ {
    lists: Lists<4>,
    /// The paper's Kin, in blocks, at least 1.
    kin: usize,
    /// The paper's Kout, in blocks.
    kout: usize,
}

impl TwoQ {
    /// A cache that holds `initial`, oldest first, each seen once. `kin` of its frames, at least one, are for new
    /// blocks; `kout` blocks evicted from those are remembered.
    #[must_use]
    pub fn new(kin: usize, kout: usize, initial: &[Block], blocks: usize) -> Self {
        let mut two_q = Self { lists: Lists::new(), kin: kin.max(1), kout };
        two_q.grow(blocks);
        initial.iter().for_each(|block| two_q.lists.push_back(A1IN, *block));
        two_q
    }

    fn remember(&mut self, block: Block) {
        *self.lists.tag(block) = SEEN;
        self.lists.move_to_back(A1OUT, block);
        if self.lists.len(A1OUT) > self.kout {
            self.lists.pop_front(A1OUT);
        }
    }
}

impl Replacement for TwoQ {
    fn grow(&mut self, blocks: usize) {
        self.lists.grow(blocks);
    }

    fn warm(&self, blocks: &[Block]) {
        self.lists.warm(blocks);
    }

    fn victim(&mut self, incoming: Block, view: &View<'_>) -> Option<Block> {
        let order = if self.lists.len(A1IN) > self.kin { [A1IN, AM] } else { [AM, A1IN] };
        let oldest = |list| self.lists.iter(list).find(|block| view.state(*block).is_evictable());
        let victim = order.into_iter().find_map(oldest)?;
        if self.lists.list_of(incoming) == Some(A1OUT) {
            self.lists.move_to_back(RETURNING, incoming);
        }
        match self.lists.find(victim) {
            Some((A1IN, SEEN | FROM_A1OUT)) => self.remember(victim),
            _ => {
                self.lists.remove(victim);
            }
        }
        Some(victim)
    }

    fn inserted(&mut self, block: Block) {
        let known = self.lists.list_of(block).is_some();
        self.lists.move_to_back(A1IN, block);
        *self.lists.tag(block) = if known { FROM_A1OUT } else { NEW };
    }

    fn referenced(&mut self, _position: Position, block: Block, _outcome: Outcome) {
        let (list, tag) = self.lists.find(block).unwrap_or((A1IN, SEEN));
        if list == AM || tag == FROM_A1OUT {
            self.lists.move_to_back(AM, block);
        }
        if tag != SEEN {
            *self.lists.tag(block) = SEEN;
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

    fn two_q() -> TwoQ {
        TwoQ::new(1, 2, &[], 26)
    }

    #[test]
    fn what_comes_back_stays() {
        // 4 frames, Kin 1, Kout 2. a b c d fill A1in; e: a leaves to A1out; a: known there, b leaves, a enters Am.
        // f: c leaves; g: d leaves, A1out = c d, b forgotten. a hits in Am. b is new again: e leaves, A1out = d e.
        // d: known, f leaves, Am = a d. Both hit.
        assert_eq!(outcomes(two_q(), 4, "abcdeafgabdad"), "MMMMMMMMHMMHH");
    }

    #[test]
    fn a1in_keeps_kin_blocks() {
        // 3 frames, Kin 1. a b c fill A1in; d: a leaves; a comes back: b leaves, a enters Am; b: c leaves, b enters Am. A1in = d has
        // no more than Kin: e takes the place of a, and d is still there.
        assert_eq!(outcomes(two_q(), 3, "abcdabed"), "MMMMMMMH");
    }

    #[test]
    fn quick_succession_is_one_reference() {
        // a hits twice in A1in, and leaves as the oldest all the same.
        assert_eq!(outcomes(two_q(), 2, "aaabca"), "MHHMMM");
    }

    #[test]
    fn an_arrival_is_no_reference() {
        // 3 frames. e pushes b out of A1in. It had been referenced: known, b enters Am and outlives f, g, h. It had
        // not: b is new again and leaves A1in before h.
        assert_eq!(outcomes(two_q(), 3, "a b c d e b f g h b"), "MMMMMMMMMH");
        assert_eq!(outcomes(two_q(), 3, "a +b c d e b f g h b"), "MMMMMMMMM");
        // a is known; it comes back ahead of its reference, and enters Am with it.
        assert_eq!(outcomes(two_q(), 3, "a b c d +a a e f g a"), "MMMMHMMMH");
    }
}
