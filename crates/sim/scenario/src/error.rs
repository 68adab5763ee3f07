//! All errors in a user's input. Each is displayed on one line.

use headstart_device::DeviceError;
use headstart_trace::TraceError;
use headstart_types::{printable, KeyError};

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A key of the scenario or an argument.
    #[error(transparent)]
    Key(#[from] KeyError),
    #[error(transparent)]
    Trace(TraceError),
    #[error(transparent)]
    Device(DeviceError),
    #[error("{}{line}: {}; allowed: {allowed}", printable(path), printable(problem))]
    Scenario {
        path: String,
        /// ", line N", or empty.
        line: String,
        problem: String,
        /// What is allowed.
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
