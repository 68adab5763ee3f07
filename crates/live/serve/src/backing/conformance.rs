//! Conformance checks for any [`Backing`], including your own.
//!
//! [`backing`] reads in every way that the server does: on threads, at once, through io_uring and in batches. If the
//! backing is writable, it also changes the content. It compares everything with a copy in memory and panics at the
//! first broken promise. It takes some seconds.

use std::io;
use std::ops::Range;
use std::sync::{Arc, PoisonError};
use std::thread;
use std::time::Duration;

use bytes::BytesMut;
use headstart_nbd::EXTENTS_MAX;
use headstart_policy::conformance::Draws;

use super::{Backing, Done, Pool};
use crate::buffers::Buffers;
use crate::change::Change;
use crate::work::{Completed, Work};

const PAGE: u64 = 4096;
/// Reads in flight.
const DEPTH: u32 = 8;
/// Maximum pages of a random read, and maximum bytes of a random change.
const PAGES_MAX: u64 = 80;
const CHANGE_BYTES_MAX: u64 = 50_000;
const ROUNDS: u64 = 60;
/// Maximum polls for reads that do not end, some 20 s in all.
const LOOKS_MAX: u32 = 200_000;

/// Checks a backing that holds `content` and that nothing else changes. Writes to it if `writable`.
///
/// # Panics
/// The backing breaks a promise.
pub fn backing(backing: &Arc<dyn Backing>, content: &[u8], writable: bool) {
    let holders = Arc::strong_count(backing);
    let (done, wake): (Arc<Done>, Arc<dyn Fn() + Send + Sync>) = (Arc::default(), Arc::new(|| ()));
    let pool = Pool::try_new(backing, (DEPTH, 1), 0, &done, &wake).expect("the system gives a few threads");
    let (pages, draws) = (Buffers::new(PAGE as usize), Draws::new(content.len() as u64));
    let mut case = Case { backing, pool, done, content: content.to_vec(), pages, draws };
    case.is_described();
    case.is_read();
    case.is_read_by_threads();
    case.has_extents();
    if writable {
        (0..ROUNDS).for_each(|_| case.is_changed());
        case.keeps_what_is_flushed();
    } else {
        case.refuses_changes();
    }
    case.is_read();
    case.has_extents();
    drop(case);
    // A pool does not wait for its threads, which hold the backing until they end.
    let is_let_go = (0..LOOKS_MAX).any(|_| {
        thread::sleep(Duration::from_micros(100));
        Arc::strong_count(backing) == holders
    });
    assert!(is_let_go, "threads hold it though they have nothing to do");
}

/// The content of `pages`, zero-filled beyond the end.
fn expected(content: &[u8], pages: &Range<u64>) -> Vec<u8> {
    let end = content.len().min((pages.end * PAGE) as usize);
    let mut bytes = content[(pages.start * PAGE) as usize..end].to_vec();
    bytes.resize(((pages.end - pages.start) * PAGE) as usize, 0);
    bytes
}

struct Case<'a> {
    backing: &'a Arc<dyn Backing>,
    pool: Pool,
    done: Arc<Done>,
    content: Vec<u8>,
    pages: Buffers,
    draws: Draws,
}

