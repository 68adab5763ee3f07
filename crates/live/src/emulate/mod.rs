//! An emulated disk: a file whose reads take the time that a simulated drive needs for them.
//!
//! [`Emulation::mount`] mounts a folder through FUSE. A read of its `disk.img` is a request to a drive of
//! `headstart-device`, the very code that the simulator runs: it arrives at the drive when it comes here, queues, and is
//! answered, with the bytes of an image, at the instant at which the drive is done with it. A stock kernel puts a
//! loop device and a file system on top and reads from a disk that one can choose. What FUSE itself takes (some 15 us a
//! read) comes on top; it is measured, and taken off nothing. The disk can be read and not written.
//!
//! - `clocked.rs`: the drive, which gets the time from its caller: its ends are the simulator's to the nanosecond;
//! - `arm.rs`: the thread that answers in time; `punctual.rs`: what helps it; `image.rs`: what is answered;
//! - `files.rs`: the files of the mount; `mounted.rs`: mounting, and above all unmounting; `mount.rs`: the whole;
//! - `statistics.rs`: what has been done, as JSON; `openmetrics.rs`: the same as OpenMetrics.

mod arm;
#[cfg(test)]
mod arm_tests;
mod clocked;
mod files;
mod image;
mod mount;
mod mounted;
mod openmetrics;
mod punctual;
mod statistics;

use std::path::Path;

use crate::PathError;
pub use clocked::ClockedDrive;
use headstart_device::DeviceError;
use headstart_types::KeyError;
pub use mount::{Emulation, Ended, Settings};
pub(crate) use punctual::set_realtime_priority;
pub use statistics::{About, Spread, Statistics};

/// Why there is no emulated disk.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The drive.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// Another key.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// A file or folder.
    #[error(transparent)]
    Path(#[from] PathError),
    /// The system, while it was mounted.
    #[error("the emulated disk has failed: {0}")]
    Fuse(String),
}

impl Error {
    fn path(path: &Path, problem: impl Into<String>, allowed: impl Into<String>) -> Self {
        PathError::new(path, problem, allowed).into()
    }
}
