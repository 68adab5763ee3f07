//! Aggressive: whenever a disk is free, fetch its next missing blocks, unless that does harm.
//!
//! Source: kimbrel96, sections 2.4 and 2.7 (after Cao et al., SIGMETRICS 1995).
//!
//! ```text
//! over the free disks' missing blocks, in increasing order of next use, up to a batch for each disk:
//!     fetch it in place of the furthest block, if that one's next use is later; else stop
//! ```
//!
//! A disk is free when its whole batch has ended. Close to optimal when I/O is the bottleneck and the load is balanced:
//! at most d(1 + F/K) times the optimum. When processing is the bottleneck it fetches more than it needs, and each
//! fetch costs driver time (use `forestall`, which handles both).
//!
//! Cost: a few words per fetch, one comparison per disk per event.

use headstart_types::{keys, KeyTable, Nanos, NEVER};

use super::batch::Batches;
use super::{BatchSize, Knowledge, Round, Strategy};
use crate::row::{Family, PolicyRow};

/// Its row in the registry.
pub static ROW: PolicyRow = PolicyRow {
    name: "aggressive",
    summary: "whenever a disk is free, fetch its next missing blocks unless that does harm",
    source: "kimbrel96, sections 2.4 and 2.7",
    keys: KeyTable::of::<AggressiveKeys>(),
    default_replacement: None,
    family: Family::Hinted(&|keys, context| {
        let keys: &AggressiveKeys = keys.get();
        Ok(context.hinted(Aggressive::new(keys.batch_size.on(context))))
    }),
};

keys! {
    /// Keys of `aggressive`.
    pub struct AggressiveKeys {
        /// Maximum number of requests per batch: a number, `"table6"` (the value of the paper's Table 6 for the number
        /// of disks), or `"device"`. `"device"` is 1 if every fetch takes the same time, twice the number of requests
        /// that the disk serves concurrently, and otherwise a 16th of the cache divided by the number of disks.
        pub batch_size: BatchSize = BatchSize::Table6,
    }
}

/// The aggressive policy.
#[derive(Debug)]
pub struct Aggressive {
    /// Fetches in a batch, at least 1.
    batch_size: u32,
    batches: Batches,
}

impl Aggressive {
    /// A policy that fetches at most `batch_size` blocks for a free disk.
    #[must_use]
    pub fn new(batch_size: u32) -> Self {
        Self { batch_size, batches: Batches::default() }
    }
}

impl Strategy for Aggressive {
    fn decide(&mut self, _now: Nanos, round: &mut Round<'_>) {
        // A disk whose first missing block would do harm has nothing to fetch.
        let harmless_before = if round.free() > 0 { NEVER } else { round.knowledge().residents().furthest_use() };
        for disk in 0..round.view().outstanding.len() {
            if round.knowledge().missing().heads()[disk] < harmless_before && round.is_idle(disk) {
                self.batches.open(disk, self.batch_size);
            }
        }
        self.batches.build(round);
    }

    // The evicted block is needed later than all that stay, so fetching it back would do harm.
    #[inline]
    fn decides_at_once(&self) -> bool {
        true
    }

    #[inline]
    fn decides(&self, knowledge: &Knowledge, outstanding: &[u32]) -> bool {
        knowledge.may_fetch_on_idle_disk(outstanding)
    }
}
