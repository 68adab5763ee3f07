//! What a level counts. Only [`crate::Level`] adds to it.

use headstart_types::Nanos;

/// Counts of one level since the start.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    /// References served or being waited for.
    pub references: u64,
    /// References that found their block resident.
    pub hits_ready: u64,
    /// References that found their block in flight, issued at an earlier instant.
    pub hits_unready: u64,
    /// References that found neither.
    pub misses: u64,
    /// Sum of the waits of `hits_unready` that have ended.
    pub hit_wait: Nanos,
    /// Fetches of a block that a process waited for or was at.
    pub demand_fetches: u64,
    /// Fetches of other blocks.
    pub prefetches: u64,
    /// Prefetches whose block was referenced before it was evicted.
    pub prefetches_used: u64,
    /// The part of `prefetches_used` that was still in flight when referenced.
    pub prefetches_late: u64,
    /// Blocks evicted.
    pub evictions: u64,
    /// The part of `references` that wrote.
    pub writes: u64,
    /// The part of `misses` that wrote: the block took a frame and needed no fetch.
    pub write_misses: u64,
    /// Blocks written to a disk.
    pub blocks_written: u64,
}

impl Counts {
    /// Demand fetches and prefetches.
    #[must_use]
    pub fn fetches(&self) -> u64 {
        self.demand_fetches + self.prefetches
    }

    /// Prefetches evicted, resident or in flight without a reference.
    #[must_use]
    pub fn prefetches_wasted(&self) -> u64 {
        self.prefetches - self.prefetches_used
    }
}
