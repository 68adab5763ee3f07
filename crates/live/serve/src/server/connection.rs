//! One client's connection: turns received bytes into requests, and replies into bytes to send. It never blocks.
//!
//! A client that does not read its replies, or sends more than it reads, is not read from until it catches up: each
//! connection has a maximum of requests and bytes in flight, and all connections share the memory in `limits.rs`. In
//! one turn, a connection moves a bounded number of bytes.

use std::io::{self, Read, Write};
use std::sync::Arc;

use headstart_nbd::server::{Handshake, Progress, Session, Tls};
use headstart_nbd::{Command, Errno, Exports, Request, REQUEST_BYTES};
use headstart_types::Nanos;
use rustls::ServerConfig;

use super::limits::{cost_of, Turn, REQUEST_COST};
use super::outgoing::Outgoing;
use super::stream::Stream;
use crate::settings::Settings;
use crate::work::{Answer, Data, Op};

/// Maximum number of requests in flight.
const REQUESTS_MAX: usize = 1024;
/// In a turn, a connection reads at most one request per this many of its bytes, and takes at most this multiple of
/// them in memory.
const BYTES_PER_REQUEST: usize = 8 << 10;
const MEMORY_TIMES: usize = 4;
/// Maximum bytes of requests and replies in flight: two of the longest.
const BYTES_MAX: usize = (64 << 20) + REQUESTS_MAX * REQUEST_COST;
/// Maximum bytes of unsent option replies before the next option is read.
const OPTION_REPLIES_MAX: usize = 64 << 10;
/// Bytes per read, except for payload.
const INBOX_BYTES: usize = 4 << 10;

#[derive(Debug)]
enum State {
    Negotiating(Handshake),
    Transmitting(Session),
}

/// The missing bytes of a write.
#[derive(Debug)]
struct Payload {
    /// `None` if the write was refused: its bytes are skipped.
    request: Option<(Request, usize)>,
    data: Vec<u8>,
    missing: usize,
}

#[derive(Debug)]
pub struct Wanted {
    /// The request as received.
    pub request: Request,
    pub op: Op,
    /// Memory that it takes.
    pub cost: usize,
}

/// Result of parsing the inbox.
enum Parsed {
    /// One item was taken.
    One,
    /// The next item is incomplete.
    Missing,
    /// There is no room for the next item.
    Full,
}

#[derive(Debug)]
pub struct Connection {
    settings: Arc<Settings>,
    stream: Stream,
    state: State,
    inbox: Vec<u8>,
    /// Parsed bytes of the inbox.
    taken: usize,
    payload: Option<Payload>,
    out: Outgoing,
    /// Requests without a reply, and the memory they take.
    requests: usize,
    request_cost: usize,
    /// The next request waits for memory that other clients hold.
    starved: bool,
    /// The inbox may hold another request, which needs this much room.
    full: Option<usize>,
    /// Payload bytes received.
    received: u64,
    /// Bytes moved until the last check, and its time.
    looked: (u64, Nanos),
    readable: bool,
    /// The client sends no more: read the socket up to its end.
    closed: bool,
    writable: bool,
    /// No more requests are accepted; the connection ends when the outstanding ones are answered.
    ending: bool,
    /// Used by STARTTLS; if set, the client must start TLS first.
    tls: Option<Arc<ServerConfig>>,
}

/// The client has disconnected or violated the protocol.
#[derive(Debug)]
pub struct Gone(pub Option<String>);

impl From<io::Error> for Gone {
    fn from(error: io::Error) -> Self {
        let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
        Self(inner.map(|error| format!("TLS: {error}")))
    }
}

