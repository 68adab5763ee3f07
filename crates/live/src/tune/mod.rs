//! Read-ahead of a real device: what it is, what it should be, set and taken back.
//!
//! Linux has one number a backing device, `read_ahead_kb`: how far it reads ahead of a sequential reader. Competitive
//! prefetching (Li, Shen and Papathanasiou, EuroSys 2007) says what it should be: what the device transfers within the
//! average switch, seek and half a turn. [`Tuner`] shows that beside what there is, writes it, and takes it back; the
//! number that it found is in a file of its own before anything is written, so that whatever ends it loses nothing.
//!
//! - `device.rs`: from a path to the backing device and its number; `depth.rs`: what the number should be;
//! - `state.rs`: what was found, on disk; `process.rs`: whether who wrote that still lives;
//! - `tuner.rs`: show, apply, restore; `report.rs`: what they say.
//!
//! All that is read and written lies under [`Roots`], so that tests have machines of their own.

mod depth;
mod device;
mod process;
mod report;
mod roots;
mod state;
#[cfg(test)]
mod testing;
mod tuner;
#[cfg(test)]
mod tuner_tests;

use std::path::{Path, PathBuf};

pub use depth::{Depth, Wanted};
pub use device::{Device, Kind, Number};
use headstart_device::DeviceError;
use headstart_types::KeyError;
pub use process::Process;
pub use report::{Action, Report};
pub use roots::Roots;
pub use state::DEFAULT_STATE;
pub use tuner::{forget_gone, Settings, Tuner};

/// Why nothing was done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The profile.
    #[error(transparent)]
    Profile(#[from] DeviceError),
    /// Another key.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// A file, a device, or a number of one.
    #[error("{}: {problem}; allowed: {allowed}", path.display())]
    Path {
        /// Its path.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
        /// What would do.
        allowed: String,
    },
}

impl Error {
    fn path(path: &Path, problem: impl Into<String>, allowed: impl Into<String>) -> Self {
        Self::Path { path: path.to_owned(), problem: problem.into(), allowed: allowed.into() }
    }
}