impl Case<'_> {
    fn size(&self) -> u64 {
        self.content.len() as u64
    }

    fn is_described(&self) {
        let (about, again) = (self.backing.about(), self.backing.about());
        assert_eq!(about.size_bytes, self.size(), "the size");
        assert!(about.parallelism > 0, "no read at a time is worth it");
        assert!(about.read_bytes_max >= PAGE, "not even one page is worth a read");
        assert_eq!(about.identity, again.identity, "nothing has changed");
    }

    /// Random pages; the last one may lie beyond the end.
    fn drawn(&mut self) -> Range<u64> {
        let first = self.draws.below(self.size().div_ceil(PAGE));
        first..first + 1 + self.draws.below(PAGES_MAX.min(self.size().div_ceil(PAGE) + 1 - first))
    }

    /// Reads the first page, the last one, the longest useful reads and random pages.
    fn is_read(&mut self) {
        let count = self.size().div_ceil(PAGE);
        let long = (self.backing.about().read_bytes_max / PAGE).min(count);
        let mut reads = vec![0..1, count - 1..count, count - 1..count + 1, 0..long, count - long..count];
        reads.extend((0..ROUNDS).map(|_| self.drawn()));
        for pages in &reads {
            let mut buffers = self.dirty(pages);
            self.backing.read(pages.start * PAGE, &mut buffers).unwrap_or_else(|error| panic!("{pages:?}: {error}"));
            self.compare(pages, buffers);
        }
        // Twice, since the second time the page cache holds the pages.
        for reads in reads.chunks(DEPTH as usize).chain(reads.chunks(DEPTH as usize)) {
            self.is_read_together(reads);
        }
    }

    /// Buffers filled with bytes that a read must overwrite.
    fn dirty(&mut self, pages: &Range<u64>) -> Vec<BytesMut> {
        let mut buffers = self.pages.take_run((pages.end - pages.start) as usize);
        buffers.iter_mut().for_each(|buffer| buffer.fill(0xa5));
        buffers
    }

    fn compare(&mut self, pages: &Range<u64>, buffers: Vec<BytesMut>) {
        assert!(buffers.concat() == expected(&self.content, pages), "pages {pages:?} are read with other bytes");
        buffers.into_iter().for_each(|buffer| self.pages.put_back(buffer));
    }

    /// Reads as the server does.
    fn is_read_together(&mut self, reads: &[Range<u64>]) {
        let mut ended: Vec<Completed> = Vec::new();
        for (id, pages) in (0..).zip(reads) {
            let buffers = self.dirty(pages);
            let work = Work::Read { offset: pages.start * PAGE, buffers, demand: true };
            ended.extend(self.pool.start(id, work));
        }
        let mut looks = 0;
        while ended.len() < reads.len() {
            self.pool.ended(|completed| ended.push(completed));
            ended.extend(self.done.lock().unwrap_or_else(PoisonError::into_inner).drain(..).map(|(_, ended)| ended));
            looks += 1;
            assert!(looks < LOOKS_MAX, "reads of {reads:?} do not end");
            thread::sleep(Duration::from_micros(100));
        }
        for Completed { id, buffers, result } in ended {
            let pages = &reads[id as usize];
            result.unwrap_or_else(|error| panic!("{pages:?}: {error}"));
            self.compare(pages, buffers);
        }
    }

    fn is_read_by_threads(&mut self) {
        let mut reads = Vec::new();
        for _ in 0..ROUNDS {
            let pages = self.drawn();
            reads.push((self.dirty(&pages), pages));
        }
        let backing = self.backing;
        thread::scope(|scope| {
            for reads in reads.chunks_mut(ROUNDS as usize / 4) {
                scope.spawn(move || {
                    for (buffers, pages) in reads {
                        backing.read(pages.start * PAGE, buffers).expect("as by one thread");
                    }
                });
            }
        });
        reads.into_iter().for_each(|(buffers, pages)| self.compare(&pages, buffers));
    }

    /// Extents follow one another up to the end, and those reported as zero read as zeroes.
    fn has_extents(&self) {
        let mut at = 0;
        while at < self.size() {
            let length = (self.size() - at).min(1 << 30) as u32;
            let extents = self.backing.extents(at, length).expect("extents");
            assert!((1..=EXTENTS_MAX).contains(&extents.len()), "{} extents from byte {at} on", extents.len());
            let end = at + u64::from(length);
            for extent in extents {
                let next = at + u64::from(extent.length);
                assert!(at < next && next <= end, "an extent of {} at byte {at}", extent.length);
                let is_zero = || self.content[at as usize..next as usize].iter().all(|byte| *byte == 0);
                assert!(!extent.zero || is_zero(), "bytes {at} to {next} are not zeroes");
                at = next;
            }
        }
    }

    fn is_changed(&mut self) {
        let offset = self.draws.below(self.size());
        let length = 1 + self.draws.below((self.size() - offset).min(CHANGE_BYTES_MAX));
        let (kind, fua, no_hole) = (self.draws.below(4), self.draws.below(4) == 0, self.draws.below(2) == 0);
        let change = match kind {
            0 => Change::Trim { offset, length, fua },
            1 => Change::Zero { offset, length, no_hole, fua },
            _ => Change::Write { offset, data: (0..length).map(|_| self.draws.below(256) as u8).collect(), fua },
        };
        let range = offset as usize..(offset + length) as usize;
        match (self.backing.change(&change), &change) {
            // A backing may lack support for zeroing; clients then write zeroes.
            (Err(error), Change::Zero { .. }) if error.kind() == io::ErrorKind::Unsupported => return,
            (made, _) => made.unwrap_or_else(|error| panic!("{change:?}: {error}")),
        }
        match &change {
            Change::Write { data, .. } => self.content[range.clone()].copy_from_slice(data),
            Change::Zero { .. } => self.content[range.clone()].fill(0),
            // After a trim, each byte is either unchanged or zero.
            _ => self.adopt(range.clone()),
        }
        let pages = offset / PAGE..(offset + length).div_ceil(PAGE);
        let mut buffers = self.dirty(&pages);
        self.backing.read(pages.start * PAGE, &mut buffers).expect("what has changed can be read");
        self.compare(&pages, buffers);
        self.is_read_together(&[pages]);
    }

    fn adopt(&mut self, range: Range<usize>) {
        let pages = range.start as u64 / PAGE..(range.end as u64).div_ceil(PAGE);
        let mut buffers = self.dirty(&pages);
        self.backing.read(pages.start * PAGE, &mut buffers).expect("what was trimmed can be read");
        let first = (pages.start * PAGE) as usize;
        let now = &buffers.concat()[range.start - first..range.end - first];
        for (byte, now) in self.content[range].iter_mut().zip(now) {
            assert!(now == byte || *now == 0, "a trim has brought {now}");
            *byte = *now;
        }
        buffers.into_iter().for_each(|buffer| self.pages.put_back(buffer));
    }

    fn keeps_what_is_flushed(&mut self) {
        self.backing.change(&Change::Flush).expect("it can be flushed");
        self.backing.change(&Change::Renew).expect("nothing is lost by forgetting");
        self.is_read();
        let write = Change::Write { offset: 0, data: vec![7; 100], fua: true };
        self.backing.change(&write).expect("it can be changed after that");
        self.content[..100].fill(7);
    }

    fn refuses_changes(&self) {
        let (offset, length) = (0, 100);
        for change in [
            Change::Write { offset, data: vec![1; length], fua: false },
            Change::Trim { offset, length: length as u64, fua: true },
            Change::Zero { offset, length: length as u64, no_hole: true, fua: false },
        ] {
            assert!(self.backing.change(&change).is_err(), "{change:?} is made, of what cannot be written");
        }
        for change in [Change::Flush, Change::Renew] {
            self.backing.change(&change).unwrap_or_else(|error| panic!("{change:?}: {error}"));
        }
    }
}
