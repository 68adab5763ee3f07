//! Exclusive caching: a block is at one level or the other, and what the upper one evicts comes back down.
//!
//! Source: T. M. Wong and J. Wilkes, "My Cache or Yours? Making Storage More Exclusive", USENIX 2002. The lower level
//! gives up what it sends up; the upper one hands each block that it evicts to the lower one, by a DEMOTE transfer.
//! Two LRU caches then hold as much as one of their summed size.
//!
//! What differs: the block leaves its frame at once, instead of staying where the next victim is taken, so that a
//! re-read from another client before the frame is needed misses. The host carries it out ([`SentUp::Remove`]). The
//! simulated one lets what goes down a link arrive at once and charges nothing for it, which flatters this where links
//! are slow.
//! Cost: none here; no state. Not for a slow link, since each eviction crosses it (B. S. Gill, FAST 2008, section
//! "The Problems with DEMOTE"), nor for clients that share blocks, nor with an upper level far larger than the lower
//! one, where what comes down is cold.

use headstart_types::{KeyTable, Nanos};

use super::{without_keys, Coordinator, CoordinatorRow, Plan, SentUp};
use crate::readahead::{Asked, Cached};

/// Its row in the registry.
pub static ROW: CoordinatorRow = CoordinatorRow {
    name: "demote",
    summary: "exclusive caching: what was sent up leaves, what is evicted above comes back",
    source: "Wong and Wilkes, USENIX 2002",
    keys: KeyTable::NONE,
    by_position: |_| false,
    build: |keys, _| without_keys(keys, Demote),
};

/// What was sent up leaves; what is evicted above comes back.
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
