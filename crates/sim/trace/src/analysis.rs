//! How a trace's blocks are used, computed in one pass: request sizes, popularity, reuse, and how they change over
//! time.
//!
//! Distances, reuse times and popularity are exact for up to [`BLOCKS_MAX`] distinct blocks; beyond that they are
//! estimated from a shrinking sample of the blocks ([`crate::reuse`]). Sizes and windows are always exact.
//!
//! Memory: some 150 bytes for each sampled block.

use std::collections::HashMap;

use serde::Serialize;

use crate::hash::Build;
use crate::reuse::{Key, Sample, Shards};
use crate::Record;

/// Maximum number of sampled blocks: 150 MB.
const BLOCKS_MAX: usize = 1 << 20;
const WINDOWS_MAX: usize = 64;
/// Number of ranks kept of the popularity.
const RANKS: usize = 100;
/// Shares of the most popular blocks for which the share of references is reported.
const TOPS: [f64; 3] = [0.001, 0.01, 0.1];

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Analysis {
    /// Requests by size: 1 byte, 2 and 3 bytes, 4 to 7 bytes, and so on.
    pub sizes_by_power_of_two: Vec<u64>,
    pub reuse: Reuse,
    pub popularity: Popularity,
    /// Parts of the trace with the same number of requests each, except for the last.
    pub windows: Vec<Window>,
}

/// When blocks are used again. Histograms of references in powers of two: entry `i` counts values from 2^i to below
/// 2^(i+1).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Reuse {
    /// Sampled share of the distinct blocks; 1: all.
    pub rate: f64,
    /// References to blocks that were not referenced before.
    pub first_references: u64,
    /// By stack distance: distinct blocks since the last reference to the same block, including the block itself.
    pub stack_distances: Vec<u64>,
    /// By the number of references since the last one to the same block; 1: consecutive references.
    pub references_between: Vec<u64>,
    /// By time since then in nanoseconds (0 counts as 1); `None` if the trace carries no times.
    pub times_ns: Option<Vec<u64>>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Popularity {
    /// Share of the distinct blocks that are referenced once, 0 to 1.
    pub once_share: f64,
    /// Pairs of a share of the most popular blocks and their share of the references.
    pub top_shares: Vec<(f64, f64)>,
    /// Pairs of a rank and the references to the block of that rank; ranks grow geometrically from 1.
    pub by_rank: Vec<(u64, u64)>,
    /// Exponent of the best-fitting Zipf distribution: references to rank r fall as r^-alpha. Least squares over the
    /// logarithms of `by_rank`, restricted to blocks that are referenced more than once. `None` for fewer than three
    /// such ranks.
    pub zipf_alpha: Option<f64>,
    /// Quality of the fit: coefficient of determination, at most 1.
    pub zipf_fit: Option<f64>,
}

/// A part of a trace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Window {
    /// Issue time of its first request; zero if the trace carries no times.
    pub start_ns: u64,
    pub requests: u64,
    pub writes: u64,
    /// Requests that start where the previous request to the same file ended.
    pub sequential: u64,
    /// Sum of the request sizes.
    pub bytes: u64,
    /// Blocks touched, summed over the requests.
    pub references: u64,
    /// Blocks touched for the first time in the trace.
    pub first_references: u64,
}

impl Window {
    fn join(&mut self, other: &Window) {
        self.requests += other.requests;
        self.writes += other.writes;
        self.sequential += other.sequential;
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.references += other.references;
        self.first_references += other.first_references;
    }
}

/// A histogram in powers of two whose counts are estimates.
#[derive(Default)]
struct Powers(Vec<f64>);

impl Powers {
    fn add(&mut self, value: u64, weight: f64) {
        let power = value.max(1).ilog2() as usize;
        if power >= self.0.len() {
            self.0.resize(power + 1, 0.0);
        }
        self.0[power] += weight;
    }

    fn counts(&self) -> Vec<u64> {
        self.0.iter().map(|count| count.round() as u64).collect()
    }
}

/// The state kept for each sampled block.
#[derive(Clone, Copy)]
struct BlockUses {
    count: u64,
    reference: u64,
    time_ns: u64,
}

/// Collects the analysis record by record.
pub(crate) struct Analyst {
    sizes: Powers,
    shards: Shards,
    seen: HashMap<Key, BlockUses, Build>,
    between: Powers,
    times: Powers,
    windows: Vec<Window>,
    /// Requests per window.
    span: u64,
}

impl Default for Analyst {
    fn default() -> Self {
        Self::of_at_most(BLOCKS_MAX)
    }
}

impl Analyst {
    fn of_at_most(blocks: usize) -> Self {
        Self {
            sizes: Powers::default(),
            shards: Shards::new(Sample::Blocks(blocks), 1),
            seen: HashMap::default(),
            between: Powers::default(),
            times: Powers::default(),
            windows: Vec::new(),
            span: 1,
        }
    }

