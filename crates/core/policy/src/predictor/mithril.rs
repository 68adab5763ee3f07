//! Mithril: mines which blocks of moderate frequency are requested together.
//!
//! Source: J. Yang, R. Karimi, T. Sæmundsson, A. Wildani and Y. Vigfusson, "Mithril: Mining Sporadic Associations for
//! Cache Prefetching", SoCC 2017, sections 3 and 4. The table sizes and the defaults are those of its authors' code in
//! libCacheSim (aa0fc40), because the paper's text was not available to check them.
//!
//! ```text
//! recording table   blocks seen fewer than `min_support` times, with the times; a ring
//! mining table      blocks seen at least that often; a block seen more than `max_support` times is dropped
//! mining            when that table is full: a and b are associated if their counts and, one by one, their times agree
//!                   within `lookahead` requests with `confidence` exceptions, and if b is the first such block or a
//!                   request of b came right after or before one of a
//! prefetch table    up to `list` associated blocks for each block, the oldest replaced first
//! ```
//!
//! `version = "libcachesim"` reproduces that code to its exact counts: times have 15 bits, the last time is never
//! compared, the fourth and the eighth comparison read a stored count, and only the first 2,000 rows of a full prefetch
//! table are reused. `"libcachesim-fixed"` compares all times. Both also spare an unused prefetch `chances` times, as
//! here.
//!
//! Difference from both: a request of several blocks counts as several requests at one time.
//!
//! Cost: constant per block; mining compares each of `mining / min_support` rows with the rows that came within
//! `lookahead` after it, once per as many recorded blocks. Memory: `metadata` of the cache's size. Not for frequent
//! blocks, nor for first passes.

use super::mithril_keys::{MithrilKeys, Record};
use super::mithril_tables::{Mining, Rules, Targets};
use super::{family_with, name, places, FileBlock, Version};
use crate::readahead::{Asked, Cached, Found, ReadAhead, ReadAheadContext, Run};
use crate::row::PolicyRow;
use hashbrown::HashMap;
use headstart_types::{KeyTable, Nanos};
use rustc_hash::FxBuildHasher;

/// Its row in the registry.
pub static ROW: PolicyRow = PolicyRow {
    name: "mithril",
    summary: "blocks that are requested at about the same times, mined from the misses",
    source: "Yang, Karimi, Sæmundsson, Wildani and Vigfusson, SoCC 2017",
    keys: KeyTable::of::<MithrilKeys>(),
    default_replacement: Some("lru"),
    family: family_with(
        &|keys, context| {
            let keys: &MithrilKeys = keys.get();
            Ok(Box::new(Mithril::new(keys, context)))
        },
        // With `sequential` it also fetches the next block.
        |keys| keys.get::<MithrilKeys>().sequential > 0,
    ),
};

/// The Mithril predictor.
#[derive(Debug)]
pub struct Mithril {
    version: Version,
    record: Record,
    chances: u32,
    sequential: u32,
    /// Number of requests so far.
    clock: u64,
    mining: Mining,
    targets: Targets,
    /// Blocks evicted since the last request, in order.
    evicted: Vec<FileBlock>,
    /// For prefetched and unrequested blocks: how many times each has been spared.
    spared: HashMap<FileBlock, u32, FxBuildHasher>,
}

impl Mithril {
    /// A predictor for the level of `context`.
    #[must_use]
    pub fn new(keys: &MithrilKeys, context: &ReadAheadContext) -> Self {
        let cache_bytes = u64::from(context.frames).saturating_mul(keys.block_bytes.unwrap_or(context.block_bytes));
        let rules = Rules::of(keys, cache_bytes);
        Self {
            version: keys.version,
            record: keys.record,
            chances: keys.chances,
            sequential: keys.sequential,
            clock: 0,
            targets: Targets::new(&rules),
            mining: Mining::new(rules),
            evicted: Vec::new(),
            spared: HashMap::default(),
        }
    }

    fn is_sequential(&self, (file, index): FileBlock, cached: &dyn Cached) -> bool {
        let before = |back: u32| index.checked_sub(back.into()).is_some_and(|index| cached.is_cached(file, index));
        self.sequential > 0 && (1..=self.sequential).all(before)
    }

    fn learn(&mut self, block: FileBlock, clock: u64) {
        self.mining.record(block, clock, &mut self.targets);
    }

    /// Records the evictions in `range` among those since the last request.
    fn learn_evicted(&mut self, range: std::ops::Range<usize>, clock: u64) {
        if matches!(self.record, Record::Evict | Record::MissEvict) {
            range.for_each(|at| self.learn(self.evicted[at], clock));
        }
    }
}

impl ReadAhead for Mithril {
    fn asked(&mut self, _: Nanos, asked: &Asked, found: &[Found], cached: &dyn Cached, prefetch: &mut Vec<Run>) {
        // The last evictions made room for the blocks that are absent now, earlier ones for the previous request's
        // prefetches.
        let absent = found.iter().filter(|found| **found == Found::Absent).count();
        let (ours, all) = (self.evicted.len().saturating_sub(absent), self.evicted.len());
        self.learn_evicted(0..ours, self.clock.wrapping_sub(1));
        for (block, found) in places(asked).zip(found) {
            self.spared.remove(&block);
            let recorded = match self.record {
                Record::Miss | Record::MissEvict => *found == Found::Absent,
                Record::Evict => false,
                Record::Each => true,
            };
            if recorded && !self.is_sequential(block, cached) {
                self.learn(block, self.clock);
            }
        }
        self.learn_evicted(ours..all, self.clock);
        self.evicted.clear();
        for block in places(asked) {
            self.targets.of(block).iter().for_each(|target| name(*target, prefetch));
            if self.is_sequential(block, cached) && block.1 < u64::MAX {
                name((block.0, block.1 + 1), prefetch);
            }
        }
        self.clock += 1;
    }

    fn evicted(&mut self, file: u32, index: u64, _unused: bool) {
        self.spared.remove(&(file, index));
        if matches!(self.record, Record::Evict | Record::MissEvict) {
            self.evicted.push((file, index));
        }
    }

    fn spares(&mut self, file: u32, index: u64) -> bool {
        if self.chances == 0 {
            return false;
        }
        let spared = self.spared.entry((file, index)).or_insert(0);
        *spared += 1;
        *spared <= self.chances
    }

    fn order_max(&self) -> u32 {
        self.version.order_max()
    }

    fn one_by_one(&self) -> bool {
        self.version != Version::Paper
    }

    fn remembered(&self) -> usize {
        self.mining.len() + self.targets.len() + self.spared.len() + self.evicted.len()
    }
}
