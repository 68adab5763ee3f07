//! Demand fetching: a missing block is fetched when it is referenced; a replacement chooses the victim.

use headstart_types::KeyTable;

use crate::row::{Beside, Family, PolicyRow};

/// Its row in the registry.
pub static ROW: PolicyRow = PolicyRow {
    name: "demand",
    summary: "no prefetching: a missing block is fetched when it is referenced",
    source: "kimbrel96, section 4.1 (with replacement min)",
    keys: KeyTable::NONE,
    default_replacement: Some("lru"),
    family: Family::Demand(&|_, context| context.join(Beside::Blocks)),
};
