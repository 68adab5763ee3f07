//! Everything that can be wrong with what a user asks for. Each is displayed on one line.

use headstart_device::DeviceError;
use headstart_trace::TraceError;
use headstart_types::{printable, KeyError};

/// A user's mistake.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A key of the scenario or an argument.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The trace.
    #[error(transparent)]
    Trace(TraceError),
    /// The device's profile.
    #[error(transparent)]
    Device(DeviceError),
    /// The scenario file itself.
    #[error("{}{line}: {}; allowed: {allowed}", printable(path), printable(problem))]
    Scenario {
        /// The file.
        path: String,
        /// ", line N", or empty.
        line: String,
        /// What is wrong with it.
        problem: String,
        /// What would have been accepted.
        allowed: &'static str,
    },
    /// The caller's progress function asked to stop.
    #[error("stopped")]
    Stopped,
}

impl From<TraceError> for Error {
    fn from(error: TraceError) -> Self {
        match error {
            TraceError::Key(key) => Error::Key(key.within("workload")),
            TraceError::Stopped => Error::Stopped,
            other => Error::Trace(other),
        }
    }
}

impl From<DeviceError> for Error {
    fn from(error: DeviceError) -> Self {
        match error {
            DeviceError::Key(key) => Error::Key(key.within("device")),
            other => Error::Device(other),
        }
    }
}
