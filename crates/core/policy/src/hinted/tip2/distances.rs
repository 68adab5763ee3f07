//! The value of the last buffer of an LRU cache: hits by stack distance, counted in segments.
//!
//! The blocks of unhinted references are in one recency list, whether they are still cached or not (a *ghost* is not).
//! A reference to the block at depth i would be a hit in every cache of at least i buffers, so the hits at each depth
//! are the marginal hit ratio H'(n) = H(n) - H(n-1) for every size at once. Depths are counted in segments. A segment
//! is valued at the best later segment, because a hit curve may have a cliff behind a plateau: otherwise the buffers of
//! the plateau would be given away one by one and the cliff never reached.
//!
//! Cost: the number of segments per unhinted reference. Memory: 16 bytes for each of two blocks per frame.

use headstart_types::Block;

use crate::lists::Lists;

/// Number of segments; the last half holds ghosts if every frame is in the list.
pub(super) const SEGMENTS: usize = 16;
/// Number of segments that a full cache fills.
const OF_FRAMES: usize = SEGMENTS / 2;
/// Counts are halved after this many references per frame: slower reuse is not seen.
const HISTORY: u64 = 4;

/// The recency list and its hit counts.
#[derive(Debug)]
pub(super) struct Distances {
    /// The most recent block is the last one of the first segment.
    segments: Lists<SEGMENTS>,
    /// Blocks per segment, at least 1.
    length: usize,
    /// For each segment: references that found their block there.
    hits: [u64; SEGMENTS],
    /// References since counts were last halved.
    references: u64,
    references_max: u64,
}

impl Distances {
    /// An empty list for a cache of `frames`.
    pub fn new(frames: u32, blocks: usize) -> Self {
        let mut segments = Lists::new();
        segments.grow(blocks);
        let length = (frames as usize).div_ceil(OF_FRAMES);
        let references_max = HISTORY * u64::from(frames).max(SEGMENTS as u64);
        Self { segments, length, hits: [0; SEGMENTS], references: 0, references_max }
    }

    /// Makes room for block numbers below `blocks`.
    pub fn grow(&mut self, blocks: usize) {
        self.segments.grow(blocks);
    }

    /// Records an unhinted reference to `block`, which becomes the most recent. Returns the block that drops off the
    /// end.
    pub fn refer(&mut self, block: Block) -> Option<Block> {
        let found = self.segments.remove(block);
        if let Some(segment) = found {
            self.hits[segment] += 1;
        }
        self.references += 1;
        if self.references == self.references_max {
            self.references /= 2;
            self.hits.iter_mut().for_each(|hits| *hits /= 2);
        }
        self.put(block, found.unwrap_or(SEGMENTS - 1))
    }

    /// Adds `block`, which is in the cache from the start, as the most recent without a reference.
    pub fn place(&mut self, block: Block) {
        self.put(block, SEGMENTS - 1);
    }

    /// Makes `block` the most recent. `last` is the segment that it was removed from, or the last segment.
    fn put(&mut self, block: Block, last: usize) -> Option<Block> {
        self.segments.push_back(0, block);
        for segment in 0..=last {
            if self.segments.len(segment) <= self.length {
                return None;
            }
            let oldest = self.segments.pop_front(segment).expect("it is longer than its length");
            if segment + 1 == SEGMENTS {
                return Some(oldest);
            }
            self.segments.push_back(segment + 1, oldest);
        }
        None
    }

    /// H' at the depth of `block`, as hits per buffer and reference: the maximum from that depth on. 0 if `block` is
    /// unknown.
    pub fn marginal_hits(&self, block: Block) -> f64 {
        let Some(segment) = self.segments.list_of(block) else { return 0.0 };
        let most = self.hits[segment..].iter().copied().max().unwrap_or(0);
        most as f64 / (self.references.max(1) as f64 * self.length as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(frames: u32, references: &[u32]) -> Distances {
        let mut distances = Distances::new(frames, 64);
        references.iter().for_each(|block| {
            distances.refer(Block(*block));
        });
        distances
    }

    /// 8 frames: segments of one block. A B C A: A is found at depth 3, the third segment.
    #[test]
    fn a_reference_counts_at_its_depth() {
        let distances = after(8, &[0, 1, 2, 0]);
        assert_eq!(distances.hits[2], 1);
        assert_eq!(distances.hits.iter().sum::<u64>(), 1);
        // A is the most recent now: from depth 1 on the best is depth 3, one hit in four references.
        assert!((distances.marginal_hits(Block(0)) - 0.25).abs() < 1e-12);
        // B has sunk to depth 3; C stands at 2. Nothing is known of a block that was never referenced.
        assert!((distances.marginal_hits(Block(1)) - 0.25).abs() < 1e-12);
        assert_eq!(distances.marginal_hits(Block(9)), 0.0);
    }

    /// A loop over 12 blocks through 8 frames: all hits are at depth 12, among the ghosts, and the LRU tail is worth
    /// them.
    #[test]
    fn a_cliff_beyond_the_cache_counts_for_its_tail() {
        let passes: Vec<u32> = (0..36).map(|at| at % 12).collect();
        let distances = after(8, &passes);
        assert_eq!(distances.hits[11], 24);
        let tail = Block(passes[36 - 8]);
        assert!(distances.marginal_hits(tail) > 0.0);
    }

    /// The counts per depth from a naive list of all blocks by recency.
    #[test]
    fn depths_are_those_of_a_naive_stack() {
        let mut draws = crate::conformance::Draws::new(3);
        for frames in [1, 2, 7, 8, 9, 20] {
            let mut distances = Distances::new(frames, 64);
            let (mut stack, mut hits) = (Vec::<u32>::new(), [0; SEGMENTS]);
            let (length, most) = (distances.length, distances.references_max);
            for _ in 1..most.min(200) {
                let block = draws.below(40) as u32;
                if let Some(depth) = stack.iter().rev().position(|other| *other == block) {
                    if depth / length < SEGMENTS {
                        hits[depth / length] += 1;
                    }
                    stack.retain(|other| *other != block);
                }
                stack.push(block);
                let end = stack.len().saturating_sub(length * SEGMENTS);
                stack.drain(..end);
                distances.refer(Block(block));
            }
            assert_eq!(distances.hits, hits, "{frames} frames");
        }
    }
}
