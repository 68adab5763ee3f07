//! DU: what has just been sent up is the first to go, since the level above has it now.
//!
//! Source: the comparison of zhang-pfc, section 4.3, after Z. Chen, Y. Zhang, Y. Zhou, H. Scott and B. Schiefer,
//! "Empirical Evaluation of Multi-level Buffer Cache Collaboration for Storage Systems", SIGMETRICS 2005. The lower
//! level marks the blocks that it sends up with the highest priority for eviction. It needs nothing from the level
//! above, and changes neither what is prefetched nor when.
//!
//! Readings: the mark stands above every replacement, so that DU works with any of them. Of several marked blocks the
//! one sent up last goes first: zhang-pfc gives the highest priority to those that "have just been sent", and a block
//! that is put at the end of an LRU list from which victims are taken goes before those that were put there earlier. The
//! text of Chen et al. could not be had, so that this order is not checked there. A block that is asked for again while
//! marked loses the mark, and gets it anew when it has been sent up. The host carries it out ([`SentUp::FirstVictims`]);
//! nothing leaves before its frame is needed, which is what differs from `demote`.
//! Cost: none here; no state. Not for a level whose clients share blocks: what one has, another will not find.

use headstart_types::{KeyTable, Nanos};

use super::{without_keys, Coordinator, CoordinatorRow, Plan, SentUp};
use crate::readahead::{Asked, Cached};

/// Its row in the registry.
pub static ROW: CoordinatorRow = CoordinatorRow {
    name: "du",
    summary: "what was just sent up is evicted first",
    source: "zhang-pfc, section 4.3; Chen et al., SIGMETRICS 2005",
    keys: KeyTable::NONE,
    by_position: |_| false,
    build: |keys, _| without_keys(keys, Du),
};

/// What was sent up is evicted first.
#[derive(Debug, Clone, Copy, Default)]
pub struct Du;

impl Coordinator for Du {
    fn plan(&mut self, _: Nanos, _: &Asked, _: &dyn Cached, _: bool) -> Plan {
        Plan::default()
    }

    fn sent_up(&self) -> SentUp {
        SentUp::FirstVictims
    }
}
