//! The input of read-aheads besides their level: the disks below, the processes above.

use std::sync::Arc;

use headstart_policy::readahead::{Needs, Stream};
use headstart_scenario::Scenario;
use headstart_types::DriveFacts;

/// The input of read-aheads besides a policy's context.
#[derive(Debug, Clone)]
pub struct ReadAheadEnv {
    /// Bytes of a block.
    pub block_bytes: u64,
    /// Facts about the disks; `None` if they have no arms, or if no level's policy needs them.
    pub drive: Option<Arc<DriveFacts>>,
    /// By process: the streams that it will read; `None` if the first level's policy does not need them.
    pub future: Option<Arc<[Vec<Stream>]>>,
    /// Files and positions of the blocks that are in the first level from the start, in the order of its context.
    pub initial_places: Arc<[(u32, u64)]>,
}

/// Whether the first level's policy needs the future reads of the processes.
#[must_use]
pub fn needs_future(scenario: &Scenario) -> bool {
    scenario.policy.needs() == Needs::Future
}
