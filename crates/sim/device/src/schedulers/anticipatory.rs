//! Anticipatory: after a process's read the disk waits briefly for its next read, which is likely to be near.
//!
//! A process that reads one block after another, with think times in between, never has two requests queued; a
//! work-conserving scheduler therefore serves another process's distant request each time (S. Iyer and P. Druschel,
//! "Anticipatory scheduling: a disk scheduling framework to overcome deceptive idleness in synchronous I/O", SOSP
//! 2001). This scheduler keeps the device idle for up to `wait` after a read's end, although other requests wait, if
//! the process tends to return in time. It stops waiting when a request of that process arrives, when a read of another
//! process arrives that is near (the threshold grows while it waits) or nearer than the process's usual distance, or
//! when the time is over.
//!
//! After Linux 2.6.18, block/as-iosched.c. Reads and writes are served in timed batches (see `batches.rs`). Within a
//! batch: the nearest request ahead, or one behind by at most 2^20 sectors if it is less than half as far away, else
//! the lowest. The oldest is served first once it has waited for `read_expire` or `write_expire`, which is checked once
//! per expiry period. Contiguous requests are merged (see `merging.rs`). Differences: the next request by position is
//! searched when needed, not kept; a merged read counts for its process too; time is in nanoseconds, not ticks; writes
//! are never synchronous. We do not observe exits of processes: instead of 2.6.18's exit handling we use a rule of an
//! earlier 2.6, that new processes are not waited for while most new ones did not return.
//!
//! It needs the process: a request without one is never waited for. The blind variant treats all requests as one
//! process's, as seen by a scheduler below a virtual machine or a file server (li07 section 3.2; Jones et al., USENIX
//! 2006): any queued request is then "of the same process", so it never waits.
//!
//! It promises nothing: a stream of near reads holds the device for a batch, and expiry lets one request through at a
//! time. O(log n) per request, plus O(log processes).

use headstart_types::{keys, read_keys, KeyTable, Nanos};

use super::batches::Batches;
use super::history::History;
use super::merging::{Handle, MergeQueue, Pushed, Rules, READS, WRITES};
use super::{Next, Queued, Scheduler};
use crate::row::SchedulerRow;
use crate::time::Time;
use crate::{Device, Request};

pub const ROW: SchedulerRow = SchedulerRow {
    name: "anticipatory",
    summary: "Linux 2.6's anticipatory: waits briefly for the next read of a process, if processes are known",
    keys: KeyTable::of::<AnticipatoryKeys>(),
    build: |keys| Ok(Box::new(Anticipatory::new(&read_keys(keys)?, false))),
};

pub const BLIND: SchedulerRow = SchedulerRow {
    name: "anticipatory-blind",
    summary: "as anticipatory, treating all requests as one process's, as below virtual machines and file servers",
    keys: KeyTable::of::<AnticipatoryKeys>(),
    build: |keys| Ok(Box::new(Anticipatory::new(&read_keys(keys)?, true))),
};

keys! {
    /// Keys of `anticipatory` and `anticipatory-blind`. The defaults are Linux's.
    pub struct AnticipatoryKeys {
        /// Maximum time that the device is kept idle for a process's next read.
        pub wait: Time = Time::from_millis(6),
        /// Waiting time after which a read is served first.
        pub read_expire: Time = Time::from_millis(125),
        /// Waiting time after which a write is served first.
        pub write_expire: Time = Time::from_millis(250),
        /// Time for which reads are served before waiting writes.
        pub read_batch: Time = Time::from_millis(500),
        /// Time for which writes are served before waiting reads.
        pub write_batch: Time = Time::from_millis(125),
        /// Whether contiguous requests are merged.
        pub merge: bool = true,
        /// Maximum number of sectors of a merged request.
        #[schemars(range(min = 1))]
        pub max_sectors: u32 = 1024,
    }
}

/// Maximum distance in sectors of a request behind the head.
const BACK_MAX: u64 = 1 << 20;

/// Factor on the distance of a request behind the head.
const BACK_PENALTY: u64 = 2;

/// Distance in sectors from the last read's end that counts as near at first; it doubles with each millisecond of
/// waiting.
const NEAR: u64 = 8192;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Status {
    Off,
    /// Waiting for the end of the read in service, to then wait for its process's next read.
    AwaitsEnd,
    /// Waiting for the process's next read.
    AwaitsNext,
    /// Done waiting; the next request is served, whatever it is.
    Over,
}

