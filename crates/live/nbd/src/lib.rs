//! The Network Block Device protocol: both sides of it without sockets, threads or clocks; and, in [`client`], a
//! blocking client over TCP and Unix sockets.
//!
//! Supports fixed newstyle negotiation and the transmission phase with simple and structured replies, as in
//! `doc/proto.md` of the reference implementation. Omitted: oldstyle negotiation, resizing, extended (64-bit) headers.
//! The crates `nbd` (one blocking loop, no structured replies, no release for years) and `nbd-async` (drives the
//! kernel's device, has no server) do not fit.
//!
//! A state machine of this crate states how many bytes it needs, takes exactly those, and appends its output to a
//! buffer. The host does the reading and writing by any means: a thread per connection, poll, io_uring, or a test's
//! vectors. Payload never passes through a state machine: the host reads a write's data directly into place, and sends
//! a read's data from where it is.
//!
//! A server's connection:
//!
//! 1. [`server::Handshake::new`] sends the greeting; while [`server::Handshake::advance`] returns
//!    [`server::Progress::Negotiating`], read [`server::Handshake::needed`] bytes, pass them with the [`Exports`], and
//!    write the output. It ends with a [`server::Session`].
//! 2. Read [`REQUEST_BYTES`] and pass them to [`server::Session::check`]: it returns a valid [`Request`] or a refusal
//!    to send, and in either case the number of payload bytes that follow (read or skip them).
//! 3. Answer in any order: [`server::Session::done`], [`server::Session::failed`], [`server::Session::read_header`]
//!    followed by the data, [`server::Session::hole`], [`server::Session::block_status`].
//!
//! A client uses [`client::Client::connect`] with a [`Uri`], then [`client::Client::submit`] with any number of
//! requests in flight, or blocking calls such as [`client::Client::read_at`].

mod access;
pub mod client;
mod errno;
mod export;
mod fuzz;
mod request;
pub mod server;
mod tls_files;
mod uri;
mod wire;

pub use access::{address, AccessKeys};
pub use errno::Errno;
pub use export::{BlockSizes, Export, Exports, Flags};
pub use fuzz::fuzz_nbd;
pub use request::{Command, Extent, Request, REQUEST_BYTES};
pub use tls_files::TlsFiles;
pub use uri::{percent_encoded, Address, Trust, Uri, UriError};
pub use wire::Violation;

/// Maximum payload of a read or a write; most clients and servers use the same limit.
pub const PAYLOAD_BYTES_MAX: u32 = 32 << 20;
/// Maximum number of extents in a reply to `BLOCK_STATUS`; the client requests the rest.
pub const EXTENTS_MAX: usize = 1024;
/// The port that IANA assigned to the protocol.
pub const PORT: u16 = 10809;
