//! LFU: the victim is the resident block with the fewest references; ties go to the least recently used.
//!
//! Source: folklore; constant time after K. Shah, A. Mitra and D. Matani, "An O(1) algorithm for implementing the LFU
//! cache eviction scheme", 2010: blocks of one count are kept together, and a reference moves a block to the next
//! count.
//!
//! ```text
//! arrival:          count = 1, behind the last block with that count
//! first reference:  behind the last block with that count (a demanded block: at once)
//! reference:        count += 1, behind the last block with that count
//! victim:           the front
//! ```
//!
//! Here all blocks are in one list, ordered by count, then by the time of the last reference; each count in use knows
//! its last block. Counts are exact and live as long as the block: an evicted block's count is forgotten, and a block
//! that returns starts at 1 ("in-cache LFU"; "perfect LFU" would keep a count for every block ever seen).
//!
//! Cost: constant per event; 28 bytes per resident block, 8 per block of the universe. Not for changing popularity:
//! blocks that were popular once stay, and new blocks evict each other.

use headstart_types::{Block, KeyTable, Outcome, Position};

use crate::lists::Lists;
use crate::row::{Context, ReplacementRow};
use crate::{Replacement, View};

/// Its row in the registry.
pub static ROW: ReplacementRow = ReplacementRow {
    name: "lfu",
    summary: "evict the block with the fewest references since it came in",
    source: "folklore; Shah, Mitra and Matani, 2010 (constant time)",
    hinted: false,
    keys: KeyTable::NONE,
    build: &|_, context| Ok(Box::new(make(context))),
    join: &|_, context, beside| Ok(beside.join(make(context), context.frames)),
};

fn make(context: &Context) -> Lfu {
    Lfu::new(&context.initial, context.disk_of.len())
}

/// Tags: referenced since it arrived, or not yet.
const SEEN: u16 = 0;
const NEW: u16 = 1;

/// The blocks of one count.
#[derive(Debug, Clone, Copy)]
struct Bucket {
    count: u64,
    /// The block referenced last.
    last: Block,
}

/// The LFU policy.
#[derive(Debug)]
pub struct Lfu {
    /// Ordered by count, then by the last reference.
    order: Lists<1>,
    buckets: Vec<Bucket>,
    /// Buckets without a block.
    unused: Vec<u32>,
    /// For each resident block: its bucket.
    bucket_of: Vec<u32>,
}

impl Lfu {
    /// A cache that holds `initial`, oldest first, each referenced once.
    #[must_use]
    pub fn new(initial: &[Block], blocks: usize) -> Self {
        let mut lfu = Self { order: Lists::new(), buckets: Vec::new(), unused: Vec::new(), bucket_of: Vec::new() };
        lfu.grow(blocks);
        for block in initial {
            lfu.inserted(*block);
            *lfu.order.tag(*block) = SEEN;
        }
        lfu
    }

    fn count(&self, block: Block) -> u64 {
        self.buckets[self.bucket_of[block.index()] as usize].count
    }

    /// Removes `block`; returns its count and the block before it.
    fn take(&mut self, block: Block) -> (u64, Option<Block>) {
        let bucket = self.bucket_of[block.index()];
        let before = self.order.before(block);
        let Bucket { count, last } = &mut self.buckets[bucket as usize];
        if *last == block {
            match before.filter(|before| self.bucket_of[before.index()] == bucket) {
                Some(before) => *last = before,
                None => self.unused.push(bucket),
            }
        }
        let count = *count;
        self.order.remove(block);
        (count, before)
    }

    /// Inserts `block`, which is in no bucket, behind the last block of `count`. The caller guarantees that every block
    /// up to `before` has a lower count, and that the block behind `before`, if it has a lower count too, is in the
    /// last bucket below `count`.
    fn put(&mut self, block: Block, count: u64, before: Option<Block>) {
        // At most two buckets are examined: the one that the block comes from, and the next.
        let mut anchor = before;
        loop {
            let next = match anchor {
                None => self.order.front(0),
                Some(anchor) => self.order.after(anchor),
            };
            match next.filter(|next| self.count(*next) <= count) {
                None => break,
                Some(next) => anchor = Some(self.buckets[self.bucket_of[next.index()] as usize].last),
            }
        }
        let same = anchor.map(|anchor| self.bucket_of[anchor.index()]);
        let bucket = match same.filter(|bucket| self.buckets[*bucket as usize].count == count) {
            Some(bucket) => bucket,
            None => self.unused.pop().unwrap_or_else(|| {
                self.buckets.push(Bucket { count, last: block });
                self.buckets.len() as u32 - 1
            }),
        };
        self.buckets[bucket as usize] = Bucket { count, last: block };
        self.bucket_of[block.index()] = bucket;
        self.order.insert_after(anchor, 0, block);
    }
}

impl Replacement for Lfu {
    fn grow(&mut self, blocks: usize) {
        self.order.grow(blocks);
        self.bucket_of.resize(blocks.max(self.bucket_of.len()), 0);
    }

    fn warm(&self, blocks: &[Block]) {
        self.order.warm(blocks);
        std::hint::black_box(blocks.iter().fold(0, |sum, block| sum ^ self.bucket_of[block.index()]));
    }

    fn victim(&mut self, _incoming: Block, view: &View<'_>) -> Option<Block> {
        let victim = self.order.iter(0).find(|block| view.state(*block).is_evictable())?;
        self.take(victim);
        Some(victim)
    }

    fn inserted(&mut self, block: Block) {
        self.put(block, 1, None);
        *self.order.tag(block) = NEW;
    }

    fn referenced(&mut self, _position: Position, block: Block, _outcome: Outcome) {
        let first = *self.order.tag(block) == NEW;
        let (count, before) = self.take(block);
        self.put(block, if first { count } else { count + 1 }, before);
    }

    fn removed(&mut self, block: Block) {
        self.take(block);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replacement::by_hand::outcomes;

    #[test]
    fn ties_go_to_the_least_recently_used() {
        // 3 frames: a2 b1 c1. d: b leaves, used before c. b: c leaves. c: d leaves. a hits.
        assert_eq!(outcomes(Lfu::new(&[], 26), 3, "abcadbca"), "MMMHMMMH");
    }

    #[test]
    fn an_evicted_count_is_forgotten() {
        // 2 frames: a3 b2; c takes b's place: a3 c1. b, back with 1, takes c's, and c takes b's again.
        assert_eq!(outcomes(Lfu::new(&[], 26), 2, "aaabbcbcba"), "MHHMHMMMMH");
    }

    #[test]
    fn the_first_reference_of_a_prefetched_block_is_its_first() {
        // b1 arrives ahead and is used once: still 1. a2; c takes b's place.
        assert_eq!(outcomes(Lfu::new(&[], 26), 2, "aa +b b c a b"), "MHHMHM");
    }

    #[test]
    fn counts_and_buckets_agree() {
        // a4 b2 c2 d1: taking out what stands alone in a count, or last in it, leaves the order whole.
        let mut lfu = Lfu::new(&[0, 1, 2, 3].map(Block), 4);
        for block in [0, 1, 0, 2, 0] {
            lfu.referenced(0, Block(block), Outcome::HitReady);
        }
        assert!(lfu.order.iter(0).eq([3, 1, 2, 0].map(Block)));
        lfu.removed(Block(2));
        lfu.removed(Block(0));
        lfu.referenced(0, Block(3), Outcome::HitReady);
        assert!(lfu.order.iter(0).eq([1, 3].map(Block)), "both have 2, 1 has not been used since");
        assert_eq!((lfu.count(Block(1)), lfu.count(Block(3))), (2, 2));
    }
}
