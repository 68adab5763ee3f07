//! Exclusive caching: a block is at one level only, and blocks evicted from the upper level return to the lower one.
//!
//! Source: T. M. Wong and J. Wilkes, "My Cache or Yours? Making Storage More Exclusive", USENIX 2002. The lower level
//! drops what it sends up; the upper one sends each block that it evicts to the lower one in a DEMOTE transfer. Two LRU
//! caches then hold as much as one of their combined size.
//!
//! Differences: a block sent up leaves its frame at once, instead of staying where the next victim is taken, so a
//! re-read by another client before the frame is needed misses. The host carries this out ([`SentUp::Remove`]). In the
//! simulator demoted blocks arrive at once and free of charge, which flatters this coordinator on slow links.
//!
//! Cost: none here; no state.
//!
//! Not for slow links, because each eviction crosses the link (B. S. Gill, FAST 2008, section "The Problems with
//! DEMOTE"); not for clients that share blocks; not for an upper level far larger than the lower one, where demoted
//! blocks are cold.

use headstart_types::{KeyTable, Nanos};

use super::{Coordinator, CoordinatorRow, Plan, SentUp};
use crate::readahead::{Asked, Cached};

/// Its row in the registry.
pub static ROW: CoordinatorRow = CoordinatorRow {
    name: "demote",
    summary: "exclusive caching: blocks sent up are removed, blocks evicted above return",
    source: "Wong and Wilkes, USENIX 2002",
    keys: KeyTable::NONE,
    by_position: |_| false,
    build: |_, _| Ok(Box::new(Demote)),
};

/// The `demote` coordinator.
#[derive(Debug, Clone, Copy, Default)]
pub struct Demote;

impl Coordinator for Demote {
    fn plan(&mut self, _: Nanos, _: &Asked, _: &dyn Cached, _: bool) -> Plan {
        Plan::default()
    }

    fn sent_up(&self) -> SentUp {
        SentUp::Remove
    }
}
