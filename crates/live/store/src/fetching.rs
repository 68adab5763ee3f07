//! Requests to the source: repeated when the answer breaks off, and doubled when it begins later than nearly all.

use std::ops::Range;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use bytes::Bytes;
use headstart_types::Nanos;

use crate::arena::Place;
use crate::failure::Failure;
use crate::named::Span;
use crate::shelf::SegmentId;
use crate::source::{beyond, Meta};
use crate::store::Store;

/// How often an answer that breaks off, or is not what it should be, is asked for again. What the source refuses for
/// now is repeated below.
const TRIES: u32 = 4;
const PAUSE: Duration = Duration::from_millis(100);

/// What is asked of the source.
struct Wanted<'a> {
    key: &'a str,
    known: Option<&'a Meta>,
    range: Range<u64>,
    segments: &'a [(SegmentId, Span, Place)],
}

/// The time until a request, or its second, begins to be answered.
struct Beginning {
    asked: Nanos,
    is_over: AtomicBool,
}

impl Store {
    /// Reads `range` of an object into the places of neighbouring segments; returns what is known of the object then.
    pub(crate) async fn get(
        &self,
        key: &str,
        known: Option<&Meta>,
        range: Range<u64>,
        segments: &[(SegmentId, Span, Place)],
    ) -> Result<Meta, Failure> {
        if let Some(known) = known.filter(|known| range.end > known.size) {
            return Err(beyond(key, &range, known.size));
        }
        let wanted = Wanted { key, known, range, segments };
        let mut tries = 1;
        loop {
            match self.hedged(&wanted).await {
                Err(Failure::Source(_)) if tries < TRIES => {
                    self.counters.repeated.fetch_add(1, Relaxed);
                    tokio::time::sleep(PAUSE * 2_u32.pow(tries - 1)).await;
                    tries += 1;
                }
                ended => return ended,
            }
        }
    }

    async fn hedged(&self, wanted: &Wanted<'_>) -> Result<Meta, Failure> {
        let begins = Beginning { asked: self.now(), is_over: AtomicBool::new(false) };
        let first = self.once(wanted, &begins);
        tokio::pin!(first);
        let Some(after) = self.hedge_after() else { return first.await };
        tokio::select! {
            ended = &mut first => return ended,
            () = tokio::time::sleep(after) => {}
        }
        if begins.is_over.load(Relaxed) {
            return first.await;
        }
        self.counters.hedged.fetch_add(1, Relaxed);
        // Both write the same bytes to the same places, in turns, since this is one task; the slower one ends here.
        let second = self.once(wanted, &begins);
        tokio::pin!(second);
        tokio::select! {
            ended = &mut first => match ended {
                Err(Failure::Source(_)) => second.await,
                ended => ended,
            },
            ended = &mut second => match ended {
                Err(Failure::Source(_)) => first.await,
                ended => {
                    self.counters.hedges_won.fetch_add(1, Relaxed);
                    ended
                }
            },
        }
    }

    async fn once(&self, wanted: &Wanted<'_>, begins: &Beginning) -> Result<Meta, Failure> {
        self.counters.gets.fetch_add(1, Relaxed);
        let mut failed = None;
        let write = |at: u64, part: &Bytes| {
            if !begins.is_over.swap(true, Relaxed) {
                self.lock().shelf.begins(Nanos(self.now().0 - begins.asked.0));
            }
            let mut done = 0;
            while failed.is_none() && done < part.len() {
                let Some((offset, until)) = place_of(wanted.segments, at + done as u64) else { return };
                let now = (part.len() - done).min((until.end - until.start) as usize);
                failed = self.memory.write(offset, &part[done..done + now]).err();
                done += now;
            }
        };
        let found = self.source.get(wanted.key, wanted.known, wanted.range.clone(), write).await?;
        failed
            .map_or(Ok(found), |error| Err(Failure::Full(format!("memory: {}", headstart_types::system_says(&error)))))
    }
}

/// Where byte `at` of an object goes: into which of neighbouring segments, and how many bytes from there on.
fn place_of(segments: &[(SegmentId, Span, Place)], at: u64) -> Option<(u64, Range<u64>)> {
    let (_, span, place) = segments.iter().find(|(_, span, _)| span.start <= at && at < span.end)?;
    Some((place.offset + (at - span.start), at..span.end))
}
