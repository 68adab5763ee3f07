//! The bytes of an answer. A long range is read in windows: while one is sent, the next ones are read.
//!
//! Windows that are in memory for answers take at most half of it, so that answers never wait for each other's memory:
//! a window has its room before it is read, in order, and what has its room is sent and gives it back. A client that takes
//! nothing loses its connection.

use std::collections::VecDeque;
use std::future::Future as _;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{ready, Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinHandle;

use crate::failure::Failure;
use crate::reading::Lease;
use crate::store::Store;

const WINDOW_BYTES_MAX: u64 = 8 << 20;
const WINDOW_BYTES_MIN: u64 = 64 << 10;
/// Windows that are read while one is sent.
const AHEAD: usize = 2;
/// The unit of room.
const PAGE_BYTES: u64 = 4096;

/// A store, with room in its memory for what is being sent.
pub struct Reader {
    pub store: Arc<Store>,
    room: Arc<Semaphore>,
    window_bytes: u64,
}

/// Bytes on their way to a client: given back once they are sent.
struct Sent {
    lease: Lease,
    _room: Arc<OwnedSemaphorePermit>,
}

impl AsRef<[u8]> for Sent {
    fn as_ref(&self) -> &[u8] {
        self.lease.as_ref()
    }
}

impl Reader {
    pub fn new(store: Arc<Store>) -> Self {
        let memory_bytes = store.lock().shelf.limits().memory_bytes;
        let window_bytes = (memory_bytes / 8).clamp(WINDOW_BYTES_MIN, WINDOW_BYTES_MAX);
        let room_bytes = (memory_bytes / 2).max(window_bytes);
        let pages = usize::try_from(room_bytes / PAGE_BYTES).unwrap_or(usize::MAX);
        Self { store, room: Arc::new(Semaphore::new(pages.min(Semaphore::MAX_PERMITS))), window_bytes }
    }

    async fn window(self: Arc<Self>, key: Arc<str>, start: u64, end: u64) -> Result<VecDeque<Bytes>, Failure> {
        let pages = (end - start).div_ceil(PAGE_BYTES) as u32;
        let room = self.room.clone().acquire_many_owned(pages).await.expect("nobody closes it");
        let room = Arc::new(room);
        let leases = self.store.read(&key, start, Some(end)).await?;
        let sent = |lease| Bytes::from_owner(Sent { lease, _room: room.clone() });
        Ok(leases.into_iter().map(sent).collect())
    }

    /// Bytes of an object, once the first of them have arrived.
    pub async fn read(self: &Arc<Self>, key: &str, start: u64, end: u64) -> Result<Windows, Failure> {
        let (reader, key) = (self.clone(), Arc::from(key));
        let mut windows = Windows {
            reader,
            key,
            next: start,
            end,
            left: end - start,
            ahead: VecDeque::new(),
            ready: VecDeque::new(),
        };
        if end - start <= self.window_bytes {
            windows.ready = self.clone().window(windows.key.clone(), start, end).await?;
        } else {
            windows.fill();
            let first = windows.ahead.front_mut().expect("it was begun");
            windows.ready = ended((&mut first.0).await)?;
            windows.ahead.pop_front();
        }
        Ok(windows)
    }
}

fn ended(joined: Result<Result<VecDeque<Bytes>, Failure>, tokio::task::JoinError>) -> Result<VecDeque<Bytes>, Failure> {
    joined.unwrap_or_else(|error| Err(Failure::Source(error.to_string())))
}

/// A window that is being read.
struct Ahead(JoinHandle<Result<VecDeque<Bytes>, Failure>>);

impl Drop for Ahead {
    fn drop(&mut self) {
        self.0.abort();
    }
}

pub struct Windows {
    reader: Arc<Reader>,
    key: Arc<str>,
    /// Where the next window begins that is not being read.
    next: u64,
    end: u64,
    left: u64,
    ahead: VecDeque<Ahead>,
    /// Parts of the window that is being sent.
    ready: VecDeque<Bytes>,
}

impl Windows {
    fn fill(&mut self) {
        while self.ahead.len() < AHEAD && self.next < self.end {
            let end = self.end.min(self.next + self.reader.window_bytes);
            let window = self.reader.clone().window(self.key.clone(), self.next, end);
            self.ahead.push_back(Ahead(tokio::spawn(window)));
            self.next = end;
        }
    }
}

impl Body for Windows {
    type Data = Bytes;
    type Error = Failure;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Failure>>> {
        let windows = self.get_mut();
        loop {
            if let Some(part) = windows.ready.pop_front() {
                windows.left -= part.len() as u64;
                return Poll::Ready(Some(Ok(Frame::data(part))));
            }
            windows.fill();
            let Some(next) = windows.ahead.front_mut() else { return Poll::Ready(None) };
            let window = ended(ready!(Pin::new(&mut next.0).poll(context)));
            windows.ahead.pop_front();
            match window {
                Ok(window) => windows.ready = window,
                Err(failure) => return Poll::Ready(Some(Err(failure))),
            }
            windows.fill();
        }
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}
