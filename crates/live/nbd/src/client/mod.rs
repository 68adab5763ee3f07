//! The client's side of the protocol ([`Handshake`], [`Replies`]), and a blocking client over sockets: [`Client`].

mod connection;
mod coverage;
mod handshake;
mod pending;
mod reconnecting;
mod replies;
mod socket;
mod stream;
mod trust;

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

pub use handshake::{Handshake, Refused, ServerExport};
pub use pending::Completion;
pub use reconnecting::{Reconnecting, DISK_LIMITS};
pub use replies::{Replies, Reply};
pub use trust::{certificates, check_private, PRIVATE};

use crate::{Command, Errno, Extent, Flags, Uri};
use connection::Connection;

/// Why a request, or a connection, failed. The caller names the server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ClientError {
    /// The server cannot be reached, for this reason.
    #[error("cannot connect: {0}")]
    Connect(String),
    /// The server refused the export.
    #[error("{0}")]
    Refused(Refused),
    /// The server came back with other content.
    #[error("the export has another size than before")]
    Resized,
    /// The connection is lost, with every request in flight on it and every later one.
    #[error("the connection to the server is lost: {0}")]
    Lost(String),
    /// The server replied with an error; the connection stays usable.
    #[error("the server replied: {errno}{}", if message.is_empty() { String::new() } else { format!(" ({message})") })]
    Failed {
        errno: Errno,
        /// The server's message; may be empty.
        message: String,
    },
}

impl From<ClientError> for std::io::Error {
    fn from(error: ClientError) -> Self {
        let kind = match &error {
            ClientError::Failed { errno, .. } => errno.io_kind(),
            ClientError::Lost(_) => std::io::ErrorKind::ConnectionReset,
            ClientError::Connect(_) | ClientError::Refused(_) => std::io::ErrorKind::NotConnected,
            ClientError::Resized => std::io::ErrorKind::Other,
        };
        std::io::Error::new(kind, error)
    }
}

#[expect(clippy::disallowed_methods, reason = "a server is waited for by the machine's clock")]
fn now() -> Instant {
    Instant::now()
}

/// How to connect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectOptions {
    /// Number of connections, at least 1. Only one is used if the export is writable and the server does not promise
    /// that connections see each other's writes.
    pub connection_count: usize,
    /// Maximum time of connecting and negotiating together, per connection.
    pub connect_time_max: Duration,
    /// Maximum time until a reply; four times as long for replies that promise stable storage. A connection with an
    /// overdue request is lost. `None`: unlimited.
    pub reply_time_max: Option<Duration>,
}

impl Default for ConnectOptions {
    fn default() -> Self {
        Self { connection_count: 1, connect_time_max: Duration::from_secs(30), reply_time_max: None }
    }
}

/// An export of a server, over one or more connections. Any thread may submit, and any number of requests may be in
/// flight; each connection has a thread that reads its replies.
#[derive(Debug)]
pub struct Client {
    export: ServerExport,
    connections: Vec<Connection>,
    next_index: AtomicUsize,
}

impl Client {
    /// # Errors
    /// [`ClientError::Connect`] and [`ClientError::Refused`].
    pub fn connect(uri: &Uri, options: ConnectOptions) -> Result<Self, ClientError> {
        let (first, export) = Connection::open(uri, options)?;
        let shared = export.flags.contains(Flags::MULTI_CONN) || export.flags.contains(Flags::READ_ONLY);
        let mut connections = vec![first];
        while shared && connections.len() < options.connection_count {
            let (connection, again) = Connection::open(uri, options)?;
            if again != export {
                let violation = crate::Violation("another connection has another size or other flags".into());
                return Err(ClientError::Refused(violation.into()));
            }
            connections.push(connection);
        }
        Ok(Self { export, connections, next_index: AtomicUsize::new(0) })
    }

    /// The export as the server described it.
    #[must_use]
    pub fn export(&self) -> &ServerExport {
        &self.export
    }

    #[must_use]
    pub fn connection_count(&self) -> usize {
        self.connections.len()
    }

