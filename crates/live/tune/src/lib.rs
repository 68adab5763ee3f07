//! Read-ahead of a real device: the number in effect, the number it should be, setting and restoring it.
//!
//! Linux has one number a backing device, `read_ahead_kb`: how far it reads ahead of a sequential reader. Competitive
//! prefetching (Li, Shen and Papathanasiou, EuroSys 2007) defines a good value: as much as the device transfers
//! during an average switch, seek and half a turn. [`Tuner`] shows it beside the number in effect, writes it, and restores
//! the old one; [`Watch`] follows the arm's real seeks, as the paper does at run time. The old number is in a state file before
//! anything is written, so that it can be restored however the process ends.
//!
//! - `device.rs`, `number.rs`: from a path to the backing device and its read-ahead; `depth.rs`: what the number should be;
//! - `state.rs`: the old numbers, on disk; `lock.rs`: one instance at a time; `process.rs`: whether the writer is still running;
//! - `cautions.rs`: warnings about a number;
//! - `tuner.rs`: show, apply, restore; `report.rs`: their reports; `openmetrics.rs`: for metrics collectors;
//! - `instance.rs`: requests and faults as the kernel traces them; `events.rs`: the lines of the trace; `faults.rs`: fault events,
//!   within a budget; `adapt.rs`: numbers from the places of I/Os and from the pages that faults use;
//! - `watch.rs`: the loop around all of it.
//!
//! All that is read and written lies under [`Roots`], so that tests have machines of their own.

mod adapt;
mod cautions;
mod depth;
mod device;
mod events;
mod faults;
#[cfg(test)]
mod gone_tests;
mod instance;
#[cfg(test)]
mod killed_tests;
mod lock;
mod number;
mod openmetrics;
#[cfg(test)]
mod replaced_tests;
mod report;
mod state;
mod tuner;
#[cfg(test)]
mod tuner_tests;
mod watch;
#[cfg(test)]
mod watch_tests;

use std::path::Path;

pub use adapt::{Pace, Seen};
pub use depth::{Depth, Wanted};
pub use device::{Device, Kind};
use headstart_device::DeviceError;
use headstart_host::PathError;
use headstart_types::KeyError;
pub use instance::{Instance, Source};
pub use number::Number;
pub use report::{Action, Ended, Report, Status};
pub use state::DEFAULT_STATE;
pub use tuner::{forget_gone, Settings, Tuner};
pub use watch::{Watch, WatchSettings};

/// Why nothing was done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The profile.
    #[error(transparent)]
    Profile(#[from] DeviceError),
    /// That of a device without an arm.
    #[error(transparent)]
    NoArm(#[from] headstart_profile::Error),
    /// Another key.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// A file, a device, or a number of one.
    #[error(transparent)]
    Path(#[from] PathError),
}

impl Error {
    fn path(path: &Path, problem: impl Into<String>, allowed: impl Into<String>) -> Self {
        PathError::new(path, problem, allowed).into()
    }
}
