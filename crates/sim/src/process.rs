//! The simulated process: it references, thinks, pays for driver work, and waits.
//!
//! One processor time line serves both for thinking and for driver work: work issued while the process thinks puts
//! its next reference off; work issued while it waits overlaps the wait (kimbrel96; DESIGN). Hence for every
//! process elapsed = compute + driver + overhead + stall.

use headstart_types::{Block, Nanos, Outcome, Position};

use crate::run::TIME_MAX;
use crate::scenario::HostKeys;

/// What the process is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Thinking (or doing driver work) before its next reference.
    Thinking,
    /// Waiting for a block that has not arrived.
    Waiting(Wait),
    /// The block has arrived; the processor may still be at driver work.
    Granted(Wait),
    /// All references are served.
    Done,
}

/// A wait under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wait {
    /// The block.
    pub block: Block,
    /// How it was found; `None` where the block has been served and its write is waited for.
    pub outcome: Option<Outcome>,
    /// Since when.
    pub since: Nanos,
    /// Driver work charged before that instant.
    driver_before: Nanos,
}

/// A process and where its time has gone.
#[derive(Debug)]
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
    /// Hit, call and copy costs.
    pub overhead: Nanos,
    /// Waits, without the driver work done meanwhile.
    pub stall: Nanos,
    /// Time before its first request.
    pub idle: Nanos,
    /// Think time after the last served reference.
    pub last_think: Nanos,
    /// When the request under way began.
    pub request_since: Option<Nanos>,
    costs: Costs,
}

/// Costs in processor time.
#[derive(Debug, Clone, Copy)]
struct Costs {
    driver: Nanos,
    reference: Nanos,
    request: Nanos,
}

impl Process {
    /// A process about to make its first reference, at time zero.
    #[must_use]
    pub fn new(host: &HostKeys, block_bytes: u64) -> Self {
        let copy = Nanos((u128::from(host.copy_per_kib.0) * u128::from(block_bytes) / 1024) as u64);
        Self {
            phase: Phase::Thinking,
            position: 0,
            free_at: Nanos::ZERO,
            compute: Nanos::ZERO,
            driver: Nanos::ZERO,
            overhead: Nanos::ZERO,
            stall: Nanos::ZERO,
            idle: Nanos::ZERO,
            last_think: Nanos::ZERO,
            request_since: None,
            costs: Costs { driver: host.driver_overhead, reference: host.hit_time + copy, request: host.system_call },
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

    /// Whether the reference has been served and its write is waited for.
    #[inline]
    #[must_use]
    pub fn is_writing(&self) -> bool {
        matches!(self.phase, Phase::Waiting(Wait { outcome: None, .. }) | Phase::Granted(Wait { outcome: None, .. }))
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

    /// The reference cannot be served yet, or has been and waits for its write (`outcome` is `None`). `driver_before` is the driver work charged before this instant.
    #[inline]
    pub fn wait(&mut self, now: Nanos, block: Block, outcome: Option<Outcome>, driver_before: Nanos) {
        self.phase = Phase::Waiting(Wait { block, outcome, since: now, driver_before });
    }

    /// A block has arrived, or has been written.
    #[inline]
    pub fn arrived(&mut self, now: Nanos, block: Block, written: bool) {
        if let Phase::Waiting(wait) = self.phase {
            if wait.block == block && wait.outcome.is_none() == written {
                self.phase = Phase::Granted(wait);
                self.free_at = self.free_at.max(now);
            }
        }
    }

    /// The wait ends at `now`; `driver_before` as above.
    #[inline]
    pub fn end_wait(&mut self, now: Nanos, wait: &Wait, driver_before: Nanos) {
        self.stall += (now - wait.since) - (driver_before - wait.driver_before);
        self.phase = Phase::Thinking;
    }

    /// The reference has been handed over at `now`: pays for it and thinks. Returns the response time of the
    /// request that it ends, if it ends one.
    #[inline]
    pub fn served(&mut self, now: Nanos, think: Nanos, ends_request: bool) -> Option<Nanos> {
        let since = self.request_since.take();
        let mut cost = self.costs.reference;
        if ends_request {
            cost += self.costs.request;
        } else {
            self.request_since = since;
        }
        self.overhead += cost;
        self.compute += think;
        self.last_think = think;
        self.free_at = self.free_at.max(now) + cost + think;
        self.position += 1;
        since.filter(|_| ends_request).map(|since| now + cost - since)
    }
}
