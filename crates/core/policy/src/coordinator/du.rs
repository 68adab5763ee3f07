//! DU: blocks just sent up are evicted first, because the level above now has them.
//!
//! Source: the comparison of zhang-pfc, section 4.3, after Z. Chen, Y. Zhang, Y. Zhou, H. Scott and B. Schiefer,
//! "Empirical Evaluation of Multi-level Buffer Cache Collaboration for Storage Systems", SIGMETRICS 2005. The lower
//! level marks the blocks that it sends up with the highest priority for eviction. It needs nothing from the level
//! above, and changes neither what is prefetched nor when.
//!
//! Readings: the mark takes precedence over every replacement, so DU works with any of them. Of several marked blocks
//! the one sent up last is evicted first: zhang-pfc gives the highest priority to those that "have just been sent", and
//! a block put at the eviction end of an LRU list goes before those put there earlier. The text of Chen et al. was not
//! available, so this order is not checked against it. A marked block that is requested again loses the mark, and gets
//! it again when it has been sent up. The host carries this out ([`SentUp::FirstVictims`]); unlike with `demote`,
//! nothing leaves before its frame is needed.
//!
//! Cost: none here; no state. Not for a level whose clients share blocks: a block that one client has read is evicted
//! before another can hit it.

use headstart_types::{KeyTable, Nanos};

use super::{Coordinator, CoordinatorRow, Plan, SentUp};
use crate::readahead::{Asked, Cached};

/// Its row in the registry.
pub static ROW: CoordinatorRow = CoordinatorRow {
    name: "du",
    summary: "blocks just sent up are evicted first",
    source: "zhang-pfc, section 4.3; Chen et al., SIGMETRICS 2005",
    keys: KeyTable::NONE,
    by_position: |_| false,
    build: |_, _| Ok(Box::new(Du)),
};

/// The `du` coordinator.
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
