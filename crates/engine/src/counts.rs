//! What a level counts. Only [`crate::Level`] adds to it.

use headstart_types::Nanos;

/// Makes the counts of their lines: a line is a counter, and its sum over levels.
macro_rules! counts {
    ($($(#[$doc:meta])* $name:ident: $type:ty,)*) => {
        /// Counts of one level since the start.
        #[derive(Debug, Clone, Default, PartialEq, Eq)]
        pub struct Counts {
            $($(#[$doc])* pub $name: $type,)*
        }

        impl Counts {
            /// Adds what another level has counted.
            pub fn add(&mut self, other: &Counts) {
                $(self.$name += other.$name;)*
            }
        }
    };
}

counts! {
    /// References served or being waited for.
    references: u64,
    /// References that found their block resident.
    hits_ready: u64,
    /// References that found their block in flight, issued at an earlier instant.
    hits_unready: u64,
    /// References that found neither.
    misses: u64,
    /// Sum of the waits of `hits_unready` that have ended.
    hit_wait_ns: u128,
    /// Fetches of a block that a process waited for or was at.
    demand_fetches: u64,
    /// Fetches of other blocks.
    prefetches: u64,
    /// Prefetches whose block was referenced before it was evicted.
    prefetches_used: u64,
    /// The part of `prefetches_used` that was still in flight when referenced.
    prefetches_late: u64,
    /// Blocks evicted.
    evictions: u64,
    /// The part of `references` that wrote.
    writes: u64,
    /// The part of `misses` that wrote: the block took a frame and needed no fetch.
    write_misses: u64,
    /// Blocks written to what is below.
    blocks_written: u64,
    /// Sum over prefetches that were resident when first asked for, of the time since they had arrived.
    lead_time_ns: u128,
    /// Demand misses on blocks that had been evicted to make room for a prefetch.
    pollution: u64,
    /// Service time of prefetches that were evicted unused, each with its share of its request.
    wasted_service: Nanos,
    /// Bypassed blocks that were resident: served without the policy's knowledge.
    silent_hits: u64,
    /// The part of `references` that bypassed the policy.
    bypass_blocks: u64,
    /// The part of `demand_fetches` whose block bypassed the policy. It was not stored, unless the policy asked for it
    /// while it was on its way.
    bypass_fetches: u64,
    /// Blocks that a coordinator added to requests.
    readmore_blocks: u64,
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
