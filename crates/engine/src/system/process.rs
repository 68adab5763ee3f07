//! A process: it references, thinks, pays for driver work, and waits.
//!
//! One processor time line serves both for thinking and for driver work: work issued while the process thinks puts
//! its next reference off; work issued while it waits overlaps the wait (kimbrel96; DESIGN). Prefetch actions overlap
//! waits too; what of them lies beyond a wait's end, the overrun, is overhead. Hence for every process elapsed =
//! compute + driver + overhead + stall + barrier + idle.

use headstart_types::{Nanos, Outcome, Position};

/// No clock passes this, 146 years, and no single think time is longer, so that sums of a few times never leave 64 bits.
pub const TIME_MAX: Nanos = Nanos(1 << 62);

/// What the process is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Thinking (or doing driver work) before its next reference.
    Thinking,
    /// Waiting.
    Waiting(Wait),
    /// What it waited for is there; the processor may still be at driver work, or at a prefetch action.
    Granted(Wait),
    /// All references are served.
    Done,
}

/// What a process waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Awaited {
    /// Its block, which was found so.
    Read(Outcome),
    /// The end of its write; the reference itself has been served.
    Write,
    /// The other processes, at a barrier.
    Others,
}

/// A wait under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wait {
    /// What for.
    pub what: Awaited,
    /// Since when.
    pub since: Nanos,
    /// When what is waited for was there.
    over_at: Nanos,
    /// Driver work and overrun charged before it began.
    charged_before: Nanos,
}

impl Wait {
    /// When what is waited for was there, once it is.
    #[must_use]
    pub fn over_at(&self) -> Nanos {
        self.over_at
    }

    /// What of the wait until `now` is stall or barrier; `charged_before` is what [`Process::charged`] was before this instant.
    #[inline]
    #[must_use]
    pub fn waited(&self, now: Nanos, charged_before: Nanos) -> Nanos {
        (now - self.since) - (charged_before - self.charged_before)
    }
}

/// A process and where its time has gone.
#[derive(Debug, Clone)]
pub struct Process {
    /// What it does now.
    pub phase: Phase,
    /// Position of its next reference.
    pub position: Position,
    /// When its processor is free: the next reference is then.
    pub free_at: Nanos,
    /// Think time.
    pub compute: Nanos,
    /// Driver work.
    pub driver: Nanos,
    /// Hit, call and copy costs, waits for shared structures, and overrun.
    pub overhead: Nanos,
    /// The part of `overhead` by which the process acted later than it could have: of a live host, whose machine takes its
    /// time.
    pub late: Nanos,
    /// The part of `overhead` in which prefetch actions held up a process that could have gone on.
    pub overrun: Nanos,
    /// Waits for blocks, without the driver work done meanwhile and without overrun.
    pub stall: Nanos,
    /// The part of `stall` on blocks that were on their way already.
    pub other_io: Nanos,
    /// Waits for other processes, likewise.
    pub barrier: Nanos,
    /// Sum of the times from asking for a block to having it.
    pub read_time: Nanos,
    /// Blocks read from buffers of other nodes, and what that adds to the reference under way.
    pub remote_reads: u64,
    remote: Nanos,
    /// Sum of the waits for blocks that were on their way already, until they were there.
    pub hit_wait: Nanos,
    /// Time before its first request.
    pub idle: Nanos,
    /// Think time after the last served reference.
    pub last_think: Nanos,
    /// When the request under way began.
    pub request_since: Option<Nanos>,
    costs: Costs,
    /// The cost of a reference to a whole block.
    reference: Nanos,
}

/// Costs in processor time.
#[derive(Debug, Clone, Copy, Default)]
pub struct Costs {
    /// Driver work for each order to what is below.
    pub driver: Nanos,
    /// For each reference, to find and hand over the block.
    pub hit: Nanos,
    /// For each request.
    pub request: Nanos,
    /// For each KiB handed over.
    pub copy_per_kib: Nanos,
    /// Bytes of a block.
    pub block_bytes: u64,
}

impl Costs {
    /// What it takes to hand over `bytes` of a block, or all of it; nothing is handed over of metadata.
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

    /// When it acts next of its own accord; `None` while it waits or when it is done.
    #[inline]
    #[must_use]
    pub fn due(&self) -> Option<Nanos> {
        match self.phase {
            Phase::Thinking | Phase::Granted(_) => Some(self.free_at),
            Phase::Waiting(_) | Phase::Done => None,
        }
    }

    /// Whether it waits for a block, or is about to ask for one.
    #[inline]
    #[must_use]
    pub fn wants_block(&self) -> bool {
        self.phase != Phase::Done && !matches!(self.awaits(), Some(Awaited::Write | Awaited::Others))
    }

    /// Whether it waits for a block, or has not taken it though it is there.
    #[must_use]
    pub fn is_reading(&self) -> bool {
        matches!(self.awaits(), Some(Awaited::Read(_)))
    }

    /// What it waits for, or waited for until what it waited for was there.
    #[inline]
    fn awaits(&self) -> Option<Awaited> {
        match self.phase {
            Phase::Waiting(wait) | Phase::Granted(wait) => Some(wait.what),
            Phase::Thinking | Phase::Done => None,
        }
    }

    /// Driver work, overrun and lateness so far: what may overlap a wait without being part of it.
    #[inline]
    #[must_use]
    pub fn charged(&self) -> Nanos {
        self.driver + self.overrun + self.late
    }

    /// It acts at `now`. Returns how much later that is than it could have.
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
            // Bounded costs: at most 2^32 requests of an hour, cut off where the run ends anyway.
            let work = Nanos(self.costs.driver.0.saturating_mul(u64::from(requests))).min(TIME_MAX);
            self.free_at = self.free_at.max(now) + work;
            self.driver += work;
        }
    }

    /// It waits for `what`: its block, or the end of its write. `charged_before` is what [`Process::charged`] was
    /// before this instant.
    #[inline]
    pub fn wait(&mut self, now: Nanos, what: Awaited, charged_before: Nanos) {
        self.phase = Phase::Waiting(Wait { what, since: now, over_at: now, charged_before });
    }

    /// A request is done, or all of its blocks have been written. Returns whether that ends its wait.
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

    /// What it waits for is there.
    #[inline]
    pub fn granted(&mut self, now: Nanos) {
        if let Phase::Waiting(wait) = self.phase {
            self.phase = Phase::Granted(Wait { over_at: now, ..wait });
            self.free_at = self.free_at.max(now);
        }
    }

    /// It could go on, but its processor is at a prefetch action for `overrun` more, until `end`.
    pub fn overruns(&mut self, end: Nanos, overrun: Nanos) {
        self.free_at = self.free_at.max(end);
        self.overrun += overrun;
        self.overhead += overrun;
    }

    /// It waits for `cost` on its processor, for shared structures.
    pub fn pays(&mut self, now: Nanos, cost: Nanos) {
        self.free_at = self.free_at.max(now) + cost;
        self.overhead += cost;
        self.read_time += cost;
    }

    /// Of the blocks that it looks up `blocks` are at other nodes: handing them over will take `cost` more.
    pub fn reads_remotely(&mut self, blocks: u64, cost: Nanos) {
        self.remote_reads += blocks;
        self.remote = cost;
    }

    /// The wait ends at `now`; `charged_before` as above.
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

    /// The reference has been handed over at `now`: pays for it and thinks. Returns the response time of the request
    /// that it ends, if it ends one. `bytes` of the block were asked for; `None`: all. One that ends with metadata is
    /// none of the application's.
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
