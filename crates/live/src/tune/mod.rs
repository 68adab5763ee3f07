//! Read-ahead of a real device: what it is, what it should be, set and taken back.
//!
//! Linux has one number a backing device, `read_ahead_kb`: how far it reads ahead of a sequential reader. Competitive
//! prefetching (Li, Shen and Papathanasiou, EuroSys 2007) says what it should be: what the device transfers within the
//! average switch, seek and half a turn. [`Tuner`] shows that beside what there is, writes it, and takes it back; [`Watch`]
//! follows what the arm really does, as the paper does at run time. The number that was found is in a file of its own before
//! anything is written, so that whatever ends them loses nothing.
//!
//! - `device.rs`, `number.rs`: from a path to the backing device and its read-ahead; `depth.rs`: what the number should be;
//! - `state.rs`: what was found, on disk; `lock.rs`: one at a time; `process.rs`: whether who wrote that still lives;
//! - `cautions.rs`: what speaks against a number;
//! - `tuner.rs`: show, apply, restore; `report.rs`: what they say; `openmetrics.rs`: for metrics collectors;
//! - `instance.rs`: requests and faults as the kernel traces them; `events.rs`: its lines; `faults.rs`: those of faults, within
//!   a budget; `adapt.rs`: from places of I/Os, and from what faults use, to numbers;
//! - `watch.rs`: all of it together, over and over.
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
mod process;
#[cfg(test)]
mod replaced_tests;
mod report;
mod roots;
mod state;
#[cfg(test)]
mod testing;
mod tuner;
#[cfg(test)]
mod tuner_tests;
mod watch;
#[cfg(test)]
mod watch_tests;

use std::path::Path;

use crate::PathError;
pub use adapt::{Pace, Seen};
pub use depth::{Depth, Wanted};
pub use device::{Device, Kind};
use headstart_device::DeviceError;
use headstart_types::KeyError;
pub use instance::{Instance, Source};
pub use number::Number;
pub use process::Process;
pub use report::{Action, Ended, Report, Status};
pub use roots::Roots;
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
    NoArm(#[from] crate::profile::Error),
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
