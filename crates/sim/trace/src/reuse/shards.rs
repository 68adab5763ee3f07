//! Stack distances of a sample of the blocks, scaled to all of them.
//!
//! A block is sampled if its hash is below a limit, so either all or none of its references are. The fraction of hashes
//! below the limit is the rate R: a distance found in the sample stands for a distance larger by 1/R, and a reference
//! for 1/R references. With a fixed sample size, the limit falls to the largest hash whenever there are too many blocks
//! (FAST 2015, section 4.2). The difference between the sample's actual and expected number of references is added to
//! the shortest distances (section 5.3: SHARDS-adj).
//!
//! Memory: 40 bytes per sampled block, and the histogram of distances: exact while R is 1, otherwise with 256 steps
//! between powers of two, so that a distance is known to 0.4 %.

use std::collections::BinaryHeap;

use headstart_types::seed::{finalise, mix, GOLDEN};

use super::{Key, LruStack};

/// Which blocks are sampled.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Sample {
    All,
    /// This share of them, above 0 and at most 1.
    Rate(f64),
    /// At most this many blocks, at least 1: all blocks while they fit, then a decreasing share.
    Blocks(usize),
}

/// Steps between consecutive powers of two.
const STEPS: u64 = 256;

/// Computes the distances of one stream of references.
#[derive(Debug)]
pub struct Shards {
    stack: LruStack<Key>,
    seed: u64,
    /// Blocks whose hash is below it are sampled; `None`: all.
    limit: Option<u64>,
    blocks_max: usize,
    /// With a fixed size: the sampled blocks, largest hash first.
    heap: BinaryHeap<(u64, Key)>,
    /// References by distance, from 1. Only used while every block is sampled.
    exact: Vec<u64>,
    /// Estimated references by step.
    scaled: Vec<f64>,
    references: u64,
    /// Estimated number of references, including first references.
    weight: f64,
    first: f64,
}

impl Shards {
    /// An empty histogram. Samples with different seeds are independent.
    #[must_use]
    pub fn new(sample: Sample, seed: u64) -> Self {
        let (limit, blocks_max) = match sample {
            Sample::Rate(rate) if rate < 1.0 => (Some(limit_of(rate)), usize::MAX),
            Sample::All | Sample::Rate(_) => (None, usize::MAX),
            Sample::Blocks(blocks) => (None, blocks.max(1)),
        };
        Self {
            stack: LruStack::default(),
            seed,
            limit,
            blocks_max,
            heap: BinaryHeap::new(),
            exact: Vec::new(),
            scaled: Vec::new(),
            references: 0,
            weight: 0.0,
            first: 0.0,
        }
    }

    /// The currently sampled share of the blocks.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.limit.map_or(1.0, rate_of)
    }

    /// Whether `block` is currently sampled.
    #[must_use]
    pub fn takes(&self, block: Key) -> bool {
        self.limit.is_none_or(|limit| hash(block, self.seed) < limit)
    }

    /// References `block`. Returns its estimated stack distance; `None` for a first reference and for a block that is
    /// not sampled.
    pub fn reference(&mut self, block: Key) -> Option<u64> {
        self.references += 1;
        let rate = match self.limit {
            None => 1.0,
            Some(limit) if hash(block, self.seed) < limit => rate_of(limit),
            Some(_) => return None,
        };
        self.weight += 1.0 / rate;
        match self.stack.reference(block) {
            Some(distance) => Some(self.count(distance, rate)),
            None => {
                self.first += 1.0 / rate;
                self.remember(block);
                None
            }
        }
    }

    /// Writes `block`: it becomes the most recently used, and nothing is counted.
    pub fn touch(&mut self, block: Key) {
        if self.takes(block) && self.stack.reference(block).is_none() {
            self.remember(block);
        }
    }

    /// Adds `block` to the sample.
    fn remember(&mut self, block: Key) {
        if self.blocks_max < usize::MAX {
            self.heap.push((hash(block, self.seed), block));
            self.shrink();
        }
    }

    fn count(&mut self, distance: u32, rate: f64) -> u64 {
        if self.limit.is_none() {
            let index = distance as usize - 1;
            if index >= self.exact.len() {
                self.exact.resize((index + 1).next_power_of_two(), 0);
            }
            self.exact[index] += 1;
            return distance.into();
        }
        let scaled = ((f64::from(distance) / rate).round() as u64).max(1);
        let step = step_of(scaled);
        if step >= self.scaled.len() {
            self.scaled.resize(step + 1, 0.0);
        }
        self.scaled[step] += 1.0 / rate;
        scaled
    }

    /// Lowers the limit until the sample has the allowed size.
    fn shrink(&mut self) {
        while self.heap.len() > self.blocks_max {
            let Some(&(largest, _)) = self.heap.peek() else { return };
            self.limit = Some(largest);
            while let Some(&(hash, block)) = self.heap.peek().filter(|(hash, _)| *hash >= largest) {
                debug_assert!(hash >= largest);
                self.heap.pop();
                self.stack.forget(block);
            }
        }
    }

    #[must_use]
    pub fn references(&self) -> u64 {
        self.references
    }

    /// Number of distinct blocks; an estimate if only some are sampled.
    #[must_use]
    pub fn distinct(&self) -> u64 {
        (self.stack.len() as f64 / self.rate()).round() as u64
    }

    /// Number of sampled blocks.
    #[must_use]
    pub fn looked_at(&self) -> usize {
        self.stack.len()
    }

    /// Misses of an LRU cache of `blocks` blocks, at least 1: references with a larger distance, and first references.
    #[must_use]
    pub fn misses(&self, blocks: u64) -> f64 {
        let within = usize::try_from(blocks).unwrap_or(usize::MAX).min(self.exact.len());
        let exact: u64 = self.exact[..within].iter().sum();
        if self.limit.is_none() {
            return (self.references - exact) as f64;
        }
        let scaled: f64 = self.scaled.iter().take(step_of(blocks) + 1).sum();
        let adjustment = self.references as f64 - self.weight;
        (self.references as f64 - exact as f64 - scaled - adjustment).clamp(0.0, self.references as f64)
    }

    /// References with a distance of 1, of 2 and 3, of 4 to 7, and so on, without first references; estimates if only
    /// some blocks are sampled.
    #[must_use]
    pub fn by_power_of_two(&self) -> Vec<u64> {
        let mut found = vec![0.0; 64];
        for (index, count) in self.exact.iter().enumerate() {
            found[(index + 1).ilog2() as usize] += *count as f64;
        }
        for (step, count) in self.scaled.iter().enumerate() {
            found[lowest_of(step).ilog2() as usize] += count;
        }
        let end = found.iter().rposition(|count| *count > 0.0).map_or(0, |last| last + 1);
        found[..end].iter().map(|count| count.round() as u64).collect()
    }

    /// Number of first references; an estimate if only some blocks are sampled.
    #[must_use]
    pub fn first_references(&self) -> u64 {
        self.first.round() as u64
    }
}

