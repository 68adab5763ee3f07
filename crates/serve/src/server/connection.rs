//! One client's connection: bytes in, requests out; replies in, bytes out. It never blocks.
//!
//! A client that does not read its replies, or sends more than it has read, is not read from until it has: each connection has
//! so many requests and bytes under way at most.

use std::collections::VecDeque;
use std::io::{self, IoSlice, Read, Write};
use std::sync::Arc;

use headstart_nbd::server::{Handshake, Progress, Session, Tls};
use headstart_nbd::{Command, Errno, Exports, Request, REQUEST_BYTES};
use rustls::ServerConfig;

use super::stream::Stream;
use crate::work::{Answer, Data, Op};

/// Requests under way at most.
const REQUESTS_MAX: usize = 1024;
/// Bytes of requests and replies under way, but for a first request, which may have more.
const BYTES_MAX: usize = 64 << 20;
/// Bytes read at a time, but for payload.
const INBOX_BYTES: usize = 4 << 10;
/// Replies up to this length are written together.
const SMALL_BYTES: usize = 8 << 10;
/// Pieces of memory written at a time at most: so many the system takes.
const SLICES_MAX: usize = 1024;

/// What goes out.
#[derive(Debug)]
enum Part {
    Own(Vec<u8>),
    /// Of a read's reply.
    Data(Data),
}

impl Part {
    fn length(&self) -> usize {
        match self {
            Self::Own(bytes) => bytes.len(),
            Self::Data(data) => data.length(),
        }
    }
}

#[derive(Debug)]
enum State {
    Negotiating(Handshake),
    Transmitting(Session),
}

/// Bytes of a write that have not come yet, and what to do with them.
#[derive(Debug)]
struct Payload {
    /// `None`: it was refused, and its bytes are passed over.
    request: Option<Request>,
    data: Vec<u8>,
    missing: usize,
}

/// A request for an export.
#[derive(Debug)]
pub struct Wanted {
    /// As it came.
    pub request: Request,
    /// What is wanted.
    pub op: Op,
}

/// A connection.
#[derive(Debug)]
pub struct Connection {
    stream: Stream,
    state: State,
    inbox: Vec<u8>,
    /// Bytes of the inbox that have been taken.
    taken: usize,
    payload: Option<Payload>,
    out: VecDeque<Part>,
    /// Bytes of the first of them that have been written.
    written: usize,
    out_bytes: usize,
    requests: usize,
    request_bytes: usize,
    readable: bool,
    /// The client sends no more: what the socket holds is read up to its end.
    closed: bool,
    writable: bool,
    /// No more requests come: it is over when what is under way has been replied to.
    ending: bool,
    /// What STARTTLS starts; nothing else goes on before it.
    tls: Option<Arc<ServerConfig>>,
}

/// The client is gone, or has broken the protocol.
#[derive(Debug)]
pub struct Gone(pub Option<String>);

impl From<io::Error> for Gone {
    fn from(error: io::Error) -> Self {
        let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
        Self(inner.map(|error| format!("TLS: {error}")))
    }
}

impl Connection {
    /// Greets. With `tls` a client has to start that before anything else.
    #[must_use]
    pub fn new(stream: Stream, tls: Option<Arc<ServerConfig>>) -> Self {
        let mut greeting = Vec::new();
        let handshake = Handshake::new(if tls.is_some() { Tls::Required } else { Tls::Never }, &mut greeting);
        let mut connection = Self {
            stream,
            state: State::Negotiating(handshake),
            inbox: Vec::new(),
            taken: 0,
            payload: None,
            out: VecDeque::new(),
            written: 0,
            out_bytes: 0,
            requests: 0,
            request_bytes: 0,
            readable: true,
            closed: false,
            writable: true,
            ending: false,
            tls,
        };
        connection.send(greeting);
        connection
    }

    /// The socket.
    pub fn stream(&mut self) -> &mut Stream {
        &mut self.stream
    }

    /// The export that the client has chosen.
    #[must_use]
    pub fn export(&self) -> Option<&str> {
        match &self.state {
            State::Transmitting(session) => Some(&session.export.name),
            State::Negotiating(_) => None,
        }
    }

    /// The system says that there is something to read, the last of it perhaps, or room to write.
    pub fn is_ready(&mut self, readable: bool, closed: bool, writable: bool) {
        self.readable |= readable;
        self.closed |= closed;
        self.writable |= writable;
    }

    /// No more requests are taken.
    pub fn end(&mut self) {
        self.ending = true;
        // A write whose bytes have not all come is none.
        if self.payload.take().is_some_and(|payload| payload.request.is_some()) {
            self.requests -= 1;
        }
    }

