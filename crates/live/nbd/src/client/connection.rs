//! One connection: any thread submits requests, and a thread of its own reads the replies.

use std::io::{BufReader, Read, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use headstart_types::system_says;

use super::handshake::Handshake;
use super::pending::{Done, InFlight, Pending, Step};
use super::stream::Stream;
use super::{now, ClientError, ConnectOptions, Refused, Replies, ServerExport};
use crate::wire::Violation;
use crate::{Command, Request, Uri};

/// Headers and payloads up to this length are sent together; a longer payload is sent without a copy.
const JOINED_BYTES_MAX: usize = 64 << 10;

/// How often, at least, requests are checked for overdue ones.
const LOOKS_EVERY: Duration = Duration::from_secs(1);
/// Replies that promise stable storage may take this many times as long as others: the server first writes what it
/// holds in memory.
const STABLE_TIMES: u32 = 4;

#[derive(Default)]
struct Board {
    in_flight: InFlight,
    next_cookie: u64,
    /// Why the connection is lost.
    lost: Option<String>,
}

struct Shared {
    stream: Stream,
    board: Mutex<Board>,
    /// Bytes to write; locked while they are written.
    writing: Mutex<Vec<u8>>,
    allocation: Option<u32>,
    reply_time_max: Option<Duration>,
}

/// Ignores poisoning: no panic can leave the board half changed, since callbacks run without the lock.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) struct Connection {
    shared: Arc<Shared>,
    reader: Option<JoinHandle<()>>,
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection").field("stream", &self.shared.stream).finish_non_exhaustive()
    }
}

impl Connection {
    pub fn open(uri: &Uri, options: ConnectOptions) -> Result<(Connection, ServerExport), ClientError> {
        let failed = |error: std::io::Error| {
            let problem = match error.kind() {
                std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut => "no answer in time".to_owned(),
                std::io::ErrorKind::UnexpectedEof => "the server closed the connection while negotiating".to_owned(),
                _ => system_says(&error),
            };
            ClientError::Connect(problem)
        };
        let until = now() + options.connect_time_max;
        let mut stream = Stream::connect(&uri.address, until).map_err(failed)?;
        let export = negotiate(&mut stream, uri).map_err(|error| match error {
            Negotiation::Io(error) => failed(error),
            Negotiation::Refused(error) => ClientError::Refused(error),
        })?;
        stream.set_until(None);
        let reply_time_max = options.reply_time_max;
        let looks_every = reply_time_max.map(|time| (time / 4).min(LOOKS_EVERY));
        stream.set_time_max(looks_every, reply_time_max).map_err(failed)?;
        let (board, writing, allocation) = (Mutex::default(), Mutex::default(), export.allocation);
        let shared = Arc::new(Shared { stream, board, writing, allocation, reply_time_max });
        let reading = Arc::clone(&shared);
        let reader = std::thread::Builder::new().name("nbd-replies".to_owned()).spawn(move || {
            let why = reading.read_replies();
            reading.lose(&why);
        });
        Ok((Connection { shared, reader: Some(reader.map_err(failed)?) }, export))
    }

    pub fn is_lost(&self) -> bool {
        locked(&self.shared.board).lost.is_some()
    }

    pub fn submit(&self, command: Command, offset: u64, length: u32, payload: &[u8], buffer: Vec<u8>, done: Done) {
        let Some(request) = self.enter(command, offset, length, buffer, done) else { return };
        if let Err(error) = self.shared.write(&request, payload) {
            // The reader gets the same error and fails every request in flight, including this one.
            self.shared.lose(&said(&error));
        }
    }

    /// Queues a request without payload until [`Connection::send_queued`] or the next submitted request.
    pub fn queue(&self, command: Command, offset: u64, length: u32, buffer: Vec<u8>, done: Done) {
        if let Some(request) = self.enter(command, offset, length, buffer, done) {
            locked(&self.shared.writing).extend_from_slice(&request.header());
        }
    }

    /// Sends the queued requests together.
    pub fn send_queued(&self) {
        if let Err(error) = self.shared.write_queued() {
            self.shared.lose(&said(&error));
        }
    }

    /// Registers the request as in flight; `None` if the connection is lost, which is reported to `done`.
    fn enter(&self, command: Command, offset: u64, length: u32, buffer: Vec<u8>, done: Done) -> Option<Request> {
        let mut board = locked(&self.shared.board);
        if let Some(why) = &board.lost {
            let error = ClientError::Lost(why.clone());
            drop(board);
            done(Err(error));
            return None;
        }
        board.next_cookie += 1;
        let request = Request { cookie: board.next_cookie, command, offset, length };
        let due =
            self.shared.reply_time_max.map(|time| now() + time * if is_stable(command) { STABLE_TIMES } else { 1 });
        board.in_flight.insert(Pending::new(request, buffer, due, done));
        Some(request)
    }
}

impl Drop for Connection {
    /// Disconnects; requests in flight are lost.
    fn drop(&mut self) {
        let request = Request { cookie: 0, command: Command::Disconnect, offset: 0, length: 0 };
        // A server that takes no more must not block this.
        _ = self.shared.stream.set_time_max(None, Some(Duration::from_secs(1)));
        if self.shared.writing.try_lock().is_ok() {
            _ = self.shared.write(&request, &[]);
        }
        self.shared.stream.shut_down();
        if let Some(reader) = self.reader.take().filter(|reader| reader.thread().id() != std::thread::current().id()) {
            _ = reader.join();
        }
    }
}