#[derive(Debug, Clone)]
pub struct Anticipatory {
    queue: MergeQueue,
    history: History,
    settings: AnticipatoryRules,
    status: Status,
    /// The process of the last dispatched request, if it was a read.
    process: Option<u32>,
    /// When a request of that process has ended since.
    ended: Option<Nanos>,
    /// By lane: where the last dispatched request ended.
    last_end: [u64; 3],
    /// By lane: when expiry was last checked.
    checked: [Nanos; 3],
    batches: Batches,
}

#[derive(Debug, Clone, Copy)]
struct AnticipatoryRules {
    wait: Nanos,
    expire: [Nanos; 3],
    blind: bool,
}

impl Anticipatory {
    /// An empty queue; `blind` ignores processes.
    #[must_use]
    pub fn new(keys: &AnticipatoryKeys, blind: bool) -> Self {
        let expire = [keys.read_expire.0, keys.read_expire.0, keys.write_expire.0];
        let &AnticipatoryKeys { merge, max_sectors: sectors_max, .. } = keys;
        Self {
            queue: MergeQueue::new(Rules { back_merges: merge, front_merges: merge, sectors_max, classes: false }),
            history: History::default(),
            settings: AnticipatoryRules { wait: keys.wait.0, expire, blind },
            status: Status::Off,
            process: None,
            ended: None,
            last_end: [0; 3],
            checked: [Nanos::ZERO; 3],
            batches: Batches::new(keys.read_batch.0, keys.write_batch.0),
        }
    }

    fn process_of(&self, request: &Request) -> Option<u32> {
        if self.settings.blind {
            Some(0)
        } else {
            request.process
        }
    }

    /// The next request of a lane by position.
    fn by_place(&self, lane: usize) -> Option<Handle> {
        let last = self.last_end[lane];
        let sector = |handle: &Handle| self.queue.whole(*handle).request.sector;
        let ahead = self.queue.at_or_above(lane, last);
        let behind = self.queue.below(lane, last).filter(|behind| last - sector(behind) <= BACK_MAX);
        match (ahead, behind) {
            (Some(ahead), Some(behind)) => {
                let back = (last - sector(&behind)) * BACK_PENALTY;
                Some(if back < sector(&ahead) - last { behind } else { ahead })
            }
            (None, None) => self.queue.at_or_above(lane, 0),
            (one, other) => one.or(other),
        }
    }

    /// Whether the oldest request of a lane has expired; checked once per expiry period.
    fn has_expired(&mut self, lane: usize, now: Nanos) -> bool {
        let expire = self.settings.expire[lane];
        if now - self.checked[lane] < expire {
            return false;
        }
        self.checked[lane] = now;
        self.queue.eldest(lane).is_some_and(|eldest| now > self.queue.whole(eldest).arrived + expire)
    }

    /// Whether a read is near the last one, or nearer than the process's usual distance.
    fn is_near(&self, now: Nanos, process: u32, request: &Request) -> bool {
        let waited = match (self.status, self.ended) {
            (Status::Off, _) | (_, None) => Nanos::ZERO,
            (_, Some(ended)) => now - ended,
        };
        let waited_ms = waited.0 / 1_000_000;
        if waited_ms > 20 || waited > self.settings.wait {
            return true;
        }
        let (last, next, near) = (self.last_end[READS], request.sector, NEAR << waited_ms);
        let around = last <= next.saturating_add(near / 2) && next <= last.saturating_add(near);
        around || self.history.seeks(process) > last.abs_diff(next)
    }

    /// Whether waiting for `process` no longer pays, now that `next` could be served.
    fn is_in_vain(&mut self, now: Nanos, process: u32, next: Option<&Queued>) -> bool {
        if next.is_some_and(|next| self.process_of(&next.request) == Some(process))
            || self.ended.is_some_and(|ended| now >= ended + self.settings.wait)
            || self.history.has_queued(process)
        {
            return true;
        }
        if let Some(next) = next.filter(|next| !next.request.write) {
            if self.is_near(now, process, &next.request) {
                // The two processes work in the same place: one's read counts as the other's.
                self.history.reads(process, now, &next.request);
                return true;
            }
        }
        self.history.thinks_too_long(process, self.settings.wait)
    }

    /// Starts or continues to wait if that pays, and returns the answer for `pop`.
    fn anticipate(&mut self, now: Nanos, next: Option<Handle>) -> Option<Next> {
        let process = self.process?;
        let next = next.map(|next| *self.queue.whole(next));
        if self.settings.wait == Nanos::ZERO
            || self.status == Status::Over
            || self.is_in_vain(now, process, next.as_ref())
        {
            return None;
        }
        Some(self.wait_from(self.ended))
    }

