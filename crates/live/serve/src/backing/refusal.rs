//! Why a backing cannot be served.

use std::borrow::Cow;

use headstart_store::Error;
use headstart_types::{printable, without_credentials};

#[derive(Debug, thiserror::Error)]
#[error("{}: {}; allowed: {allowed}", printable(&without_credentials(.backing)), without_credentials(.problem))]
pub struct BackingError {
    /// Name of the backing as the user wrote it.
    pub backing: String,
    pub problem: String,
    pub allowed: Cow<'static, str>,
}

impl From<BackingError> for Error {
    fn from(error: BackingError) -> Self {
        Self::Source(error.to_string())
    }
}
