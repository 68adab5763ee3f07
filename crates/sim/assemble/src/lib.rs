//! From a scenario's keys to levels, policies, processes and disks, for every host: the simulator, parallel programs,
//! the block server.

mod devices;
mod level_report;
mod levels;
mod processes;
mod read_ahead_env;
mod served;
mod system;

pub use devices::{check_devices, divide_buffers, drives, segments_min};
pub use level_report::{check, level_report, of_counts, LevelReport};
pub use levels::{first_levels, lower_tier, policy, tiers};
pub use processes::{actions, barrier, costs, meetings, shares, unused_max};
pub use read_ahead_env::{needs_future, ReadAheadEnv};
pub use served::{served, Served};
pub use system::{system, Built, SystemParts};
