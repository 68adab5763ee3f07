//! The event loop: a virtual clock, one process, one level, its disks.
//!
//! At one instant, in this order (DESIGN): (1) completions, and a freed disk starts its next queued request;
//! (2) decisions, with the next reference not yet served; (3) the process's reference. Requests issued in a step
//! start together at its end.
//! Cost per reference: a comparison of three times, the level's and the policy's work; per fetch, two heap
//! operations and the device's work.

use headstart_engine::{Access, Level};
use headstart_types::{Block, KeyError, Nanos};

use crate::limits::{too_long, TIME_MAX};
use crate::process::{Awaited, Phase, Process};
use crate::progress::{OnProgress, Progress};
use crate::responses::Responses;
use crate::storage::{Ended, Storage, What};
use crate::workload::Cursor;
use crate::Error;

/// References between two reports of progress; a power of two.
const REPORT_EVERY: u32 = 1 << 16;

/// References whose blocks are looked at together before the first of them; a power of two.
const WARM: usize = 64;

/// A run under way.
pub struct Run {
    /// The level.
    pub level: Level,
    /// The disks.
    pub storage: Storage,
    /// The process.
    pub process: Process,
    /// Response times.
    pub responses: Responses,
    /// Requests served.
    pub requests: u64,
    /// How long a written block may stay dirty; `None` writes through.
    write_delay: Option<Nanos>,
    cursor: Cursor,
    now: Nanos,
}

impl Run {
    /// A run at time zero.
    #[must_use]
    pub fn new(level: Level, storage: Storage, process: Process, write_delay: Option<Nanos>, cursor: Cursor) -> Self {
        let (responses, requests, now) = (Responses::new(), 0, Nanos::ZERO);
        Self { level, storage, process, responses, requests, write_delay, cursor, now }
    }

    /// Runs to the end of the references and returns the time at which the process is done.
    ///
    /// # Errors
    /// The trace is wrong somewhere, or `on_progress` asked to stop.
    ///
    /// # Panics
    /// A policy lets the process wait for a block that nothing will bring: a bug.
    pub fn finish(&mut self, on_progress: OnProgress<'_>) -> Result<Nanos, Error> {
        let mut report_at = REPORT_EVERY;
        while let Some(block) = self.next_block()? {
            self.reach_and_serve(block)?;
            if self.process.position >= report_at {
                report_at = self.process.position.saturating_add(REPORT_EVERY);
                if !on_progress(self.progress()) {
                    return Err(Error::Stopped);
                }
            }
        }
        self.process.phase = Phase::Done;
        let end = self.process.free_at;
        if end > TIME_MAX {
            return Err(too_long());
        }
        while let Some(at) = self.storage.next_event().filter(|at| *at <= end) {
            self.complete(at);
        }
        Ok(end)
    }

    fn progress(&self) -> Progress {
        let references = u64::from(self.process.position);
        let (done, total) = match &self.cursor.supply {
            Some(supply) => supply.progress(),
            None => (self.cursor.at as u64, self.cursor.chunk.blocks.len() as u64),
        };
        Progress { share: done as f64 / total.max(1) as f64, references }
    }

    /// The block of the next reference; reads on where the chunk is used up.
    #[inline]
    fn next_block(&mut self) -> Result<Option<Block>, Error> {
        if self.cursor.at == self.cursor.chunk.blocks.len() && !self.read_on()? {
            return Ok(None);
        }
        if self.cursor.at % WARM == 0 {
            let next = self.cursor.at..(self.cursor.at + WARM).min(self.cursor.chunk.blocks.len());
            self.level.warm(&self.cursor.chunk.blocks[next], &self.storage);
        }
        Ok(Some(self.cursor.chunk.blocks[self.cursor.at]))
    }

    #[cold]
    fn read_on(&mut self) -> Result<bool, Error> {
        let Some(supply) = &mut self.cursor.supply else { return Ok(false) };
        self.cursor.at = 0;
        if !supply.next(&mut self.cursor.chunk)? {
            return Ok(false);
        }
        if self.process.position > u32::MAX - (1 << 30) {
            let problem = "more references than positions can number";
            return Err(KeyError::new("workload.limit", problem, "fewer than 3 billion references").into());
        }
        let universe = supply.places.universe();
        self.level.grow(&universe.disk_of);
        self.storage.grow(&universe.sector_of);
        Ok(true)
    }

    /// From the current instant on until the reference of `block` has been served.
    #[inline]
    fn reach_and_serve(&mut self, block: Block) -> Result<(), Error> {
        loop {
            let now = self.next_instant();
            self.now = now;
            if now > TIME_MAX {
                return Err(too_long());
            }
            if self.is_quiet(now) {
                // Nothing but the process acts: most references of a warm cache.
                if self.refer(now, block, self.process.charged()) {
                    return Ok(());
                }
                continue;
            }
            let due = self.step_one(now);
            let driver_before = self.process.charged();
            self.decide(now, block, due);
            if due && self.refer(now, block, driver_before) {
                return Ok(());
            }
        }
    }

