//! Why a server does not start, or ends.

use std::io;

use headstart_trace::TraceError;
use headstart_types::{printable, system_says, without_credentials, KeyError};

use crate::backing::BackingError;

/// Why a server does not start, or stops.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An option or a key of the level.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// A trace with hints.
    #[error(transparent)]
    Trace(#[from] TraceError),
    #[error(transparent)]
    Backing(#[from] BackingError),
    /// An address, a file, or a limit of the system.
    #[error("{}: {}", printable(&without_credentials(.what)), without_credentials(&system_says(.source)))]
    Io {
        /// The address, file or limit.
        what: String,
        source: io::Error,
    },
}

impl Error {
    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::Io { what, source }
    }
}