impl Connection {
    /// Sends the greeting. With `tls`, the client must start TLS before anything else.
    #[must_use]
    pub fn new(stream: Stream, settings: Arc<Settings>, tls: Option<Arc<ServerConfig>>) -> Self {
        let mut greeting = Vec::new();
        let handshake = Handshake::new(if tls.is_some() { Tls::Required } else { Tls::Never }, &mut greeting);
        let mut connection = Self {
            settings,
            stream,
            state: State::Negotiating(handshake),
            inbox: Vec::new(),
            taken: 0,
            payload: None,
            out: Outgoing::default(),
            requests: 0,
            request_cost: 0,
            starved: false,
            full: None,
            received: 0,
            looked: (0, Nanos::ZERO),
            readable: true,
            closed: false,
            writable: true,
            ending: false,
            tls,
        };
        connection.out.push(greeting);
        connection
    }

    pub fn stream(&mut self) -> &mut Stream {
        &mut self.stream
    }

    /// The export chosen by the client.
    #[must_use]
    pub fn export(&self) -> Option<&str> {
        match &self.state {
            State::Transmitting(session) => Some(&session.export.name),
            State::Negotiating(_) => None,
        }
    }

    /// The system reports data to read, possibly the last (`closed`), or room to write.
    pub fn is_ready(&mut self, readable: bool, closed: bool, writable: bool) {
        self.readable |= readable;
        self.closed |= closed;
        self.writable |= writable;
    }

    /// Stops accepting requests.
    pub fn end(&mut self) {
        self.ending = true;
        // A write without all of its bytes is dropped.
        if let Some(Payload { request: Some((_, cost)), .. }) = self.payload.take() {
            self.requests -= 1;
            self.request_cost -= cost;
        }
    }

