//! The Network Block Device protocol: what a server and a client say, without sockets, threads or clocks; and, in
//! [`client`], a blocking client over TCP and Unix sockets on top of it.
//!
//! Fixed newstyle negotiation and the transmission phase with simple and structured replies, as in `doc/proto.md` of the
//! reference implementation. Left out: oldstyle negotiation, resizing, extended (64-bit) headers. The crates `nbd` (one blocking
//! loop, no structured replies, no release for years) and `nbd-async` (drives the kernel's device, has no server) do not fit.
//!
//! A machine of this crate states how many bytes it needs, takes exactly those, and appends what it says to a buffer. The host
//! reads and writes, with whatever it likes: a thread for each connection, poll, io_uring, or a test's vectors. Payload never
//! passes through a machine: the host reads a write's data where it belongs, and sends a read's data from where it lies.
//!
//! A server's connection:
//!
//! 1. [`server::Handshake::new`] greets; while [`server::Handshake::advance`] returns [`server::Progress::Negotiating`], read
//!    [`server::Handshake::needed`] bytes, pass them with the [`Exports`], write what it appended. It ends with a
//!    [`server::Session`].
//! 2. Read [`REQUEST_BYTES`], pass them to [`server::Session::check`]: it returns a valid [`Request`] or the refusal to
//!    send, and how many bytes of payload follow in either case (read or skip them).
//! 3. Answer in any order: [`server::Session::done`], [`server::Session::failed`], [`server::Session::read_header`] and then the
//!    data, [`server::Session::hole`], [`server::Session::block_status`].
//!
//! A client is [`client::Client::connect`] with a [`Uri`], [`client::Client::submit`] with any number of requests in flight, or
//! [`client::Client::read_at`] and its kin, which wait.

pub mod client;
mod errno;
mod export;
mod fuzz;
mod request;
pub mod server;
mod uri;
mod wire;

pub use errno::Errno;
pub use export::{BlockSizes, Export, Exports, Flags};
pub use fuzz::fuzz_nbd;
pub use request::{Command, Extent, Request, REQUEST_BYTES};
pub use uri::{percent_encoded, Address, Trust, Uri, UriError};
pub use wire::Violation;

/// The longest payload of a read or a write, as most clients and servers have it.
pub const PAYLOAD_BYTES_MAX: u32 = 32 << 20;
/// The most extents of one reply to `BLOCK_STATUS`: a client asks for what is missing.
pub const EXTENTS_MAX: usize = 1024;
/// The port that IANA assigned to the protocol.
pub const PORT: u16 = 10809;
