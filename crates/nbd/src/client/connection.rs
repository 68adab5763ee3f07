//! One connection: whoever submits writes to it, a thread reads its replies.

use std::io::{BufReader, Read, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use super::handshake::Handshake;
use super::pending::{Done, InFlight, Pending, Step};
use super::stream::Stream;
use super::{ClientError, Refused, Replies, ServerExport};
use crate::wire::Violation;
use crate::{Command, Request, Uri};

/// Headers and short payloads are sent in one piece; a longer payload goes out from where it lies.
const JOINED_BYTES_MAX: usize = 64 << 10;

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
    /// What is to be written; held while it is.
    writing: Mutex<Vec<u8>>,
    allocation: Option<u32>,
}

/// No panic can leave the board half changed: callbacks run without it.
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
    pub fn open(uri: &Uri, time_max: Duration) -> Result<(Connection, ServerExport), ClientError> {
        let failed = |error: std::io::Error| {
            let problem = match error.kind() {
                std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut => "no answer in time".to_owned(),
                std::io::ErrorKind::UnexpectedEof => "the server closed the connection while negotiating".to_owned(),
                _ => error.to_string(),
            };
            ClientError::Connect { uri: uri.to_string(), problem }
        };
        let refused = |source: Refused| ClientError::Refused { uri: uri.to_string(), source };
        let mut stream = Stream::connect(&uri.address, time_max).map_err(failed)?;
        let export = negotiate(&mut stream, uri).map_err(|error| match error {
            Negotiation::Io(error) => failed(error),
            Negotiation::Refused(error) => refused(error),
        })?;
        stream.set_time_max(None).map_err(failed)?;
        let allocation = export.allocation;
        let shared = Arc::new(Shared { stream, board: Mutex::default(), writing: Mutex::default(), allocation });
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
            // The reader meets the same, and ends every request in flight, this one among them.
            self.shared.lose(&error.to_string());
        }
    }

    /// A request without payload waits for [`Connection::send_queued`], or for the next that is submitted.
    pub fn queue(&self, command: Command, offset: u64, length: u32, buffer: Vec<u8>, done: Done) {
        if let Some(request) = self.enter(command, offset, length, buffer, done) {
            locked(&self.shared.writing).extend_from_slice(&request.header());
        }
    }

    /// Sends what is queued in one piece.
    pub fn send_queued(&self) {
        if let Err(error) = self.shared.write_queued() {
            self.shared.lose(&error.to_string());
        }
    }

    /// The request is in flight from now on; `None` if the connection is lost, of which `done` hears.
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
        board.in_flight.insert(Pending::new(request, buffer, done));
        Some(request)
    }
}

impl Drop for Connection {
    /// Says goodbye; what is in flight is lost.
    fn drop(&mut self) {
        let request = Request { cookie: 0, command: Command::Disconnect, offset: 0, length: 0 };
        // A server that takes no more must not hold up the end.
        _ = self.shared.stream.set_time_max(Some(Duration::from_secs(1)));
        _ = self.shared.write(&request, &[]);
        self.shared.stream.shut_down();
        if let Some(reader) = self.reader.take().filter(|reader| reader.thread().id() != std::thread::current().id()) {
            _ = reader.join();
        }
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

    /// Fails all that is in flight and all that comes.
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

    /// Reads until the connection ends; says why it did.
    fn read_replies(&self) -> String {
        let mut stream = BufReader::with_capacity(64 << 10, &self.stream);
        let (mut replies, mut input) = (Replies::default(), Vec::new());
        loop {
            input.resize(replies.needed(), 0);
            if let Err(error) = stream.read_exact(&mut input) {
                return said(&error);
            }
            let step = match replies.advance(&input) {
                Ok(None) => continue,
                Ok(Some(reply)) => locked(&self.board).in_flight.reply(reply, self.allocation),
                Err(violation) => Err(violation),
            };
            match step.and_then(|step| self.take(step, &mut stream)) {
                Ok(None) => {}
                Ok(Some(error)) => return said(&error),
                Err(violation) => return format!("the server broke the protocol: {violation}"),
            }
        }
    }

    fn take(&self, step: Step, stream: &mut impl Read) -> Result<Option<std::io::Error>, Violation> {
        match step {
            Step::Wait => {}
            Step::Finished(done, outcome) => done(outcome),
            Step::Content(mut pending, place, last) => {
                if let Err(error) = stream.read_exact(&mut pending.buffer()[place]) {
                    (pending.done)(Err(ClientError::Lost(said(&error))));
                    return Ok(Some(error));
                }
                let step = locked(&self.board).in_flight.proceed(pending, last)?;
                return self.take(step, stream);
            }
        }
        Ok(None)
    }
}

fn said(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::UnexpectedEof => "the server closed it".to_owned(),
        _ => error.to_string(),
    }
}
