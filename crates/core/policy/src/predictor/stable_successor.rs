//! Stable successor (Noah): predicts that a block's successor several times in a row will follow it again.
//!
//! Source: A. Amer and D. D. E. Long, "Noah: Low-Cost File Access Prediction Through Pairs", IPCCC 2001: a prediction
//! is replaced only when another successor has come `stability` times in a row, so that one stray reference does not
//! destroy what has been learned. From our reading; not checked against the paper's text.
//!
//! Differences: as for [`last_successor`](super::last_successor), whose state it shares. The first prediction, too,
//! needs `stability` occurrences in a row. With `stability = 1` it equals `last-successor`.
//!
//! Cost: as `last-successor`. Not for references that repeat once: the third pass is the first to gain.

use headstart_types::{keys, KeyTable};

use super::last_successor::{Successors, DEPTH_MAX};
use super::{family, ENTRIES};
use crate::row::PolicyRow;

/// Its row in the registry.
pub static ROW: PolicyRow = PolicyRow {
    name: "stable-successor",
    summary: "the block that has followed this one several times in a row",
    source: "Amer and Long, IPCCC 2001 (Noah)",
    keys: KeyTable::of::<StableSuccessorKeys>(),
    default_replacement: Some("lru"),
    family: family(&|keys, _| {
        let keys: &StableSuccessorKeys = keys.get();
        Ok(Box::new(Successors::new(keys.depth, keys.stability, keys.entries as usize)))
    }),
};

keys! {
    /// Keys of `stable-successor`.
    pub struct StableSuccessorKeys {
        /// Number of blocks to prefetch: the successor, its successor, and so on.
        #[schemars(range(min = 1, max = DEPTH_MAX))]
        pub depth: u32 = 1,
        /// Number of times in a row that a successor must occur before it is predicted.
        #[schemars(range(min = 1))]
        pub stability: u32 = 2,
        /// Maximum number of blocks whose successors are remembered. The least recently used one is forgotten first.
        #[schemars(range(min = 1))]
        pub entries: u32 = ENTRIES,
    }
}
