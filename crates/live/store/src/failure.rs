//! The error that a reader gets when a read fails: one line.

use headstart_types::printable;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The key.
    #[error("{}: there is no such object", printable(.0))]
    NotFound(String),
    #[error("{0}")]
    Denied(String),
    /// The key.
    #[error("{}: the object has changed since it was first read", printable(.0))]
    Changed(String),
    /// The request cannot be served as it is.
    #[error("{0}")]
    Invalid(String),
    /// Readers hold all memory.
    #[error("{0}")]
    Full(String),
    /// The source fails.
    #[error("{0}")]
    Source(String),
}