    /// Takes the next request. It touches `blocks`, of which `fresh` are touched for the first time.
    pub(crate) fn add(
        &mut self,
        record: &Record,
        blocks: impl ExactSizeIterator<Item = Key>,
        fresh: u64,
        sequential: bool,
    ) {
        self.sizes.add(record.size, 1.0);
        let window = Window {
            start_ns: record.time.0,
            requests: 1,
            writes: u64::from(record.write),
            sequential: u64::from(sequential),
            bytes: record.size,
            references: blocks.len() as u64,
            first_references: fresh,
        };
        let full = self.windows.last().is_none_or(|last| last.requests >= self.span);
        if full && self.windows.len() == WINDOWS_MAX {
            self.halve();
        }
        match self.windows.last_mut() {
            Some(last) if !full => last.join(&window),
            _ => self.windows.push(window),
        }
        for block in blocks {
            self.reference(block, record.time.0);
        }
    }

    fn halve(&mut self) {
        self.span *= 2;
        let pairs = self.windows.chunks(2).map(|pair| {
            let mut joined = pair[0];
            pair[1..].iter().for_each(|other| joined.join(other));
            joined
        });
        self.windows = pairs.collect();
    }

    fn reference(&mut self, block: Key, time_ns: u64) {
        self.shards.reference(block);
        if !self.shards.takes(block) {
            return;
        }
        let now = BlockUses { count: 1, reference: self.shards.references(), time_ns };
        let weight = 1.0 / self.shards.rate();
        self.seen
            .entry(block)
            .and_modify(|seen| {
                self.between.add(now.reference - seen.reference, weight);
                self.times.add(now.time_ns.saturating_sub(seen.time_ns), weight);
                *seen = BlockUses { count: seen.count + 1, ..now };
            })
            .or_insert(now);
        if self.seen.len() > 2 * self.shards.looked_at() + 1 {
            self.forget();
        }
    }

    /// Drops the blocks that are no longer sampled.
    fn forget(&mut self) {
        self.seen.retain(|block, _| self.shards.takes(*block));
    }

    pub(crate) fn finish(mut self, carries_time: bool) -> Analysis {
        self.forget();
        let reuse = Reuse {
            rate: self.shards.rate(),
            first_references: self.shards.first_references(),
            stack_distances: self.shards.by_power_of_two(),
            references_between: self.between.counts(),
            times_ns: carries_time.then(|| self.times.counts()),
        };
        Analysis {
            sizes_by_power_of_two: self.sizes.counts(),
            reuse,
            popularity: popularity(self.seen.into_values().map(|seen| seen.count).collect(), self.shards.rate()),
            windows: self.windows,
        }
    }
}

/// The popularity, given the references to each sampled block and the sampled share `rate`.
fn popularity(mut counts: Vec<u64>, rate: f64) -> Popularity {
    counts.sort_unstable_by(|a, b| b.cmp(a));
    let all: u64 = counts.iter().sum();
    let once = counts.iter().rev().take_while(|count| **count == 1).count();
    let top = |share: f64| {
        let first = ((counts.len() as f64 * share).round() as usize).clamp(1, counts.len());
        (share, counts[..first].iter().sum::<u64>() as f64 / all as f64)
    };
    let ratio = (counts.len() as f64).powf(1.0 / (RANKS - 1) as f64);
    let mut ranks: Vec<usize> = (0..RANKS).map(|step| ratio.powi(step as i32).round() as usize).collect();
    ranks.dedup();
    // The block of rank i in the sample has about rank i / rate in the trace.
    let by_rank: Vec<(u64, u64)> = ranks
        .iter()
        .filter_map(|rank| Some((((*rank as f64 - 0.5) / rate + 0.5).round() as u64, *counts.get(rank - 1)?)))
        .collect();
    let points = by_rank.iter().filter(|(_, count)| *count > 1);
    let points: Vec<(f64, f64)> =
        points.map(|(rank, count)| (libm::log(*rank as f64), libm::log(*count as f64))).collect();
    let fit = line_through(&points);
    Popularity {
        once_share: once as f64 / counts.len() as f64,
        top_shares: TOPS.into_iter().map(top).collect(),
        by_rank,
        zipf_alpha: fit.map(|(slope, _)| -slope),
        zipf_fit: fit.map(|(_, fit)| fit),
    }
}

