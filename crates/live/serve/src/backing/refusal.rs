//! Why a backing cannot be served.

use headstart_types::{printable, without_credentials};

/// Why a backing cannot be served: one line.
#[derive(Debug, thiserror::Error)]
#[error("{}: {}; allowed: {allowed}", printable(&without_credentials(.backing)), without_credentials(.problem))]
pub struct BackingError {
    /// As the user named it.
    pub backing: String,
    /// What is wrong.
    pub problem: String,
    /// What would do.
    pub allowed: &'static str,
}
