//! A lower cache with contents chosen by a test, and one PFC above it.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use headstart_policy::coordinator::{Coordinator, Pfc, PfcSetting, PfcState, Plan};
use headstart_policy::readahead::{Asked, Cached};
use headstart_types::Nanos;

/// Ranges of blocks, the same in each file.
#[derive(Debug, Clone, Default)]
pub struct Holds(pub Vec<RangeInclusive<u64>>);

impl Cached for Holds {
    fn is_cached(&self, _: u32, index: u64) -> bool {
        self.0.iter().any(|range| range.contains(&index))
    }

    fn is_resident(&self, file: u32, index: u64) -> bool {
        self.is_cached(file, index)
    }

    fn file_blocks(&self, _: u32) -> Option<u64> {
        None
    }

    fn frames(&self) -> u32 {
        1 << 20
    }
}

/// PFC above a cache that the test fills and empties.
pub struct Lower {
    pub pfc: Pfc,
    pub cache: BTreeSet<u64>,
    pub full: bool,
}

impl Lower {
    pub fn new(setting: PfcSetting) -> Self {
        Self { pfc: Pfc::new(setting), cache: BTreeSet::new(), full: false }
    }

    /// A request of file 0 for `blocks`; returns (bypass, readmore) of the plan.
    pub fn ask(&mut self, blocks: RangeInclusive<u64>) -> (u32, u32) {
        self.ask_for(0, blocks)
    }

    pub fn ask_for(&mut self, file: u32, blocks: RangeInclusive<u64>) -> (u32, u32) {
        let count = (blocks.end() - blocks.start() + 1) as u32;
        let asked = Asked { file, first: *blocks.start(), count, client: 0, ends_inside: false };
        let cached = Holds(self.cache.iter().map(|index| *index..=*index).collect());
        let Plan { bypass, readmore, .. } = self.pfc.plan(Nanos(0), &asked, &cached, self.full);
        (bypass, readmore)
    }

    pub fn state(&self) -> PfcState {
        self.pfc.state(&Asked { file: 0, first: 0, count: 1, client: 0, ends_inside: false })
    }

    /// (bypass_length, readmore_length).
    pub fn lengths(&self) -> (u64, u64) {
        (self.state().bypass_length, self.state().readmore_length)
    }

    /// (names in the bypass queue, names in the readmore queue).
    pub fn queued(&self) -> (usize, usize) {
        (self.state().bypass_queue, self.state().readmore_queue)
    }
}
