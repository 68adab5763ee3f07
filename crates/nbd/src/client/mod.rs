//! What a client says ([`Handshake`], [`Replies`]), and a blocking client over sockets: [`Client`].

mod handshake;
mod replies;

pub use handshake::{Handshake, Refused, ServerExport};
pub use replies::{Replies, Reply};
