//! An emulated disk: a file whose reads take the time that a simulated drive needs for them.
//!
//! [`Emulation::mount`] mounts a folder through FUSE. A read of its `disk.img` is a request to a drive of
//! `headstart-device`, the same code that the simulator runs: it arrives at the drive when FUSE delivers it, queues, and is
//! answered with bytes of an image at the instant at which the drive finishes it. A stock kernel puts a loop device and a
//! file system on top, and so reads from any drive that has a profile. The time of FUSE itself (some 15 us a read) is
//! added; it is measured and not compensated. The disk is read-only.
//!
//! - `clocked.rs`: the drive, which gets the time from its caller: its ends are the simulator's to the nanosecond;
//! - `arm.rs`: the thread that answers on time; `punctual.rs`: its priority and timers; `image.rs`: the data;
//! - `files.rs`: the files of the mount; `mounted.rs`: mounting and unmounting; `mount.rs`: the whole;
//! - `disk.rs`: the drive without a mount;
//! - `statistics.rs`: the statistics, as JSON; `openmetrics.rs`: the same as OpenMetrics.

mod arm;
#[cfg(test)]
mod arm_tests;
mod clocked;
mod disk;
mod files;
mod image;
mod mount;
mod mounted;
mod openmetrics;
mod statistics;

use std::path::Path;

pub use clocked::ClockedDrive;
pub use disk::EmulatedDisk;
use headstart_device::DeviceError;
use headstart_host::PathError;
use headstart_types::KeyError;
pub use mount::{emulate, Emulation, Ended, Settings};
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
