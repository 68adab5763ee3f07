//! The server's side of the protocol.

mod handshake;
mod options;
mod replies;
mod requests;

pub use handshake::{Handshake, Progress, Tls};
pub use requests::{Incoming, Refusal};

use crate::Export;

/// A connection in the transmission phase, with the negotiated settings. It is stateless, so any thread of the host can
/// use it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// The chosen export, with the flags sent to the client.
    pub export: Export,
    /// Whether replies are structured.
    pub structured: bool,
    /// Whether the client may send `BLOCK_STATUS`.
    pub allocation: bool,
}
