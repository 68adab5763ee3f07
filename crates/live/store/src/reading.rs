//! Reads: a reader waits until all parts of what it wants are in memory, and gets them without a copy.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use headstart_types::{printable, Nanos};
use tokio::sync::oneshot;

use crate::failure::Failure;
use crate::named::Span;
use crate::shelf::{Part, SegmentId};
use crate::source::beyond;
use crate::store::Store;

/// How long a reader waits for memory that only readers can give back.
const STUCK: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(200);

/// A part of an object in memory, which stays there until this is dropped.
pub struct Lease {
    store: Arc<Store>,
    segment: SegmentId,
    /// Where its bytes are in the memory's file.
    offset: u64,
    length: u64,
}

impl Lease {
    /// Where its bytes are in the memory's file.
    #[must_use]
    pub fn range(&self) -> (u64, u64) {
        (self.offset, self.length)
    }

    /// Its bytes, without a copy.
    #[must_use]
    pub fn into_bytes(self) -> Bytes {
        Bytes::from_owner(self)
    }
}

impl AsRef<[u8]> for Lease {
    fn as_ref(&self) -> &[u8] {
        self.store.memory.bytes(self.offset, self.length)
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.store.lock().shelf.release(self.segment);
        self.store.act();
    }
}

/// Leases of parts that have not arrived.
struct Held {
    store: Arc<Store>,
    parts: Vec<Part>,
    /// The read's number in the recording.
    recorded: Option<u64>,
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(number) = self.recorded {
            let now = self.store.now();
            self.store.lock().recording.iter_mut().for_each(|recording| recording.ended(number, now));
        }
        if !self.parts.is_empty() {
            let mut inner = self.store.lock();
            self.parts.iter().for_each(|part| inner.shelf.release(part.segment));
            drop(inner);
            self.store.act();
        }
    }
}

impl Store {
    /// Reads bytes of an object, to its end without `end`: its parts in order, once all are in memory.
    ///
    /// # Errors
    /// There is no such object or range, readers hold all memory, or the source fails.
    pub async fn read(self: &Arc<Self>, key: &str, start: u64, end: Option<u64>) -> Result<Vec<Lease>, Failure> {
        let asked = self.now();
        let (object, end, size) = self.extent(key, end).await?;
        if start > end || end > size {
            return Err(beyond(key, &(start..end), size));
        }
        if start == end {
            return Ok(Vec::new());
        }
        let (mut held, waits) = {
            let mut inner = self.lock();
            let span = Span { object, start, end };
            inner.reads.note(span);
            let parts = inner.shelf.request(span, asked).map_err(|memory| {
                let problem = format!("{}: {} bytes at once of a cache of {memory}", printable(key), end - start);
                Failure::Invalid(problem)
            })?;
            let recorded = inner.recording.as_mut().map(|all| all.began(asked, key, start, end - start, size));
            let waits: Vec<_> =
                parts.iter().filter(|part| !part.is_here).map(|part| inner.wait(part.segment)).collect();
            (Held { store: self.clone(), parts, recorded }, waits)
        };
        self.act();
        for wait in waits {
            if let Err(failure) = self.wait(wait).await {
                let mut inner = self.lock();
                inner.shelf.totals.failed_requests += 1;
                // The answer has told the size.
                let known = inner.objects.known(object).map(|meta| meta.size);
                return Err(known.filter(|size| end > *size).map_or(failure, |size| beyond(key, &(start..end), size)));
            }
        }
        let mut inner = self.lock();
        let now = self.now();
        let waited = Nanos(now.0 - asked.0);
        inner.history.has_read(end - start, asked, now);
        inner.waits.record(waited);
        inner.waited.0 += waited.0;
        let parts = std::mem::take(&mut held.parts);
        let lease = |Part { segment, span, .. }: &Part| {
            let (own, place) = (inner.shelf.span(*segment), inner.shelf.place(*segment));
            let offset = place.expect("it is here").offset + (span.start - own.start);
            Lease { store: self.clone(), segment: *segment, offset, length: span.bytes() }
        };
        Ok(parts.iter().map(lease).collect())
    }

    /// The number of an object, the end of a read of it, and its size, or that end where the read itself tells the size.
    pub(crate) async fn extent(&self, key: &str, end: Option<u64>) -> Result<(u32, u64, u64), Failure> {
        if let Some(end) = end {
            let mut inner = self.lock();
            let number = inner.objects.number(key);
            let is_known = inner.objects.known(number).is_some();
            if !is_known && !inner.found.contains_key(key) {
                return Ok((number, end, end));
            }
        }
        let (object, meta) = self.open(key).await?;
        Ok((object, end.unwrap_or(meta.size), meta.size))
    }

    async fn wait(&self, mut wait: oneshot::Receiver<Result<(), Failure>>) -> Result<(), Failure> {
        let mut stuck = Duration::ZERO;
        loop {
            match tokio::time::timeout(LOOK, &mut wait).await {
                Ok(ended) => return ended.unwrap_or(Err(Failure::Source("the store ends".to_owned()))),
                Err(_) if self.lock().shelf.is_stuck() => stuck += LOOK,
                Err(_) => stuck = Duration::ZERO,
            }
            if stuck >= STUCK {
                let problem = "readers hold all memory of the cache; let go of what was read, or use a larger cache";
                return Err(Failure::Full(problem.to_owned()));
            }
        }
    }
}
