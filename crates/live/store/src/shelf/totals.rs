//! What the report says of bytes.

use schemars::JsonSchema;
use serde::Serialize;

/// Requests and bytes by what happened to them, over the whole time.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Totals {
    /// Requests of readers.
    pub read_requests: u64,
    /// Bytes that readers asked for.
    pub read_bytes: u64,
    /// The part that was in memory.
    pub memory_hit_bytes: u64,
    /// The part that was on its way.
    pub coming_bytes: u64,
    /// The part that the spill had.
    pub spill_hit_bytes: u64,
    /// The part that had to be fetched from the source.
    pub missed_bytes: u64,
    /// Bytes fetched ahead of their use.
    pub prefetched_bytes: u64,
    /// The part of them that was evicted before any use.
    pub wasted_bytes: u64,
    /// Bytes that arrived from the source.
    pub fetched_bytes: u64,
    /// Bytes read from the spill.
    pub loaded_bytes: u64,
    /// Bytes written to the spill.
    pub stored_bytes: u64,
    /// Bytes that left the memory.
    pub evicted_bytes: u64,
    /// Requests that failed.
    pub failed_requests: u64,
}
