//! The second pass: caches of all replacements, sizes and samples, side by side.

use std::collections::HashMap;

use headstart_policy::registry::ReplacementRow;
use headstart_trace::reuse::{Key, Shards};
use headstart_types::{Block, Chosen, KeyError};
use rustc_hash::FxBuildHasher;

use super::{scaled, Cache, Line, Point, SizeOf};

pub struct Caches {
    /// Bytes of a block; `None` if the caches hold bytes.
    unit: Option<u64>,
    numbers: HashMap<Key, u32, FxBuildHasher>,
    all: Vec<Running>,
}

struct Running {
    line: usize,
    at: usize,
    seed: usize,
    cache: Cache,
    misses: u64,
    miss_bytes: u128,
}

impl Running {
    fn estimate(&self, rate: f64) -> (f64, f64) {
        (self.misses as f64 / rate, self.miss_bytes as f64 / rate)
    }
}

/// Whether the first pass tells the misses of a replacement.
fn is_by_distances(row: &Chosen<ReplacementRow>, unit: Option<u64>) -> bool {
    row.name() == "lru" && unit.is_some()
}

impl Caches {
    /// Empty caches for blocks of `unit` bytes, or for bytes. Nothing larger than `admitted_max` is admitted.
    pub fn try_new(
        rows: &[Chosen<ReplacementRow>],
        (sizes, unit): (&[SizeOf], Option<u64>),
        admitted_max: Option<u64>,
        samples: &[Shards],
    ) -> Result<Self, KeyError> {
        let mut all = Vec::new();
        for (line, row) in rows.iter().enumerate().filter(|(_, row)| !is_by_distances(row, unit)) {
            for (at, size) in sizes.iter().enumerate() {
                for (seed, sample) in samples.iter().enumerate() {
                    let capacity = scaled(size.blocks.unwrap_or(size.bytes), sample.rate());
                    // Admission depends on the size of the cache that a miniature represents.
                    let admitted_max = unit.map_or(admitted_max.unwrap_or(u64::MAX).min(size.bytes), |_| u64::MAX);
                    let cache = Cache::try_new(row, capacity, admitted_max)?;
                    all.push(Running { line, at, seed, cache, misses: 0, miss_bytes: 0 });
                }
            }
        }
        Ok(Self { unit, numbers: HashMap::default(), all })
    }

    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Returns the number of distinct blocks so far.
    pub fn reference(&mut self, key: Key, size: u64, write: bool, samples: &[Shards]) -> usize {
        if !samples.iter().any(|sample| sample.takes(key)) {
            return self.numbers.len();
        }
        let fresh = self.numbers.len() as u32;
        let block = Block(*self.numbers.entry(key).or_insert(fresh));
        for each in &mut self.all {
            let units = self.unit.map_or(size, |_| 1);
            if samples[each.seed].takes(key) && !each.cache.reference(block, units) && !write {
                each.misses += 1;
                each.miss_bytes += u128::from(size);
            }
        }
        self.numbers.len()
    }

    /// The misses of each replacement.
    pub fn lines(&self, rows: &[Chosen<ReplacementRow>], sizes: &[SizeOf], samples: &[Shards]) -> Vec<Line> {
        let by_distances = |size: &SizeOf| {
            let misses = samples.iter().map(|sample| sample.misses(size.blocks.unwrap_or(0)));
            let with_bytes = |misses| (misses, misses * self.unit.unwrap_or(1) as f64);
            Point::mean(&misses.map(with_bytes).collect::<Vec<_>>())
        };
        let by_caches = |line: usize, at: usize| {
            let mine = self.all.iter().filter(|each| each.line == line && each.at == at);
            Point::mean(&mine.map(|each| each.estimate(samples[each.seed].rate())).collect::<Vec<_>>())
        };
        let line = |(line, row): (usize, &Chosen<ReplacementRow>)| {
            let (method, points) = if is_by_distances(row, self.unit) {
                ("stack-distances", sizes.iter().map(by_distances).collect())
            } else {
                ("caches", (0..sizes.len()).map(|at| by_caches(line, at)).collect())
            };
            Line { replacement: row.name(), method, points }
        };
        rows.iter().enumerate().map(line).collect()
    }
}
