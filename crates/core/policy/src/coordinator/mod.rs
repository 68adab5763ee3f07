//! Coordinators sit between two levels and change what the lower one sees of the requests from above.
//!
//! A coordinator knows neither the read-ahead nor the replacement of either level. It sees the requests, may look into
//! the lower cache, and decides for each request which prefix bypasses the lower level's policy and how many blocks
//! beyond the request are requested in addition. It also decides what happens to blocks that have been sent up.
//!
//! One file each, which holds its row of [`crate::registry`].

mod average;
mod demote;
mod du;
mod duel;
mod pfc;
mod queue;
mod row;
mod uncoordinated;

use headstart_types::Nanos;

pub use average::{Average, Share};
pub use demote::Demote;
pub use du::Du;
pub use duel::Duel;
pub use pfc::{Actions, Contexts, Pfc, PfcSetting, PfcState, Start, Update};
pub use row::{BuildCoordinator, CoordinatorContext, CoordinatorRow};
pub use uncoordinated::Uncoordinated;

use crate::readahead::{Asked, Cached};

/// All coordinators.
pub static ROWS: &[&CoordinatorRow] = &[&uncoordinated::ROW, &du::ROW, &demote::ROW, &pfc::ROW, &duel::ROW];

/// How the lower level treats a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Plan {
    /// Number of blocks from the start of the request that bypass the lower level's policy: served from its cache
    /// without its knowledge (a silent hit), or from below without being stored. At most the request's count.
    pub bypass: u32,
    /// Number of blocks after the request that the lower level's policy sees as part of it. The reply does not wait for
    /// them.
    pub readmore: u32,
    /// Hides the part that does not bypass from the lower level's read-ahead, which then neither prefetches for it nor
    /// learns from it. The replacement still sees it: the blocks are looked up, fetched and stored as usual.
    pub quiet: bool,
}

/// What happens to the blocks of a request once they have been sent up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SentUp {
    /// Nothing; the replacement decides.
    #[default]
    Keep,
    /// They become the first victims, regardless of the replacement.
    FirstVictims,
    /// They are removed; blocks evicted from the level above return instead (exclusive caching).
    Remove,
}

/// Decides how the lower of two levels sees the requests from above.
pub trait Coordinator: Send {
    /// Called for a request from above, before the lower level's policy sees it. `full`: the lower cache has no free
    /// frame.
    fn plan(&mut self, now: Nanos, asked: &Asked, cached: &dyn Cached, full: bool) -> Plan;

    /// Called when a request from above, planned at `since`, has been answered in full: its last block leaves for the
    /// level above.
    fn answered(&mut self, _now: Nanos, _since: Nanos, _asked: &Asked) {}

    /// What happens to blocks sent up. Called once.
    fn sent_up(&self) -> SentUp {
        SentUp::Keep
    }
}