/// The hash of a block, the same on every machine and uniform over 64 bits: two finalisers of SplitMix64.
#[must_use]
pub fn hash((file, at): Key, seed: u64) -> u64 {
    let mixed = finalise(at ^ (u64::from(file) << 32 | u64::from(file)).wrapping_mul(GOLDEN));
    finalise(mixed ^ mix(seed))
}

fn limit_of(rate: f64) -> u64 {
    (rate * u64::MAX as f64) as u64
}

fn rate_of(limit: u64) -> f64 {
    limit as f64 / u64::MAX as f64
}

/// The histogram step of a distance.
fn step_of(distance: u64) -> usize {
    if distance < STEPS {
        return distance as usize;
    }
    let power = u64::from(distance.ilog2());
    ((power - 7) * STEPS + ((distance >> (power - 8)) - STEPS)) as usize
}

/// The shortest distance of a step.
fn lowest_of(step: usize) -> u64 {
    let step = step as u64;
    match step.checked_sub(STEPS) {
        None => step.max(1),
        Some(above) => (STEPS + above % STEPS) << (above / STEPS),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_in_order_and_contain_their_lowest_distance() {
        let mut last = 0;
        for distance in (1..2000).chain([1 << 20, (1 << 20) + 5000, 1 << 40, u64::MAX]) {
            let step = step_of(distance);
            assert!(step >= last, "{distance}");
            assert_eq!(step_of(lowest_of(step)), step, "{distance}");
            assert!(lowest_of(step) <= distance && distance - lowest_of(step) <= distance / STEPS, "{distance}");
            last = step;
        }
    }

    /// Blocks with a Zipf-like distribution: an index drawn in two stages.
    fn references() -> impl Iterator<Item = Key> {
        (0..300_000u64).map(|index| {
            let uniform = mix(index) >> 11;
            let drawn = uniform as f64 / (1u64 << 53) as f64;
            (0, (30_000.0 * drawn * drawn * drawn) as u64)
        })
    }

    fn distances(sample: Sample, seed: u64) -> Shards {
        let mut shards = Shards::new(sample, seed);
        references().for_each(|block| {
            shards.reference(block);
        });
        shards
    }

    #[test]
    fn a_sample_of_one_is_exact_and_samples_are_near() {
        let exact = distances(Sample::All, 1);
        assert_eq!(exact.misses(u64::MAX), exact.distinct() as f64);
        let whole = distances(Sample::Rate(1.0), 1);
        let roomy = distances(Sample::Blocks(1 << 20), 1);
        for blocks in [1, 10, 1000, 29_000, 40_000] {
            assert_eq!(whole.misses(blocks), exact.misses(blocks));
            assert_eq!(roomy.misses(blocks), exact.misses(blocks));
        }
        for sample in [Sample::Rate(0.1), Sample::Blocks(3000)] {
            const SEEDS: u64 = 8;
            let found: Vec<Shards> = (1..=SEEDS).map(|seed| distances(sample, seed)).collect();
            let mean = |value: &dyn Fn(&Shards) -> f64| found.iter().map(value).sum::<f64>() / SEEDS as f64;
            for blocks in (1..30).map(|step| step * 1000) {
                let error = (mean(&|each| each.misses(blocks)) - exact.misses(blocks)) / exact.references() as f64;
                assert!(error.abs() < 0.02, "{sample:?}, {blocks} blocks: {error}");
            }
            let distinct = mean(&|each| each.distinct() as f64) / exact.distinct() as f64;
            assert!((distinct - 1.0).abs() < 0.03, "{sample:?}: {distinct}");
        }
    }

    #[test]
    fn a_sample_of_fixed_size_keeps_its_size() {
        let found = distances(Sample::Blocks(500), 7);
        assert!(found.looked_at() <= 500 && found.looked_at() > 450, "{}", found.looked_at());
        assert!(found.rate() < 0.05);
    }
}