    /// Whether everything has been answered and sent.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.ending && self.requests == 0 && self.out.is_empty() && !self.stream.has_unsent()
    }

    /// Whether [`Connection::read`] may find something without a new event.
    pub fn may_read(&self) -> bool {
        !self.ending && !self.starved && self.full.map_or(self.readable, |cost| self.has_room(cost))
    }

    /// Whether [`Connection::write_into`] may continue without a new event.
    pub fn may_write(&self) -> bool {
        self.writable && (self.stream.has_unsent() || !self.out.is_empty())
    }

    /// Memory of requests and replies.
    pub fn held(&self) -> usize {
        self.request_cost + self.out.cost()
    }

    /// The part of [`Connection::held`] for unanswered requests that an export has.
    pub fn under_way(&self) -> usize {
        let incomplete = self.payload.as_ref().and_then(|payload| payload.request).map_or(0, |(_, cost)| cost);
        self.request_cost - incomplete
    }

    /// Whether the next request waits for memory that other clients hold.
    pub fn is_starved(&self) -> bool {
        self.starved
    }

    /// When the client last took replies or sent payload; `now` if there is neither.
    pub fn moves(&mut self, now: Nanos) -> Nanos {
        let moved = self.received + self.out.sent();
        if moved != self.looked.0 || self.out.is_empty() && self.payload.is_none() {
            self.looked = (moved, now);
        }
        self.looked.1
    }

    /// Whether the connection may take `cost` more.
    fn has_room(&self, cost: usize) -> bool {
        self.requests < REQUESTS_MAX && self.held() + cost <= BYTES_MAX
    }

    /// Reads what is available and fits, and appends the requests to `wanted`.
    ///
    /// # Errors
    /// The connection must be closed at once.
    pub fn read(
        &mut self,
        exports: &(impl Exports + ?Sized),
        turn: Turn,
        wanted: &mut Vec<Wanted>,
    ) -> Result<(), Gone> {
        let (held, mut bytes) = (self.held(), 0);
        (self.starved, self.full) = (false, None);
        loop {
            while !self.ending {
                let taken = self.held().saturating_sub(held);
                if wanted.len() >= turn.bytes / BYTES_PER_REQUEST || taken >= turn.bytes * MEMORY_TIMES {
                    self.full = Some(0);
                    return Ok(());
                }
                let turn = Turn { free: turn.free.saturating_sub(taken), ..turn };
                match self.parse(exports, turn, wanted)? {
                    Parsed::One => {}
                    Parsed::Missing => break,
                    Parsed::Full => return Ok(()),
                }
            }
            if self.ending || !self.readable || bytes >= turn.bytes {
                return Ok(());
            }
            if self.taken > 0 {
                self.inbox.drain(..self.taken);
                self.taken = 0;
            }
            let (read, room) = match &mut self.payload {
                // The inbox is empty, so payload goes directly to its buffer.
                Some(Payload { request: Some(_), data, missing }) => {
                    let (start, room) = (data.len() - *missing, (*missing).min(turn.bytes));
                    (self.stream.read(&mut data[start..start + room]).inspect(|read| *missing -= read), room)
                }
                _ => {
                    let start = self.inbox.len();
                    self.inbox.resize(start + INBOX_BYTES, 0);
                    let read = self.stream.read(&mut self.inbox[start..]);
                    self.inbox.truncate(start + *read.as_ref().unwrap_or(&0));
                    (read, INBOX_BYTES)
                }
            };
            bytes += *read.as_ref().unwrap_or(&0);
            self.received += u64::from(self.payload.is_some()) * *read.as_ref().unwrap_or(&0) as u64;
            match read {
                Ok(0) => return Err(Gone(None)),
                // A short read has emptied the socket: the system reports when there is more.
                Ok(read) if read < room && !self.closed && !self.stream.is_encrypted() => self.readable = false,
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.readable = false,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Parses one item of the inbox, if there is room for it.
    fn parse(
        &mut self,
        exports: &(impl Exports + ?Sized),
        turn: Turn,
        wanted: &mut Vec<Wanted>,
    ) -> Result<Parsed, Gone> {
        let here = &self.inbox[self.taken..];
        if let Some(payload) = &mut self.payload {
            let part = here.len().min(payload.missing);
            if payload.request.is_some() {
                let start = payload.data.len() - payload.missing;
                payload.data[start..start + part].copy_from_slice(&here[..part]);
            }
            self.taken += part;
            payload.missing -= part;
            if payload.missing > 0 {
                return Ok(Parsed::Missing);
            }
            let payload = self.payload.take();
            if let Some(Payload { request: Some((request, cost)), data, .. }) = payload {
                let fua = matches!(request.command, Command::Write { fua: true });
                wanted.push(Wanted { request, op: Op::Write { data, fua }, cost });
            }
            return Ok(Parsed::One);
        }
        match &mut self.state {
            State::Negotiating(handshake) => {
                let needed = handshake.needed();
                if self.out.cost() > OPTION_REPLIES_MAX {
                    self.full = Some(BYTES_MAX);
                    return Ok(Parsed::Full);
                }
                if here.len() < needed {
                    return Ok(Parsed::Missing);
                }
                let mut answer = Vec::new();
                let progress = handshake.advance(&here[..needed], exports, &mut answer);
                self.taken += needed;
                self.out.push(answer);
                match progress {
                    Ok(Progress::Negotiating) => {}
                    Ok(Progress::Transmitting(session)) => self.state = State::Transmitting(session),
                    Ok(Progress::Aborted) => self.ending = true,
                    Ok(Progress::StartTls) => self.start_tls()?,
                    Err(violation) => {
                        let _ = self.write_into(OPTION_REPLIES_MAX * 2, &mut Vec::new());
                        return Err(Gone(Some(violation.0)));
                    }
                }
                Ok(Parsed::One)
            }
            State::Transmitting(session) => {
                let Some(header) = here.first_chunk::<REQUEST_BYTES>() else { return Ok(Parsed::Missing) };
                let incoming = session.check(header).map_err(|violation| Gone(Some(violation.0)))?;
                let mut refusal = Vec::new();
                session.refused(&incoming, &mut refusal);
                let cost = cost_of(incoming.request.as_ref().ok(), self.settings.page.0);
                if !self.has_room(cost) {
                    self.full = Some(cost);
                    return Ok(Parsed::Full);
                }
                // Beyond its own share, a client may hold as much as remains free for others.
                let beyond = (self.held() + cost).saturating_sub(turn.own);
                self.starved = beyond > 0 && beyond > turn.free.saturating_sub(cost);
                if self.starved {
                    return Ok(Parsed::Full);
                }
                self.taken += REQUEST_BYTES;
                let payload_bytes = incoming.payload_bytes as usize;
                match incoming.request {
                    Ok(request) => self.accept(request, payload_bytes, cost, wanted),
                    Err(_) => {
                        self.out.push(refusal);
                        if payload_bytes > 0 {
                            self.payload = Some(Payload { request: None, data: Vec::new(), missing: payload_bytes });
                        }
                    }
                }
                Ok(Parsed::One)
            }
        }
    }

    /// Starts TLS after the answer to STARTTLS, the last message in plain text.
    fn start_tls(&mut self) -> Result<(), Gone> {
        self.write_into(OPTION_REPLIES_MAX * 2, &mut Vec::new())?;
        let Some(config) = self.tls.clone().filter(|_| self.out.is_empty()) else { return Err(Gone(None)) };
        // Bytes sent before TLS are not authenticated.
        if self.taken < self.inbox.len() {
            return Err(Gone(Some("more bytes between STARTTLS and TLS".to_owned())));
        }
        Ok(self.stream.secure(config)?)
    }

    fn accept(&mut self, request: Request, payload_bytes: usize, cost: usize, wanted: &mut Vec<Wanted>) {
        let op = match request.command {
            Command::Disconnect => {
                self.end();
                return;
            }
            Command::Write { .. } => {
                let data = vec![0; payload_bytes];
                self.payload = Some(Payload { request: Some((request, cost)), data, missing: payload_bytes });
                None
            }
            Command::Read { .. } => Some(Op::Read),
            Command::Cache => Some(Op::Cache),
            Command::Flush => Some(Op::Flush),
            Command::Trim { fua } => Some(Op::Trim { fua }),
            Command::WriteZeroes { fast: true, .. } => {
                // The backing's speed is unknown.
                self.requests += 1;
                self.request_cost += cost;
                return self.reply(&request, cost, Answer::Failed(Errno::NotSup));
            }
            Command::WriteZeroes { fua, no_hole, .. } => Some(Op::Zero { fua, no_hole }),
            Command::BlockStatus { .. } => Some(Op::Extents),
        };
        self.requests += 1;
        self.request_cost += cost;
        wanted.extend(op.map(|op| Wanted { request, op, cost }));
    }

    /// Answers a request that [`Connection::read`] returned and that takes `cost`.
    pub fn reply(&mut self, request: &Request, cost: usize, answer: Answer) {
        self.requests -= 1;
        self.request_cost -= cost;
        let State::Transmitting(session) = &self.state else { return };
        let mut bytes = Vec::new();
        match answer {
            Answer::Data(data) => {
                session.read_header(request, &mut bytes);
                self.out.push(bytes);
                return self.out.push_data(data, cost);
            }
            Answer::Done => session.done(request.cookie, &mut bytes),
            Answer::Extents(extents) => session.block_status(request, &extents, &mut bytes),
            Answer::Failed(errno) => session.failed(request.cookie, errno, "", &mut bytes),
        }
        self.out.push(bytes);
    }

    /// Writes up to about `bytes`, as far as the system takes them. Appends the data of completely written reads to
    /// `used`.
    ///
    /// # Errors
    /// The client has disconnected.
    pub fn write_into(&mut self, bytes: usize, used: &mut Vec<Data>) -> Result<(), Gone> {
        let until = self.out.sent() + bytes as u64;
        while self.may_write() && self.out.sent() < until {
            let slices = self.out.slices((until - self.out.sent()) as usize);
            let written = if slices.is_empty() {
                self.stream.flush().map(|()| None)
            } else {
                self.stream.write_vectored(&slices).map(Some)
            };
            match written {
                Ok(None) => {}
                Ok(Some(0)) => return Err(Gone(None)),
                Ok(Some(written)) => self.out.wrote(written, used),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.writable = false,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Unsent data of reads of a client that has disconnected.
    pub fn unsent(&mut self) -> impl Iterator<Item = Data> + '_ {
        self.out.unsent()
    }
}