/// Slope and coefficient of determination of the least-squares line; `None` for too few points.
fn line_through(points: &[(f64, f64)]) -> Option<(f64, f64)> {
    let count = points.len() as f64;
    if points.len() < 3 {
        return None;
    }
    let mean = |part: fn(&(f64, f64)) -> f64| points.iter().map(part).sum::<f64>() / count;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let sum = |term: &dyn Fn(&(f64, f64)) -> f64| points.iter().map(term).sum::<f64>();
    let (xx, yy) = (sum(&|point| (point.0 - x).powi(2)), sum(&|point| (point.1 - y).powi(2)));
    let xy = sum(&|point| (point.0 - x) * (point.1 - y));
    // If all blocks are referenced equally often, a slope of zero fits exactly.
    Some(if yy == 0.0 { (0.0, 1.0) } else { (xy / xx, xy * xy / (xx * yy)) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use headstart_types::seed::GOLDEN;
    use headstart_types::Nanos;

    fn of(blocks: impl Iterator<Item = u64>, most: usize) -> Analysis {
        let (mut analyst, mut known) = (Analyst::of_at_most(most), std::collections::BTreeSet::new());
        for (index, block) in blocks.enumerate() {
            let record =
                Record { time: Nanos(index as u64 * 10), size: 4096, offset: block * 4096, ..Record::default() };
            let fresh = u64::from(known.insert(block));
            analyst.add(&record, [(0, block)].into_iter(), fresh, false);
        }
        analyst.finish(true)
    }

    #[test]
    fn reuse_by_hand() {
        //            a  b  c  a  b  b
        let found = of([1, 2, 3, 1, 2, 2].into_iter(), 100);
        assert_eq!(found.reuse.first_references, 3);
        // Distances 3, 3, 1; references between 3, 3, 1; times 30, 30, 10 ns.
        assert_eq!(found.reuse.stack_distances, [1, 2]);
        assert_eq!(found.reuse.references_between, [1, 2]);
        assert_eq!(found.reuse.times_ns, Some(vec![0, 0, 0, 1, 2]));
        assert_eq!(found.sizes_by_power_of_two, [[0; 12].as_slice(), &[6]].concat());
        assert_eq!(found.popularity.by_rank, [(1, 3), (2, 2), (3, 1)]);
        assert_eq!(found.popularity.once_share, 1.0 / 3.0);
        assert_eq!(found.windows.len(), 6);
    }

    #[test]
    fn windows_that_are_joined_keep_every_sum() {
        let mut analyst = Analyst::default();
        let count = 5 * WINDOWS_MAX as u64 + 3;
        for at in 0..count {
            let record = Record { time: Nanos(at), size: 512 * (1 + at % 4), write: at % 3 == 0, ..Record::default() };
            analyst.add(&record, [(0, at % 100)].into_iter(), u64::from(at < 100), at % 5 == 0);
        }
        let windows = analyst.finish(true).windows;
        let sum = |of: fn(&Window) -> u64| windows.iter().map(of).sum::<u64>();
        assert!(windows.len() <= WINDOWS_MAX);
        assert_eq!([sum(|each| each.requests), sum(|each| each.references)], [count; 2]);
        assert_eq!([sum(|each| each.writes), sum(|each| each.sequential)], [count.div_ceil(3), count.div_ceil(5)]);
        assert_eq!(sum(|each| each.bytes), (0..count).map(|at| 512 * (1 + at % 4)).sum::<u64>());
        assert_eq!(sum(|each| each.first_references), 100);
    }

    /// The block of rank r is referenced 20,000 / r times; references are shuffled.
    fn zipf() -> impl Iterator<Item = u64> {
        let mut all: Vec<u64> =
            (1..=2000u64).flat_map(|rank| std::iter::repeat_n(rank, (20_000 / rank) as usize)).collect();
        all.sort_by_key(|rank| rank.wrapping_mul(GOLDEN));
        let count = all.len();
        (0..count).map(move |index| all[index * 7919 % count])
    }

    #[test]
    fn zipf_is_recognised_from_a_sample_too() {
        let whole = of(zipf(), 1 << 20);
        let alpha = whole.popularity.zipf_alpha.expect("a fit");
        assert!((alpha - 1.0).abs() < 0.02 && whole.popularity.zipf_fit > Some(0.99), "{:?}", whole.popularity);
        let sampled = of(zipf(), 200);
        let alpha = sampled.popularity.zipf_alpha.expect("a fit");
        assert!(sampled.reuse.rate < 0.2 && (alpha - 1.0).abs() < 0.2, "{:?}", sampled.popularity);
        // All windows are full, regardless of their number.
        assert!(whole.windows.len() > WINDOWS_MAX / 2 && whole.windows.len() <= WINDOWS_MAX);
        assert_eq!(whole.windows.iter().map(|window| window.first_references).sum::<u64>(), 2000);
        assert_eq!(whole.windows.iter().map(|window| window.requests).sum::<u64>(), zipf().count() as u64);
    }
}
