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
    pub hit_wait_ns: u128,
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
    /// Blocks written to what is below.
    pub blocks_written: u64,
    /// Sum over prefetches that were resident when first asked for, of the time since they had arrived.
    pub lead_time_ns: u128,
    /// Demand misses on blocks that had been evicted to make room for a prefetch.
    pub pollution: u64,
    /// Service time of prefetches that were evicted unused, each with its share of its request.
    pub wasted_service: Nanos,
    /// Bypassed blocks that were resident: served without the policy's knowledge.
    pub silent_hits: u64,
    /// The part of `references` that bypassed the policy.
    pub bypass_blocks: u64,
    /// The part of `demand_fetches` whose block bypassed the policy. It was not stored, unless the policy asked for it
    /// while it was on its way.
    pub bypass_fetches: u64,
    /// Blocks that a coordinator added to requests.
    pub readmore_blocks: u64,
}

impl Counts {
    /// Adds what another level has counted.
    pub fn add(&mut self, other: &Counts) {
        self.references += other.references;
        self.hits_ready += other.hits_ready;
        self.hits_unready += other.hits_unready;
        self.misses += other.misses;
        self.hit_wait_ns += other.hit_wait_ns;
        self.demand_fetches += other.demand_fetches;
        self.prefetches += other.prefetches;
        self.prefetches_used += other.prefetches_used;
        self.prefetches_late += other.prefetches_late;
        self.evictions += other.evictions;
        self.writes += other.writes;
        self.write_misses += other.write_misses;
        self.blocks_written += other.blocks_written;
        self.lead_time_ns += other.lead_time_ns;
        self.pollution += other.pollution;
        self.wasted_service += other.wasted_service;
        self.silent_hits += other.silent_hits;
        self.bypass_blocks += other.bypass_blocks;
        self.bypass_fetches += other.bypass_fetches;
        self.readmore_blocks += other.readmore_blocks;
    }

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