    fn wait_from(&mut self, ended: Option<Nanos>) -> Next {
        match ended {
            Some(ended) => {
                self.status = Status::AwaitsNext;
                Next::Wait(ended + self.settings.wait)
            }
            None => {
                self.status = Status::AwaitsEnd;
                Next::Nothing
            }
        }
    }

    /// The request to serve, or the answer if none is to be served now.
    fn choose(&mut self, now: Nanos) -> Result<Handle, Next> {
        let (reads, writes) = (self.queue.has(READS), self.queue.has(WRITES));
        self.batches.look(reads, writes);
        if !(reads || writes) || self.batches.must_wait() {
            return Err(Next::Nothing);
        }
        if let Status::AwaitsEnd | Status::AwaitsNext = self.status {
            return Err(self.wait_from(self.ended));
        }
        if !(reads && writes && self.batches.is_over(now)) {
            let lane = self.batches.lane;
            let chosen = self.by_place(lane);
            if lane == READS {
                if self.has_expired(READS, now) {
                    return self.queue.eldest(READS).ok_or(Next::Nothing);
                }
                if let Some(next) = self.anticipate(now, chosen) {
                    return Err(next);
                }
            }
            if let Some(chosen) = chosen {
                if reads && !writes {
                    self.batches.extend(now);
                }
                return Ok(self.expired_or(chosen, now));
            }
        }
        self.batches.turn(reads, writes);
        let lane = self.batches.lane;
        let chosen = if lane == READS {
            self.checked[READS] = now;
            self.queue.eldest(READS)
        } else {
            self.by_place(WRITES)
        };
        if self.batches.must_wait() {
            return Err(Next::Nothing);
        }
        chosen.map(|chosen| self.expired_or(chosen, now)).ok_or(Next::Nothing)
    }

    fn expired_or(&mut self, chosen: Handle, now: Nanos) -> Handle {
        let lane = self.batches.lane;
        let eldest = if self.has_expired(lane, now) { self.queue.eldest(lane) } else { None };
        eldest.unwrap_or(chosen)
    }
}

impl Scheduler for Anticipatory {
    fn push(&mut self, queued: Queued) {
        let process = self.process_of(&queued.request);
        if let (Some(process), false) = (process, queued.request.write) {
            self.history.reads(process, queued.arrived, &queued.request);
        }
        match self.queue.push(queued) {
            Pushed::Added => process.into_iter().for_each(|process| self.history.queued(process)),
            Pushed::Merged => {}
            Pushed::Closed(lost) => {
                let lost = if self.settings.blind { Some(0) } else { lost };
                lost.into_iter().for_each(|process| self.history.merged(process));
            }
        }
        if let (Status::AwaitsEnd | Status::AwaitsNext, Some(awaited)) = (self.status, self.process) {
            if self.is_in_vain(queued.arrived, awaited, Some(&queued)) {
                self.status = Status::Over;
            }
        }
    }

    fn pop(&mut self, now: Nanos, _device: &dyn Device, parts: &mut Vec<Queued>) -> Next {
        let over = self.ended.is_some_and(|ended| now >= ended + self.settings.wait);
        if let (Status::AwaitsNext, true, Some(process)) = (self.status, over, self.process) {
            self.history.stayed_away(process);
            self.status = Status::Over;
        }
        let handle = match self.choose(now) {
            Ok(handle) => handle,
            Err(next) => return next,
        };
        let whole = self.queue.take(handle, parts);
        let process = self.process_of(&whole.request);
        process.into_iter().for_each(|process| self.history.dispatched(process));
        self.last_end[if whole.request.write { WRITES } else { READS }] = whole.request.end();
        self.process = process.filter(|_| !whole.request.write);
        self.batches.dispatched(now, whole.request.write);
        self.status = Status::Off;
        self.ended = None;
        Next::Serve(whole)
    }

    fn len(&self) -> usize {
        self.queue.len()
    }

    fn completed(&mut self, now: Nanos, queued: &Queued) {
        let read = !queued.request.write;
        self.batches.completed(now, !read);
        let Some(process) = self.process_of(&queued.request) else { return };
        self.history.ended(process, now, read);
        if self.process == Some(process) {
            self.ended = Some(now);
            if self.status == Status::AwaitsEnd {
                self.status = Status::AwaitsNext;
            }
        }
    }

    fn merges_up_to(&self) -> u32 {
        self.queue.merges_up_to()
    }

    fn idles_at_most(&self) -> Nanos {
        if self.settings.blind {
            Nanos::ZERO
        } else {
            self.settings.wait
        }
    }
}
