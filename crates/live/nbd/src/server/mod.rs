//! What a server says.

mod handshake;
mod options;
mod replies;
mod requests;

pub use handshake::{Handshake, Progress, Tls};
pub use requests::{Incoming, Refusal};

use crate::Export;

/// A connection in the transmission phase: what was agreed on. Stateless, so that any thread of a host can use it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// The export that the client chose; its flags as they were told.
    pub export: Export,
    /// Replies are structured.
    pub structured: bool,
    /// The client may ask for `BLOCK_STATUS`.
    pub allocation: bool,
}
