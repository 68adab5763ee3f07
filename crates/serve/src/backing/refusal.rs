//! Why a backing cannot be served.

use headstart_types::printable;

/// Why a backing cannot be served: one line.
#[derive(Debug, thiserror::Error)]
#[error("{}: {problem}; allowed: {allowed}", printable(.backing))]
pub struct BackingError {
    /// As the user named it.
    pub backing: String,
    /// What is wrong.
    pub problem: String,
    /// What would do.
    pub allowed: &'static str,
}
