//! From a scenario's keys to levels, policies and processes of the engine, for every host: the simulator, parallel programs, the block server.

mod level_report;
mod levels;
mod processes;
mod read_ahead_env;
mod served;

pub use level_report::{check, level_report, of_counts, LevelReport};
pub use levels::{first_levels, lower_tier, policy, tiers};
pub use processes::{actions, barrier, costs, meetings, shares, unused_max};
pub use read_ahead_env::{needs_future, ReadAheadEnv};
pub use served::{served, Served};
