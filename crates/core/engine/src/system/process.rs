//! A process: it references, thinks, pays for driver work, and waits.
//!
//! One processor time line serves both thinking and driver work. Work issued while the process thinks delays its next
//! reference; work issued while it waits overlaps the wait (kimbrel96; DESIGN). Prefetch actions overlap waits too;
//! their part beyond the end of a wait, the overrun, is overhead. Hence for every process elapsed = compute + driver +
//! overhead + stall + barrier + idle.

use headstart_types::{Nanos, Outcome, Position};

/// Upper limit of all times, 146 years, and of every single think time, so that sums of a few times fit in 64 bits.
pub const TIME_MAX: Nanos = Nanos(1 << 62);

/// What the process is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Thinking (or doing driver work) before its next reference.
    Thinking,
    /// Waiting.
    Waiting(Wait),
    /// Its wait is over; the processor may still be busy with driver work or a prefetch action.
    Granted(Wait),
    /// All references are served.
    Done,
}

/// What a process waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Awaited {
    /// Its block, with how it was found.
    Read(Outcome),
    /// The end of its write; the reference itself has been served.
    Write,
    /// The other processes, at a barrier.
    Others,
}

/// A wait in progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wait {
    /// The reason.
    pub what: Awaited,
    /// Start of the wait.
    pub since: Nanos,
    /// When the awaited event happened.
    over_at: Nanos,
    /// Driver work and overrun charged before the wait started.
    charged_before: Nanos,
}

impl Wait {
    /// When the awaited event happened, once it has.
    #[must_use]
    pub fn over_at(&self) -> Nanos {
        self.over_at
    }

    /// The stall or barrier time of the wait until `now`; `charged_before` is [`Process::charged`] before this instant.
    #[inline]
    #[must_use]
    pub fn waited(&self, now: Nanos, charged_before: Nanos) -> Nanos {
        (now - self.since) - (charged_before - self.charged_before)
    }
}

/// A process and its time accounting.
#[derive(Debug, Clone)]
pub struct Process {
    /// Its current activity.
    pub phase: Phase,
    /// Position of its next reference.
    pub position: Position,
    /// When its processor is free; the next reference happens then.
    pub free_at: Nanos,
    /// Think time.
    pub compute: Nanos,
    /// Driver work.
    pub driver: Nanos,
    /// Costs of hits, calls and copies, waits for shared structures, and overrun.
    pub overhead: Nanos,
    /// The part of `overhead` by which the process acted later than it could have; only on live hosts, where execution
    /// takes real time.
    pub late: Nanos,
    /// The part of `overhead` in which prefetch actions delayed a process that could have continued.
    pub overrun: Nanos,
    /// Waits for blocks, without driver work done meanwhile and without overrun.
    pub stall: Nanos,
    /// The part of `stall` on blocks that were in flight already.
    pub other_io: Nanos,
    /// Waits for other processes, without driver work and overrun.
    pub barrier: Nanos,
    /// Sum of the times from requesting a block to having it.
    pub read_time: Nanos,
    /// Number of blocks read from buffers of other nodes. `remote` is their additional cost for the current reference.
    pub remote_reads: u64,
    remote: Nanos,
    /// Sum of the waits for blocks that were in flight already, until they arrived.
    pub hit_wait: Nanos,
    /// Time before its first request.
    pub idle: Nanos,
    /// Think time after the last served reference.
    pub last_think: Nanos,
    /// Start of the current request.
    pub request_since: Option<Nanos>,
    costs: Costs,
    /// The cost of a reference to a whole block.
    reference: Nanos,
}

/// Costs in processor time.
#[derive(Debug, Clone, Copy, Default)]
pub struct Costs {
    /// Driver work per order to the level or devices below.
    pub driver: Nanos,
    /// Per reference, to find and deliver the block.
    pub hit: Nanos,
    /// Per request.
    pub request: Nanos,
    /// Per KiB delivered.
    pub copy_per_kib: Nanos,
    /// Bytes per block.
    pub block_bytes: u64,
}

impl Costs {
    /// The cost of delivering `bytes` of a block (`None`: all of it). Metadata (0 bytes) is not delivered and costs
    /// nothing.
    #[inline]
    fn of_reference(&self, bytes: Option<u32>) -> Nanos {
        match bytes {
            None => self.hit + copy_time(self.copy_per_kib, self.block_bytes),
            Some(0) => Nanos::ZERO,
            Some(bytes) => self.hit + copy_time(self.copy_per_kib, u64::from(bytes)),
        }
    }
}

fn copy_time(per_kib: Nanos, bytes: u64) -> Nanos {
    Nanos((u128::from(per_kib.0) * u128::from(bytes) / 1024) as u64)
}

impl Process {
    /// A process about to make its first reference, at time zero.
    #[must_use]
    pub fn new(costs: Costs) -> Self {
        Self {
            reference: costs.of_reference(None),
            costs,
            phase: Phase::Thinking,
            position: 0,
            free_at: Nanos::ZERO,
            compute: Nanos::ZERO,
            driver: Nanos::ZERO,
            overhead: Nanos::ZERO,
            late: Nanos::ZERO,
            overrun: Nanos::ZERO,
            stall: Nanos::ZERO,
            other_io: Nanos::ZERO,
            barrier: Nanos::ZERO,
            read_time: Nanos::ZERO,
            remote_reads: 0,
            remote: Nanos::ZERO,
            hit_wait: Nanos::ZERO,
            idle: Nanos::ZERO,
            last_think: Nanos::ZERO,
            request_since: None,
        }
    }

