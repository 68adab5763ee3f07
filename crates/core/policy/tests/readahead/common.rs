//! A minimal level: a set of cached blocks; each request is looked up in it, each prefetch is inserted.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use headstart_policy::readahead::{Asked, Cached, Found, ReadAhead, ReadAheadContext, Run};
use headstart_policy::registry::PolicyRow;
use headstart_types::{DriveFacts, KeyError, Nanos, RateBand};

pub const BLOCK_BYTES: u64 = 4096;

/// A cache of `frames` blocks that evicts the oldest arrival first. Prefetches arrive at once or, with `late`, are in
/// flight until they are requested.
pub struct Level {
    pub frames: usize,
    pub late: bool,
    pub file_blocks: Option<u64>,
    /// Whether it was prefetched and not requested since.
    pub cached: BTreeMap<(u32, u64), bool>,
    pub order: VecDeque<(u32, u64)>,
    pub now: u64,
    /// Blocks fetched by prefetches.
    pub prefetched: u64,
    /// Blocks of requests that were absent.
    pub missed: u64,
}

impl Cached for Level {
    fn is_cached(&self, file: u32, index: u64) -> bool {
        self.cached.contains_key(&(file, index))
    }

    fn is_resident(&self, file: u32, index: u64) -> bool {
        self.is_cached(file, index)
    }

    fn file_blocks(&self, _: u32) -> Option<u64> {
        self.file_blocks
    }

    fn frames(&self) -> u32 {
        self.frames as u32
    }

    /// Every file begins where the disk does.
    fn sector(&self, _: u32, index: u64) -> Option<u64> {
        Some(index.saturating_mul(BLOCK_BYTES / 512))
    }
}

impl Level {
    pub fn new(frames: usize) -> Self {
        Self {
            frames,
            late: false,
            file_blocks: None,
            cached: BTreeMap::new(),
            order: VecDeque::new(),
            now: 0,
            prefetched: 0,
            missed: 0,
        }
    }

    fn insert(&mut self, read_ahead: &mut dyn ReadAhead, file: u32, index: u64, prefetch: bool) {
        if self.file_blocks.is_some_and(|blocks| index >= blocks) || self.is_cached(file, index) {
            return;
        }
        if self.cached.len() == self.frames {
            let (file, index) = self.order.pop_front().expect("as many as are cached");
            let unused = self.cached.remove(&(file, index)).expect("cached");
            read_ahead.evicted(file, index, unused);
        }
        self.cached.insert((file, index), prefetch);
        self.order.push_back((file, index));
        self.prefetched += u64::from(prefetch);
    }

    /// One request; returns the runs that `read_ahead` names.
    pub fn ask(&mut self, read_ahead: &mut dyn ReadAhead, asked: Asked) -> Vec<Run> {
        let indices = || (0..u64::from(asked.count)).filter_map(|offset| asked.first.checked_add(offset));
        let found: Vec<Found> = indices()
            .map(|index| match self.cached.get(&(asked.file, index)) {
                None => Found::Absent,
                Some(false) => Found::Ready,
                Some(true) if self.late => Found::UnreadyPrefetched,
                Some(true) => Found::ReadyPrefetched,
            })
            .collect();
        self.missed += found.iter().filter(|found| **found == Found::Absent).count() as u64;
        let mut runs = Vec::new();
        self.now += 1_000_000;
        read_ahead.asked(Nanos(self.now), &asked, &found, self, &mut runs);
        for index in indices() {
            self.insert(read_ahead, asked.file, index, false);
            if let Some(unused) = self.cached.get_mut(&(asked.file, index)) {
                *unused = false;
            }
        }
        for run in &runs {
            for index in (run.first..run.end()).take(1 << 16) {
                self.insert(read_ahead, run.file, index, true);
            }
        }
        runs
    }

    /// A request of file 0, client 0; the runs as (first, count), empty ones left out.
    pub fn read(&mut self, read_ahead: &mut dyn ReadAhead, first: u64, count: u32) -> Vec<(u64, u32)> {
        let runs = self.ask(read_ahead, Asked { file: 0, first, count, client: 0, ends_inside: false });
        runs.iter().filter(|run| run.count > 0).map(|run| (run.first, run.count)).collect()
    }
}

/// A disk of 10,000 cylinders of 1,000 sectors at 40 MB/s: 5 ms on average for a seek, whatever its distance, and 3 ms
/// for half a turn. So 8 ms at 40 MB/s, 320,000 bytes: 78 blocks of 4 KiB.
pub fn drive() -> DriveFacts {
    let (cylinders, bytes_per_second) = (10_000, 40e6);
    let band = RateBand { first: 0, sectors: 10_000_000, first_cylinder: 0, cylinders, bytes_per_second };
    let seek = std::iter::once(Nanos::ZERO).chain((1..cylinders).map(|_| Nanos(5_000_000))).collect();
    DriveFacts {
        seek,
        mean_seek: Nanos(5_000_000),
        half_turn: Nanos(3_000_000),
        bands: [band].into(),
        media_factor: 1.0,
    }
}

/// A level on that disk whose processes read nothing, as far as known.
pub fn context(frames: u32) -> ReadAheadContext {
    ReadAheadContext { block_bytes: BLOCK_BYTES, frames, drive: Some(Arc::new(drive())), future: Some([].into()) }
}

/// Builds a row with some keys, for blocks of 4 KiB.
pub fn build(row: &PolicyRow, keys: &str, frames: u32) -> Box<dyn ReadAhead> {
    try_build(row, keys, &context(frames)).unwrap()
}

/// Builds a row with some keys.
pub fn try_build(row: &PolicyRow, keys: &str, context: &ReadAheadContext) -> Result<Box<dyn ReadAhead>, KeyError> {
    let keys = row.keys.read(keys.parse().expect("keys are TOML"))?;
    row.build_read_ahead(&keys, context)
}

/// The same, by name.
pub fn named(name: &str, keys: &str) -> Box<dyn ReadAhead> {
    build(row(name), keys, 1 << 16)
}

/// The row of a read-ahead.
pub fn row(name: &str) -> &'static PolicyRow {
    headstart_policy::registry::policy(name).unwrap()
}
