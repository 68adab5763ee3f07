//! Read-ahead of a real device: shows the current and the recommended value, sets it and restores it.
//!
//! Linux has one read-ahead per backing device, `read_ahead_kb`: how far it reads ahead of a sequential reader.
//! Competitive prefetching (Li, Shen and Papathanasiou, EuroSys 2007) defines a good value: the amount that the device
//! transfers during an average switch, which is a seek and half a revolution. [`Tuner`] shows it beside the current
//! value, writes it, and restores the old one; [`Watch`] follows the arm's real seeks, as the paper does at run time.
//! The old value is written to a state file before anything changes, so that it can be restored however the process
//! ends.
//!
//! - `device.rs`, `number.rs`: from a path to the backing device and its read-ahead; `depth.rs`: the recommended value;
//! - `state.rs`: the old values, on disk; `lock.rs`: one instance at a time; `process.rs`: whether the writer is still
//!   running;
//! - `cautions.rs`: warnings;
//! - `tuner.rs`: show, apply, restore; `report.rs`: their reports; `openmetrics.rs`: for metrics collectors;
//! - `instance.rs`: kernel traces of requests and faults; `events.rs`: lines of the trace; `faults.rs`: fault events
//!   within a budget; `adapt.rs`: the read-ahead from request positions and used read-around;
//! - `watch.rs`: the loop of `tune --watch`.
//!
//! All paths lie under [`Roots`], so that tests can use machines of their own.

mod adapt;
#[cfg(test)]
mod calls_tests;
mod cautions;
pub mod command;
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
    /// An error of the profile.
    #[error(transparent)]
    Profile(#[from] DeviceError),
    /// An error of the profile of a device without an arm.
    #[error(transparent)]
    NoArm(#[from] headstart_profile::Error),
    /// An invalid key.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// An error of a file or device.
    #[error(transparent)]
    Path(#[from] PathError),
}

impl Error {
    fn path(path: &Path, problem: impl Into<String>, allowed: impl Into<String>) -> Self {
        PathError::new(path, problem, allowed).into()
    }
}