    /// When it next acts by itself; `None` while it waits or when it is done.
    #[inline]
    #[must_use]
    pub fn due(&self) -> Option<Nanos> {
        match self.phase {
            Phase::Thinking | Phase::Granted(_) => Some(self.free_at),
            Phase::Waiting(_) | Phase::Done => None,
        }
    }

    /// Whether it waits for a block, or is about to request one.
    #[inline]
    #[must_use]
    pub fn wants_block(&self) -> bool {
        self.phase != Phase::Done && !matches!(self.awaits(), Some(Awaited::Write | Awaited::Others))
    }

    /// Whether it waits for a block, or has one that it has not taken yet.
    #[must_use]
    pub fn is_reading(&self) -> bool {
        matches!(self.awaits(), Some(Awaited::Read(_)))
    }

    /// The reason of its current wait, or of the wait that has just ended.
    #[inline]
    fn awaits(&self) -> Option<Awaited> {
        match self.phase {
            Phase::Waiting(wait) | Phase::Granted(wait) => Some(wait.what),
            Phase::Thinking | Phase::Done => None,
        }
    }

    /// Driver work, overrun and lateness so far: times that may overlap a wait without being part of it.
    #[inline]
    #[must_use]
    pub fn charged(&self) -> Nanos {
        self.driver + self.overrun + self.late
    }

    /// The process acts at `now`. Returns how much later that is than it could have.
    pub fn acts(&mut self, now: Nanos) -> Nanos {
        let late = now.saturating_sub(self.free_at);
        self.late += late;
        self.overhead += late;
        self.free_at += late;
        late
    }

    /// Charges the driver work of `requests` device requests issued at `now`.
    #[inline]
    pub fn charge_driver(&mut self, now: Nanos, requests: u32) {
        if requests > 0 {
            // Costs are bounded: at most 2^32 requests of an hour each, cut off where the run ends anyway.
            let work = Nanos(self.costs.driver.0.saturating_mul(u64::from(requests))).min(TIME_MAX);
            self.free_at = self.free_at.max(now) + work;
            self.driver += work;
        }
    }

    /// Starts a wait for `what`: its block, or the end of its write. `charged_before` is [`Process::charged`] before
    /// this instant.
    #[inline]
    pub fn wait(&mut self, now: Nanos, what: Awaited, charged_before: Nanos) {
        self.phase = Phase::Waiting(Wait { what, since: now, over_at: now, charged_before });
    }

    /// Handles the end of a request, or of all of its writes. Returns whether that ends the wait.
    #[inline]
    pub fn arrived(&mut self, now: Nanos, written: bool) -> bool {
        match self.phase {
            Phase::Waiting(wait) if (wait.what == Awaited::Write) == written => {
                self.granted(now);
                true
            }
            _ => false,
        }
    }

    /// Records that the awaited event has happened.
    #[inline]
    pub fn granted(&mut self, now: Nanos) {
        if let Phase::Waiting(wait) = self.phase {
            self.phase = Phase::Granted(Wait { over_at: now, ..wait });
            self.free_at = self.free_at.max(now);
        }
    }

    /// It could continue, but its processor is busy with a prefetch action for `overrun` more, until `end`.
    pub fn overruns(&mut self, end: Nanos, overrun: Nanos) {
        self.free_at = self.free_at.max(end);
        self.overrun += overrun;
        self.overhead += overrun;
    }

    /// Charges a wait of `cost` for shared structures.
    pub fn pays(&mut self, now: Nanos, cost: Nanos) {
        self.free_at = self.free_at.max(now) + cost;
        self.overhead += cost;
        self.read_time += cost;
    }

    /// Records that `blocks` of the looked-up blocks are on other nodes: delivering them will take `cost` more.
    pub fn reads_remotely(&mut self, blocks: u64, cost: Nanos) {
        self.remote_reads += blocks;
        self.remote = cost;
    }

    /// Ends the wait at `now`; `charged_before` as in [`Process::wait`].
    #[inline]
    pub fn end_wait(&mut self, now: Nanos, wait: &Wait, charged_before: Nanos) {
        let waited = wait.waited(now, charged_before);
        match wait.what {
            Awaited::Others => self.barrier += waited,
            Awaited::Write => self.stall += waited,
            Awaited::Read(outcome) => {
                self.stall += waited;
                self.read_time += now - wait.since;
                if outcome == Outcome::HitUnready {
                    self.other_io += waited;
                    self.hit_wait += wait.over_at - wait.since;
                }
            }
        }
        self.phase = Phase::Thinking;
    }

    /// Delivers the reference at `now`: pays for it and thinks. Returns the response time of the request that it ends,
    /// if it ends one. `bytes` of the block were requested; `None`: all. A request that ends with metadata is not the
    /// application's.
    #[inline]
    pub fn served(&mut self, now: Nanos, think: Nanos, ends_request: bool, bytes: Option<u32>) -> Option<Nanos> {
        let mut since = self.request_since.take();
        let mut cost = if bytes.is_none() { self.reference } else { self.costs.of_reference(bytes) };
        cost += std::mem::take(&mut self.remote);
        if !ends_request {
            self.request_since = since;
        } else if bytes == Some(0) {
            since = None;
        } else {
            cost += self.costs.request;
        }
        self.overhead += cost;
        self.read_time += cost;
        self.compute += think;
        self.last_think = think;
        self.free_at = self.free_at.max(now) + cost + think;
        self.position += 1;
        since.filter(|_| ends_request).map(|since| now + cost - since)
    }
}
