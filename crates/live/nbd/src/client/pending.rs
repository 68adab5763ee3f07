//! The requests in flight on one connection, and the parts of their replies so far.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Instant;

use super::coverage::Coverage;
use super::replies::Reply;
use super::ClientError;
use crate::wire::Violation;
use crate::{Command, Extent, Request};

/// The result of a successful request.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Completion {
    /// The content of a read, in the buffer that was passed.
    pub buffer: Vec<u8>,
    /// The extents of `BLOCK_STATUS`.
    pub extents: Vec<Extent>,
}

pub(super) type Done = Box<dyn FnOnce(Result<Completion, ClientError>) + Send>;

pub(super) struct Pending {
    request: Request,
    completion: Completion,
    come: Coverage,
    failure: Option<ClientError>,
    /// Deadline of the reply.
    pub due: Option<Instant>,
    pub done: Done,
}

impl Pending {
    pub fn new(request: Request, buffer: Vec<u8>, due: Option<Instant>, done: Done) -> Self {
        let completion = Completion { buffer, extents: Vec::new() };
        Self { request, completion, come: Coverage::default(), failure: None, due, done }
    }

    fn is_read(&self) -> bool {
        matches!(self.request.command, Command::Read { .. })
    }

    /// The range of the buffer for `length` bytes from `offset` on.
    fn place(&mut self, offset: u64, length: u32) -> Result<Range<usize>, Violation> {
        let length = u64::from(length);
        let start = offset.checked_sub(self.request.offset).filter(|_| self.is_read());
        let Some(start) = start.filter(|start| start + length <= u64::from(self.request.length)) else {
            return Violation::new("content that was not asked for");
        };
        if !self.come.add(start..start + length) {
            return Violation::new("the same content twice");
        }
        self.completion.buffer.resize(self.request.length as usize, 0);
        Ok(start as usize..(start + length) as usize)
    }

    /// Takes a reply; returns whether it is the last, and where its content goes, if any.
    fn take(&mut self, reply: Reply, context: Option<u32>) -> Result<(bool, Option<Range<usize>>), Violation> {
        Ok(match reply {
            Reply::Simple { error: Some(errno), .. } => {
                self.failure = Some(ClientError::Failed { errno, message: String::new() });
                (true, None)
            }
            Reply::Simple { error: None, .. } if self.is_read() => {
                (true, Some(self.place(self.request.offset, self.request.length)?))
            }
            Reply::Simple { .. } | Reply::End { .. } => (true, None),
            Reply::Data { offset, length, last, .. } => (last, Some(self.place(offset, length)?)),
            Reply::Hole { offset, length, last, .. } => {
                let place = self.place(offset, length)?;
                self.completion.buffer[place].fill(0);
                (last, None)
            }
            Reply::Status { context: of, extents, last, .. } => {
                if context == Some(of) && matches!(self.request.command, Command::BlockStatus { .. }) {
                    self.completion.extents = extents;
                }
                (last, None)
            }
            Reply::Failed { error: errno, message, last, .. } => {
                self.failure.get_or_insert(ClientError::Failed { errno, message });
                (last, None)
            }
        })
    }

    /// Checks that a successful reply was complete.
    fn check(&self) -> Result<(), Violation> {
        if self.failure.is_some() {
            return Ok(());
        }
        if self.is_read() && !self.come.is(0..self.request.length.into()) {
            return Violation::new("a reply without all of the content");
        }
        if matches!(self.request.command, Command::BlockStatus { .. }) && self.completion.extents.is_empty() {
            return Violation::new("a reply without extents");
        }
        Ok(())
    }

    /// The buffer for the content.
    pub fn buffer(&mut self) -> &mut [u8] {
        &mut self.completion.buffer
    }
}

/// What to do after a reply.
pub(super) enum Step {
    Wait,
    /// Content follows: read it into this range of the request's buffer, then call [`InFlight::proceed`].
    Content(Box<Pending>, Range<usize>, bool),
    /// A request is complete.
    Finished(Done, Result<Completion, ClientError>),
}

/// The requests in flight, by cookie.
#[derive(Default)]
pub(super) struct InFlight {
    requests: BTreeMap<u64, Box<Pending>>,
}

impl InFlight {
    pub fn insert(&mut self, pending: Pending) {
        self.put_back(Box::new(pending));
    }

    /// Whether any request should have been answered before `now`.
    pub fn is_overdue(&self, now: Instant) -> bool {
        self.requests.values().any(|pending| pending.due.is_some_and(|due| due <= now))
    }

    /// Removes all requests, as the connection is lost.
    pub fn take_all(&mut self) -> Vec<Done> {
        std::mem::take(&mut self.requests).into_values().map(|pending| pending.done).collect()
    }

    /// Takes a reply; `context` is the id of base:allocation.
    pub fn reply(&mut self, reply: Reply, context: Option<u32>) -> Result<Step, Violation> {
        let (Reply::Simple { cookie, .. }
        | Reply::Data { cookie, .. }
        | Reply::Hole { cookie, .. }
        | Reply::Status { cookie, .. }
        | Reply::Failed { cookie, .. }
        | Reply::End { cookie }) = reply;
        let Some(mut pending) = self.requests.remove(&cookie) else {
            return Violation::new("a reply to nothing that was asked");
        };
        match pending.take(reply, context) {
            Ok((last, Some(place))) => Ok(Step::Content(pending, place, last)),
            Ok((last, None)) => self.proceed(pending, last),
            Err(violation) => {
                self.put_back(pending);
                Err(violation)
            }
        }
    }

    /// Continues after content of a reply was read into the buffer of `pending`.
    pub fn proceed(&mut self, pending: Box<Pending>, last: bool) -> Result<Step, Violation> {
        let checked = if last { pending.check() } else { Ok(()) };
        if !last || checked.is_err() {
            self.put_back(pending);
            return checked.map(|()| Step::Wait);
        }
        let Pending { completion, failure, done, .. } = *pending;
        Ok(Step::Finished(done, failure.map_or(Ok(completion), Err)))
    }

    fn put_back(&mut self, pending: Box<Pending>) {
        self.requests.insert(pending.request.cookie, pending);
    }
}