/// Whether the reply promises that data is on stable storage.
fn is_stable(command: Command) -> bool {
    match command {
        Command::Flush => true,
        Command::Write { fua } | Command::Trim { fua } | Command::WriteZeroes { fua, .. } => fua,
        _ => false,
    }
}

enum Negotiation {
    Io(std::io::Error),
    Refused(Refused),
}

fn negotiate(stream: &mut Stream, uri: &Uri) -> Result<ServerExport, Negotiation> {
    let begin = if uri.tls.is_some() { Handshake::with_tls } else { Handshake::new };
    let mut handshake = begin(&uri.export);
    let (mut input, mut out) = (Vec::new(), Vec::new());
    loop {
        input.resize(handshake.needed(), 0);
        (&*stream).read_exact(&mut input).map_err(Negotiation::Io)?;
        out.clear();
        let export = handshake.advance(&input, &mut out).map_err(Negotiation::Refused)?;
        if let Some(trust) = uri.tls.as_ref().filter(|_| handshake.waits_for_tls()) {
            stream.secure(trust).map_err(Negotiation::Io)?;
            handshake.secured(&mut out);
        }
        (&*stream).write_all(&out).map_err(Negotiation::Io)?;
        if let Some(export) = export {
            return Ok(export);
        }
    }
}

impl Shared {
    fn write(&self, request: &Request, payload: &[u8]) -> std::io::Result<()> {
        let mut joined = locked(&self.writing);
        joined.extend_from_slice(&request.header());
        let (near, far) = if payload.len() <= JOINED_BYTES_MAX { (payload, &[][..]) } else { (&[][..], payload) };
        joined.extend_from_slice(near);
        let written = (&self.stream).write_all(&joined);
        joined.clear();
        written?;
        (&self.stream).write_all(far)
    }

    fn write_queued(&self) -> std::io::Result<()> {
        let mut joined = locked(&self.writing);
        if joined.is_empty() {
            return Ok(());
        }
        let written = (&self.stream).write_all(&joined);
        joined.clear();
        written
    }

    /// Fails all requests in flight and all later ones.
    fn lose(&self, why: &str) {
        let lost = {
            let mut board = locked(&self.board);
            board.lost.get_or_insert_with(|| why.to_owned());
            board.in_flight.take_all()
        };
        self.stream.shut_down();
        for done in lost {
            done(Err(ClientError::Lost(why.to_owned())));
        }
    }

    /// Reads until the connection ends; returns the reason.
    fn read_replies(&self) -> String {
        let mut stream = BufReader::with_capacity(64 << 10, &self.stream);
        let (mut replies, mut input, mut looked) = (Replies::default(), Vec::new(), now());
        loop {
            input.resize(replies.needed(), 0);
            if let Err(error) = self.fill(&mut stream, &mut input, None, &mut looked) {
                return said(&error);
            }
            let step = match replies.advance(&input) {
                Ok(None) => continue,
                Ok(Some(reply)) => locked(&self.board).in_flight.reply(reply, self.allocation),
                Err(violation) => Err(violation),
            };
            match step.and_then(|step| self.take(step, &mut stream, &mut looked)) {
                Ok(None) => {}
                Ok(Some(error)) => return said(&error),
                Err(violation) => return format!("the server broke the protocol: {violation}"),
            }
        }
    }

    /// Reads all of `buffer` while checking for overdue requests, including the one whose content this is, which is due
    /// at `due`.
    fn fill(
        &self,
        stream: &mut impl Read,
        mut buffer: &mut [u8],
        due: Option<Instant>,
        looked: &mut Instant,
    ) -> std::io::Result<()> {
        use std::io::ErrorKind;
        while !buffer.is_empty() {
            match stream.read(buffer) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(read) => buffer = &mut buffer[read..],
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                Err(error) => return Err(error),
            }
            let Some(time_max) = self.reply_time_max else { continue };
            let now = now();
            if now - *looked >= LOOKS_EVERY.min(time_max / 4) {
                *looked = now;
                if due.is_some_and(|due| due <= now) || locked(&self.board).in_flight.is_overdue(now) {
                    return Err(std::io::Error::new(ErrorKind::TimedOut, "the server does not reply in time"));
                }
            }
        }
        Ok(())
    }

    fn take(
        &self,
        step: Step,
        stream: &mut impl Read,
        looked: &mut Instant,
    ) -> Result<Option<std::io::Error>, Violation> {
        match step {
            Step::Wait => {}
            Step::Finished(done, outcome) => done(outcome),
            Step::Content(mut pending, place, last) => {
                let due = pending.due;
                if let Err(error) = self.fill(stream, &mut pending.buffer()[place], due, looked) {
                    (pending.done)(Err(ClientError::Lost(said(&error))));
                    return Ok(Some(error));
                }
                let step = locked(&self.board).in_flight.proceed(pending, last)?;
                return self.take(step, stream, looked);
            }
        }
        Ok(None)
    }
}

fn said(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::UnexpectedEof => "the server closed it".to_owned(),
        std::io::ErrorKind::WouldBlock => "the server takes no requests".to_owned(),
        _ => error.to_string(),
    }
}
