//! The bytes of an answer. A long range is read in windows: while one is sent, the next ones are read.
//!
//! Windows take at most half of the memory. A window gets its room before it is read. Only the window that is sent next
//! waits for room, and while it waits, none after it has any: what has room is sent and gives it back. A client that
//! takes nothing loses its connection.

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

type Room = OwnedSemaphorePermit;
type Window = Result<VecDeque<Bytes>, Failure>;

/// Bytes on their way to a client: given back once they are sent.
struct Sent {
    lease: Lease,
    _room: Arc<Room>,
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

    fn pages(start: u64, end: u64) -> u32 {
        u32::try_from((end - start).div_ceil(PAGE_BYTES)).unwrap_or(u32::MAX)
    }

    async fn window(self: Arc<Self>, room: Option<Room>, key: Arc<str>, start: u64, end: u64) -> Window {
        let room = match room {
            Some(room) => room,
            None => self.room.clone().acquire_many_owned(Self::pages(start, end)).await.expect("nobody closes it"),
        };
        let room = Arc::new(room);
        let leases = self.store.read(&key, start, Some(end)).await?;
        let sent = |lease| Bytes::from_owner(Sent { lease, _room: room.clone() });
        Ok(leases.into_iter().map(sent).collect())
    }

    /// Bytes of an object, once the first of them have arrived.
    pub async fn read(self: &Arc<Self>, key: &str, start: u64, end: u64) -> Result<Windows, Failure> {
        let (reader, key) = (self.clone(), Arc::from(key));
        let (ahead, ready) = (VecDeque::new(), VecDeque::new());
        let mut windows = Windows { reader, key, next: start, end, left: end - start, ahead, is_waiting: false, ready };
        if end - start <= self.window_bytes {
            windows.next = end;
            windows.ready = self.clone().window(None, windows.key.clone(), start, end).await?;
        } else {
            std::future::poll_fn(|context| windows.poll_window(context)).await?;
        }
        Ok(windows)
    }
}

/// A window that is being read.
struct Ahead(JoinHandle<Window>);

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
    /// The first of them has got no room at once.
    is_waiting: bool,
    /// Parts of the window that is being sent.
    ready: VecDeque<Bytes>,
}

impl Windows {
    fn fill(&mut self) {
        while self.ahead.len() < AHEAD && self.next < self.end && !self.is_waiting {
            let (start, end) = (self.next, self.end.min(self.next + self.reader.window_bytes));
            let room = self.reader.room.clone().try_acquire_many_owned(Reader::pages(start, end)).ok();
            if room.is_none() && !self.ahead.is_empty() {
                return;
            }
            self.is_waiting = room.is_none();
            let window = self.reader.clone().window(room, self.key.clone(), start, end);
            self.ahead.push_back(Ahead(tokio::spawn(window)));
            self.next = end;
        }
    }

    /// Makes the next window ready, if there is one.
    fn poll_window(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        self.fill();
        let Some(next) = self.ahead.front_mut() else { return Poll::Ready(Ok(())) };
        let joined = ready!(Pin::new(&mut next.0).poll(context));
        self.ahead.pop_front();
        self.is_waiting = false;
        self.ready = joined.unwrap_or_else(|error| Err(Failure::Source(error.to_string())))?;
        self.fill();
        Poll::Ready(Ok(()))
    }
}

impl Body for Windows {
    type Data = Bytes;
    type Error = Failure;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Failure>>> {
        let windows = self.get_mut();
        if windows.ready.is_empty() {
            if let Err(failure) = ready!(windows.poll_window(context)) {
                return Poll::Ready(Some(Err(failure)));
            }
        }
        let part = windows.ready.pop_front();
        windows.left -= part.as_ref().map_or(0, |part| part.len() as u64);
        Poll::Ready(part.map(|part| Ok(Frame::data(part))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}
