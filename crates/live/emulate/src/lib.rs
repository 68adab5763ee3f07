//! An emulated disk: a file whose reads take as long as on a simulated drive.
//!
//! [`Emulation::mount`] mounts a folder through FUSE. A read of its `disk.img` is a request to a drive of
//! `headstart-device`, with the same code as in the simulator: it arrives at the drive when FUSE delivers it, queues,
//! and is answered with the image's bytes at the time at which the drive completes it. With a loop device and a file
//! system on top, a stock kernel can read from any drive that has a profile. The overhead of FUSE (some 15 us per read)
//! is added; it is measured but not compensated. The disk is read-only.
//!
//! - `clocked.rs`: the drive, driven by its caller's clock: completions equal the simulator's to the nanosecond;
//! - `arm.rs`: the thread that answers on time; `image.rs`: the data;
//! - `files.rs`: the files of the mount; `mounted.rs`: mounting and unmounting; `mount.rs`: the whole;
//! - `disk.rs`: the drive without a mount;
//! - `statistics.rs`: the statistics as JSON; `openmetrics.rs`: the same as OpenMetrics.

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

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error(transparent)]
    Device(#[from] DeviceError),
    #[error(transparent)]
    Key(#[from] KeyError),
    #[error(transparent)]
    Path(#[from] PathError),
    /// The system, while the disk was mounted.
    #[error("the emulated disk has failed: {0}")]
    Fuse(String),
}

impl Error {
    fn path(path: &Path, problem: impl Into<String>, allowed: impl Into<String>) -> Self {
        PathError::new(path, problem, allowed).into()
    }
}
