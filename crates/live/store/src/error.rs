//! Why a store or a server does not start, or ends.

use std::io;

use headstart_trace::TraceError;
use headstart_types::{printable, system_says, without_credentials, KeyError};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Key(#[from] KeyError),
    /// A trace with hints.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The source or the backing, when it is opened.
    #[error("{}", printable(.0))]
    Source(String),
    /// An address, a file, or a limit of the system.
    #[error("{}: {}", printable(&without_credentials(.what)), without_credentials(&system_says(.source)))]
    Io { what: String, source: io::Error },
}

impl Error {
    /// An error of the system about `what`.
    pub fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::Io { what, source }
    }
}