    /// The earliest of the process's own act, a completion, and the policy's wish to be woken.
    #[inline]
    fn next_instant(&self) -> Nanos {
        let mut next = self.process.due().unwrap_or(Nanos::MAX);
        if let Some(event) = self.storage.next_event() {
            next = next.min(event);
        }
        if let Some(wake) = self.level.wake_at().filter(|at| *at > self.now) {
            next = next.min(wake);
        }
        if let Some(flush) = self.level.flush_at() {
            next = next.min(flush);
        }
        assert_ne!(next, Nanos::MAX, "nothing will bring the block that reference {} waits for", self.process.position);
        next
    }

    /// Whether steps (1) and (2) have nothing to do at `now`.
    #[inline]
    fn is_quiet(&self, now: Nanos) -> bool {
        !self.level.wants_to_decide()
            && self.level.wake_at().is_none()
            && self.level.flush_at().is_none_or(|at| at > now)
            && self.storage.next_event().is_none_or(|event| event > now)
    }

    /// Step (1). Returns whether the process acts at this instant.
    #[inline]
    fn step_one(&mut self, now: Nanos) -> bool {
        while self.complete(now) {}
        self.process.due().is_some_and(|due| due <= now)
    }

    #[inline]
    fn complete(&mut self, now: Nanos) -> bool {
        let Self { level, storage, process, .. } = self;
        storage.complete(now, |Ended { block, disk, what, .. }| {
            if what == What::Written {
                level.written(disk);
            } else {
                let service = if let What::Fetched(service) = what { Some(service) } else { None };
                level.arrived(now, block, disk, service);
            }
            process.arrived(now, block, what == What::Written);
        })
    }

    /// Step (2).
    #[inline]
    fn decide(&mut self, now: Nanos, block: Block, due: bool) {
        if self.level.flush_at().is_some_and(|at| at <= now) {
            self.flush(now);
        }
        let woken = self.level.wake_at().is_some_and(|at| at <= now);
        if self.level.wants_to_decide() || woken {
            // A process that waits for its write has its block behind it.
            let wants = (due || self.process.due().is_none()) && !self.process.is_writing();
            let at_hand = wants.then_some(block);
            let issued = self.level.decide(now, at_hand, &mut self.storage);
            self.issued(now, issued);
        }
    }

    /// Writes what is due.
    #[cold]
    fn flush(&mut self, now: Nanos) {
        let issued = self.level.flush(now, &mut self.storage);
        self.issued(now, issued);
    }

    #[inline]
    fn issued(&mut self, now: Nanos, requests: u32) {
        if requests > 0 {
            self.process.charge_driver(now, requests);
            self.storage.start_issued(now);
        }
    }

    /// Step (3). Returns whether the reference has been served, and written where it writes.
    #[inline]
    fn refer(&mut self, now: Nanos, block: Block, driver_before: Nanos) -> bool {
        let (position, compute) = (self.process.position, self.process.last_think);
        let mut write = self.cursor.chunk.is_write(self.cursor.at);
        let issued = match self.process.phase {
            Phase::Granted(wait) => {
                self.process.end_wait(now, &wait, driver_before);
                match wait.what {
                    Awaited::Read(outcome) => {
                        self.level.resume(now, position, block, outcome, wait.since, compute, &mut self.storage)
                    }
                    _ => {
                        // Its write is done, and it was served before.
                        write = false;
                        0
                    }
                }
            }
            _ => {
                self.process.request_since.get_or_insert(now);
                let (access, issued) = self.level.reference(now, position, block, write, compute, &mut self.storage);
                if let Access::Waits(outcome) = access {
                    self.process.wait(now, block, Awaited::Read(outcome), driver_before);
                    self.issued(now, issued);
                    return false;
                }
                issued
            }
        };
        self.issued(now, issued);
        if write && self.write(now, block, driver_before) {
            return false;
        }
        self.served(now)
    }

    /// Writes the block that has just been served. Returns whether the process waits until it is on its disk.
    /// `driver_before` is the driver work charged before this instant: what came since overlaps the wait.
    #[cold]
    fn write(&mut self, now: Nanos, block: Block, driver_before: Nanos) -> bool {
        self.level.write(now, block, self.write_delay, &mut self.storage);
        if self.write_delay.is_some() {
            return false;
        }
        self.process.wait(now, block, Awaited::Write, driver_before);
        self.issued(now, 1);
        true
    }

    /// The reference is done with: the process pays for it, thinks and goes on.
    #[inline]
    fn served(&mut self, now: Nanos) -> bool {
        let think = self.cursor.chunk.think.after(self.cursor.at).min(TIME_MAX);
        let ends_request = self.cursor.chunk.ends_request(self.cursor.at);
        let bytes = self.cursor.chunk.bytes_of(self.cursor.at);
        if let Some(response) = self.process.served(now, think, ends_request, bytes) {
            self.responses.record(response);
        }
        self.requests += u64::from(ends_request);
        self.cursor.at += 1;
        true
    }
}
