//! A level's part of a result.

use headstart_engine::{Counts, CountsReport, LevelCountsReport};
use schemars::JsonSchema;
use serde::Serialize;

/// A level's part of a result: the JSON of the contract.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct LevelReport {
    pub name: String,
    pub blocks: u32,
    #[serde(flatten)]
    pub counts: CountsReport,
    /// Blocks that were dirty at the end: written, and not yet on a device.
    pub dirty_blocks: u64,
    #[serde(flatten)]
    pub prefetching: LevelCountsReport,
    pub link_ns: u64,
}

/// Checks the identities of a level's counts.
///
/// # Panics
/// If they do not hold, which is a bug.
pub fn check(counts: &Counts) {
    assert_eq!(counts.references, counts.hits_ready + counts.hits_unready + counts.misses);
    assert!(counts.prefetches_used <= counts.prefetches);
    assert!(counts.prefetches_late <= counts.prefetches_used);
    assert!(counts.demand_fetches + counts.write_misses <= counts.misses, "nothing is fetched on demand unasked");
}

/// A level of `frames` frames with nothing but counts.
#[must_use]
pub fn of_counts(counts: &Counts, (name, frames): (&str, u32), block_bytes: u64) -> LevelReport {
    LevelReport {
        name: name.to_owned(),
        blocks: frames,
        counts: counts.report(),
        dirty_blocks: 0,
        prefetching: counts.level_report(block_bytes),
        link_ns: 0,
    }
}

/// The report of a level of `frames` frames called `name`, whose counts are checked.
///
/// # Panics
/// If the counts do not add up, which is a bug.
#[must_use]
pub fn level_report(counts: &Counts, name: &str, frames: u32, block_bytes: u64) -> LevelReport {
    check(counts);
    of_counts(counts, (name, frames), block_bytes)
}