    /// Whether a connection is lost: requests on it fail at once, so connect again.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.connections.iter().any(Connection::is_lost)
    }

    /// Sends a request of `length` bytes at `offset` on the next connection in turn. `done` is called once with the
    /// reply, by the thread that reads replies, or by this thread if the connection is lost. It must be quick and must
    /// not submit, since it blocks the connection's other replies.
    ///
    /// `payload` is the content of a write, and empty otherwise. `buffer` receives the content of a read: it is resized
    /// and returned in [`Completion`] for reuse; pass an empty one otherwise. Blocks while the connection takes no more
    /// bytes.
    ///
    /// # Panics
    /// If `payload` does not fit `command` and `length`.
    pub fn submit(
        &self,
        command: Command,
        offset: u64,
        length: u32,
        payload: &[u8],
        buffer: Vec<u8>,
        done: impl FnOnce(Result<Completion, ClientError>) + Send + 'static,
    ) {
        let expected = if matches!(command, Command::Write { .. }) { length as usize } else { 0 };
        assert_eq!(payload.len(), expected, "a write has as much payload as it is long, no other command has one");
        let turn = self.next_index.fetch_add(1, Ordering::Relaxed);
        self.connections[turn % self.connections.len()].submit(
            command,
            offset,
            length,
            payload,
            buffer,
            Box::new(done),
        );
    }

    /// Like [`Self::submit`] without payload, but the request may wait for [`Self::send_queued`].
    ///
    /// # Panics
    /// If `command` is a write.
    pub fn queue(
        &self,
        command: Command,
        offset: u64,
        length: u32,
        buffer: Vec<u8>,
        done: impl FnOnce(Result<Completion, ClientError>) + Send + 'static,
    ) {
        assert!(!matches!(command, Command::Write { .. }), "a write has payload");
        let turn = self.next_index.fetch_add(1, Ordering::Relaxed);
        self.connections[turn % self.connections.len()].queue(command, offset, length, buffer, Box::new(done));
    }

    /// Sends the queued requests, together on each connection, so that the server can read them at one instant.
    pub fn send_queued(&self) {
        self.connections.iter().for_each(Connection::send_queued);
    }

    /// Like [`Self::submit`], but waits for the reply.
    ///
    /// # Errors
    /// [`ClientError::Failed`] and [`ClientError::Lost`].
    pub fn call(
        &self,
        command: Command,
        offset: u64,
        length: u32,
        payload: &[u8],
        buffer: Vec<u8>,
    ) -> Result<Completion, ClientError> {
        let (sender, receiver) = mpsc::sync_channel(1);
        self.submit(command, offset, length, payload, buffer, move |result| _ = sender.send(result));
        receiver.recv().unwrap_or_else(|_| Err(ClientError::Lost("its reader ended".to_owned())))
    }

    /// Reads `length` bytes, at most [`crate::BlockSizes::bytes_max`], into `buffer`, and returns it.
    ///
    /// # Errors
    /// As [`Self::call`].
    pub fn read_at(&self, offset: u64, length: u32, buffer: Vec<u8>) -> Result<Vec<u8>, ClientError> {
        Ok(self.call(Command::Read { single_chunk: false }, offset, length, &[], buffer)?.buffer)
    }

    /// Reads `range`, in requests of whole blocks as the server takes them.
    ///
    /// # Errors
    /// As [`Self::call`].
    pub fn read_range(&self, range: Range<u64>) -> Result<Vec<u8>, ClientError> {
        let block_bytes = u64::from(self.export.blocks.bytes_min);
        let first = range.start / block_bytes * block_bytes;
        let end = range.end.next_multiple_of(block_bytes).min(self.export.size_bytes);
        let (mut at, mut content) = (first, Vec::new());
        while at < end {
            let length = (end - at).min(self.export.blocks.bytes_max.into());
            let part = self.read_at(at, length as u32, Vec::new())?;
            at += length;
            if content.is_empty() {
                content = part;
                content.reserve_exact((end - at) as usize);
            } else {
                content.extend_from_slice(&part);
            }
        }
        content.truncate((range.end - first) as usize);
        content.drain(..(range.start - first) as usize);
        Ok(content)
    }

    /// Writes at most [`crate::BlockSizes::bytes_max`].
    ///
    /// # Errors
    /// As [`Self::call`].
    ///
    /// # Panics
    /// `content` is longer than 4 GiB.
    pub fn write_at(&self, offset: u64, content: &[u8], fua: bool) -> Result<(), ClientError> {
        let length = u32::try_from(content.len()).expect("a write shorter than 4 GiB");
        self.call(Command::Write { fua }, offset, length, content, Vec::new()).map(drop)
    }

    /// Makes written data stable, on every connection if the server does not promise that one covers all.
    ///
    /// # Errors
    /// As [`Self::call`].
    pub fn flush(&self) -> Result<(), ClientError> {
        if !self.export.flags.contains(Flags::FLUSH) {
            return Ok(());
        }
        self.call(Command::Flush, 0, 0, &[], Vec::new()).map(drop)
    }

    /// The allocation from `offset` on; may cover less than requested.
    ///
    /// # Errors
    /// As [`Self::call`].
    pub fn block_status(&self, offset: u64, length: u32) -> Result<Vec<Extent>, ClientError> {
        Ok(self.call(Command::BlockStatus { one_extent: false }, offset, length, &[], Vec::new())?.extents)
    }
}