    /// Whether all is said.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.ending && self.requests == 0 && self.out.is_empty() && !self.stream.has_unsent()
    }

    /// Whether [`Connection::read`] may find something though the system says nothing new.
    #[must_use]
    pub fn may_read(&self) -> bool {
        self.readable && self.has_room()
    }

    fn has_room(&self) -> bool {
        let bytes = self.request_bytes + self.out_bytes;
        !self.ending && (self.requests == 0 || (self.requests < REQUESTS_MAX && bytes < BYTES_MAX))
    }

    /// Reads what there is, as far as there is room for it, and appends the requests to `wanted`.
    ///
    /// # Errors
    /// The connection is to be closed at once.
    pub fn read(&mut self, exports: &(impl Exports + ?Sized), wanted: &mut Vec<Wanted>) -> Result<(), Gone> {
        loop {
            while self.has_room() && self.parse(exports, wanted)? {}
            if !self.readable || !self.has_room() {
                return Ok(());
            }
            if self.taken > 0 {
                self.inbox.drain(..self.taken);
                self.taken = 0;
            }
            let (read, room) = match &mut self.payload {
                // The inbox is empty: what comes goes where it belongs.
                Some(Payload { request: Some(_), data, missing }) => {
                    let (start, room) = (data.len() - *missing, *missing);
                    (self.stream.read(&mut data[start..]).inspect(|read| *missing -= read), room)
                }
                _ => {
                    let start = self.inbox.len();
                    self.inbox.resize(start + INBOX_BYTES, 0);
                    let read = self.stream.read(&mut self.inbox[start..]);
                    self.inbox.truncate(start + *read.as_ref().unwrap_or(&0));
                    (read, INBOX_BYTES)
                }
            };
            match read {
                Ok(0) => return Err(Gone(None)),
                // That was all: the system says when there is more.
                Ok(read) if read < room && !self.closed && !self.stream.is_encrypted() => self.readable = false,
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.readable = false,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Takes one thing from the inbox; false if it is not there yet.
    fn parse(&mut self, exports: &(impl Exports + ?Sized), wanted: &mut Vec<Wanted>) -> Result<bool, Gone> {
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
                return Ok(false);
            }
            let payload = self.payload.take();
            if let Some(Payload { request: Some(request), data, .. }) = payload {
                let fua = matches!(request.command, Command::Write { fua: true });
                wanted.push(Wanted { request, op: Op::Write { data, fua } });
            }
            return Ok(true);
        }
        match &mut self.state {
            State::Negotiating(handshake) => {
                let needed = handshake.needed();
                if here.len() < needed {
                    return Ok(false);
                }
                let mut answer = Vec::new();
                let progress = handshake.advance(&here[..needed], exports, &mut answer);
                self.taken += needed;
                self.send(answer);
                match progress {
                    Ok(Progress::Negotiating) => {}
                    Ok(Progress::Transmitting(session)) => self.state = State::Transmitting(session),
                    Ok(Progress::Aborted) => self.ending = true,
                    Ok(Progress::StartTls) => self.start_tls()?,
                    Err(violation) => {
                        let _ = self.write();
                        return Err(Gone(Some(violation.0)));
                    }
                }
                Ok(true)
            }
            State::Transmitting(session) => {
                let Some(header) = here.first_chunk::<REQUEST_BYTES>() else { return Ok(false) };
                let incoming = session.check(header).map_err(|violation| Gone(Some(violation.0)))?;
                self.taken += REQUEST_BYTES;
                let mut refusal = Vec::new();
                session.refused(&incoming, &mut refusal);
                let payload_bytes = incoming.payload_bytes as usize;
                match incoming.request {
                    Ok(request) => self.accept(request, payload_bytes, wanted),
                    Err(_) => {
                        self.send(refusal);
                        if payload_bytes > 0 {
                            self.payload = Some(Payload { request: None, data: Vec::new(), missing: payload_bytes });
                        }
                    }
                }
                Ok(true)
            }
        }
    }

    /// After the answer to STARTTLS, which is the last in plain.
    fn start_tls(&mut self) -> Result<(), Gone> {
        self.write()?;
        let Some(config) = self.tls.clone().filter(|_| self.out.is_empty()) else { return Err(Gone(None)) };
        // What was sent before TLS is nobody's word.
        if self.taken < self.inbox.len() {
            return Err(Gone(Some("more bytes between STARTTLS and TLS".to_owned())));
        }
        Ok(self.stream.secure(config)?)
    }

    fn accept(&mut self, request: Request, payload_bytes: usize, wanted: &mut Vec<Wanted>) {
        let op = match request.command {
            Command::Disconnect => {
                self.end();
                return;
            }
            Command::Write { .. } => {
                self.payload =
                    Some(Payload { request: Some(request), data: vec![0; payload_bytes], missing: payload_bytes });
                None
            }
            Command::Read { .. } => Some(Op::Read),
            Command::Cache => Some(Op::Cache),
            Command::Flush => Some(Op::Flush),
            Command::Trim { fua } => Some(Op::Trim { fua }),
            Command::WriteZeroes { fast: true, .. } => {
                // Whether the backing is fast at it is not known beforehand.
                self.requests += 1;
                return self.reply(&request, Answer::Failed(Errno::NotSup));
            }
            Command::WriteZeroes { fua, no_hole, .. } => Some(Op::Zero { fua, no_hole }),
            Command::BlockStatus { .. } => Some(Op::Extents),
        };
        self.requests += 1;
        self.request_bytes += bytes_of(&request);
        wanted.extend(op.map(|op| Wanted { request, op }));
    }

    /// The answer to a request that [`Connection::read`] gave.
    pub fn reply(&mut self, request: &Request, answer: Answer) {
        self.requests -= 1;
        self.request_bytes = self.request_bytes.saturating_sub(bytes_of(request));
        let State::Transmitting(session) = &self.state else { return };
        let mut bytes = Vec::new();
        match answer {
            Answer::Data(data) => {
                session.read_header(request, &mut bytes);
                self.send(bytes);
                self.out_bytes += data.length();
                return self.out.push_back(Part::Data(data));
            }
            Answer::Done => session.done(request.cookie, &mut bytes),
            Answer::Extents(extents) => session.block_status(request, &extents, &mut bytes),
            Answer::Failed(errno) => session.failed(request.cookie, errno, "", &mut bytes),
        }
        self.send(bytes);
    }

    fn send(&mut self, bytes: Vec<u8>) {
        if bytes.is_empty() {
            return;
        }
        self.out_bytes += bytes.len();
        match self.out.back_mut() {
            Some(Part::Own(last)) if bytes.len() <= SMALL_BYTES && last.len() <= 8 * SMALL_BYTES => {
                last.extend_from_slice(&bytes);
            }
            _ => self.out.push_back(Part::Own(bytes)),
        }
    }

    /// Writes what there is, as far as the system takes it. Gives what has been written of reads to `used`.
    ///
    /// # Errors
    /// The client is gone.
    pub fn write_into(&mut self, used: &mut Vec<Data>) -> Result<(), Gone> {
        while self.writable && (self.stream.has_unsent() || !self.out.is_empty()) {
            let slices = slices(&self.out, self.written);
            let written = if slices.is_empty() {
                self.stream.flush().map(|()| None)
            } else {
                self.stream.write_vectored(&slices).map(Some)
            };
            match written {
                Ok(None) => {}
                Ok(Some(0)) => return Err(Gone(None)),
                Ok(Some(written)) => self.wrote(written, used),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.writable = false,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn write(&mut self) -> Result<(), Gone> {
        self.write_into(&mut Vec::new())
    }

    fn wrote(&mut self, bytes: usize, used: &mut Vec<Data>) {
        self.out_bytes -= bytes;
        self.written += bytes;
        while let Some(length) = self.out.front().map(Part::length).filter(|length| *length <= self.written) {
            self.written -= length;
            if let Some(Part::Data(data)) = self.out.pop_front() {
                used.push(data);
            }
        }
    }

    /// What was to be written of reads, when the client is gone.
    pub fn unsent(&mut self) -> impl Iterator<Item = Data> + '_ {
        self.out.drain(..).filter_map(|part| if let Part::Data(data) = part { Some(data) } else { None })
    }
}

/// What goes out next, less the first `written` bytes.
fn slices(out: &VecDeque<Part>, written: usize) -> Vec<IoSlice<'_>> {
    let mut slices = Vec::new();
    let mut at = written;
    for part in out {
        match part {
            Part::Own(bytes) => slices.push(IoSlice::new(&bytes[at..])),
            Part::Data(data) => slices.extend(data.slices(at).take(SLICES_MAX - slices.len()).map(IoSlice::new)),
        }
        at = 0;
        if slices.len() == SLICES_MAX {
            break;
        }
    }
    slices
}

/// What a request takes while it is under way.
fn bytes_of(request: &Request) -> usize {
    match request.command {
        Command::Read { .. } | Command::Write { .. } => request.length as usize,
        _ => 0,
    }
}
