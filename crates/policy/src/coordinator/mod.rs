//! Coordinators: between two levels, they change what the lower one sees of the requests from above.
//!
//! A coordinator knows neither the read-ahead nor the replacement of either level. It sees the requests, may look into
//! the lower cache, and says for each request which prefix bypasses the lower level's own policy and how many blocks
//! beyond the request are asked for in addition. It also says what becomes of blocks that have been sent up.
//!
//! One file each, and one row in [`registry`].

mod average;
mod demote;
mod du;
mod duel;
mod pfc;
mod queue;
pub mod registry;
mod row;
mod uncoordinated;

use headstart_types::Nanos;

pub use average::{Average, Share};
pub use demote::Demote;
pub use du::Du;
pub use duel::Duel;
pub use pfc::{Actions, Contexts, Pfc, PfcSetting, PfcState, Start, Update};
use row::without_keys;
pub use row::{BuildCoordinator, CoordinatorContext, CoordinatorRow};
pub use uncoordinated::Uncoordinated;

use crate::readahead::{Asked, Cached};

/// What the lower level is to do with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Plan {
    /// Blocks from the start of the request that are served past the policy of the lower level: from its cache
    /// without its knowledge (a silent hit), or from below without being stored. At most the request's count.
    pub bypass: u32,
    /// Blocks after the request that its policy is asked for as if they belonged to it; the reply does not wait for
    /// them.
    pub readmore: u32,
    /// The read-ahead of the lower level does not hear of what does not bypass, so that it neither prefetches for it nor
    /// learns from it. Its replacement does: the blocks are looked up, fetched and stored as ever.
    pub quiet: bool,
}

/// What becomes of the blocks of a request once they have been sent up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SentUp {
    /// Nothing: the replacement decides.
    #[default]
    Keep,
    /// They become the first victims, whatever the replacement.
    FirstVictims,
    /// They leave the cache; what the level above evicts comes back instead (exclusive caching).
    Remove,
}

/// A coordinator.
pub trait Coordinator: Send {
    /// A request from above, before the lower level's policy sees it. `full`: the lower cache has no free frame.
    fn plan(&mut self, now: Nanos, asked: &Asked, cached: &dyn Cached, full: bool) -> Plan;

    /// A request from above that was planned at `since` has been answered in full: its last block leaves for the level above.
    fn answered(&mut self, _now: Nanos, _since: Nanos, _asked: &Asked) {}

    /// What becomes of what has been sent up. Asked once.
    fn sent_up(&self) -> SentUp {
        SentUp::Keep
    }
}
