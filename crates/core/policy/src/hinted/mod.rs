//! Hinted policies: prefetching and replacement decided together from disclosed future references.
//!
//! Source: T. Kimbrel et al., "A Trace-Driven Comparison of Algorithms for Parallel Prefetching and Caching", OSDI 1996
//! (kimbrel96 below), sections 2 and 5.
//!
//! [`Hinted`] does what all of them share: it keeps [`Knowledge`] of the disclosed future up to date and serves
//! undisclosed references on demand. A [`Strategy`] decides what to fetch and when, through a [`Round`].
//!
//! A process that issues whole requests waits for all blocks of one request at a time. Blocks that the strategy has
//! promised to fetch are left to it; the others are fetched at once.
//!
//! Several processes may share one reference string, each serving its own positions. The string is then the order in
//! which the references are expected, and the cursor is the lowest position not served. Missing blocks that such
//! processes request are fetched at once instead of waiting for the strategy, because a disk that other processes keep
//! busy may never be free. References of processes without hints are not in the string; they are served at position
//! `NEVER`.

mod aggressive;
mod batch;
mod fixed_horizon;
mod forestall;
mod from_device;
mod headstart_store;
mod just_in_time;
mod knowledge;
mod missing;
pub mod nearness;
mod optimum;
mod plan;
mod recent;
mod residents;
mod reverse_aggressive;
mod round;
mod slots;
mod tip2;
mod trigger;

use std::collections::VecDeque;

use headstart_types::{Block, Disk, Nanos, Outcome, Position, NEVER};

pub use aggressive::Aggressive;
pub use batch::BatchSize;
pub use fixed_horizon::{FixedHorizon, HORIZON};
pub use forestall::{FetchRatio, Forestall};
pub use from_device::References;
pub use knowledge::Knowledge;
pub use optimum::{optimal_elapsed, Instance as OptimumInstance, Optimum, TooLarge};
pub use residents::Residents;
pub use reverse_aggressive::{Replay, ReverseAggressive, ReverseSetting};
pub use round::{Frame, Round};

use crate::readahead::Found;
use crate::row::PolicyRow;
use crate::{Event, Fetch, Policy, View};

/// All hinted policies.
pub(crate) static ROWS: &[&PolicyRow] = &[
    &fixed_horizon::ROW,
    &aggressive::ROW,
    &reverse_aggressive::ROW,
    &forestall::ROW,
    &just_in_time::ROW,
    &headstart_store::ROW,
    &tip2::ROW,
    &optimum::ROW,
];

/// The part in which hinted policies differ.
pub trait Strategy: Send {
    /// Step (2): decides on fetches. Called repeatedly within a round until it decides on none, unless it [decides at
    /// once](Strategy::decides_at_once): another disk may only be able to act after an eviction.
    fn decide(&mut self, now: Nanos, round: &mut Round<'_>);

    /// Whether one call of [`Strategy::decide`] per round is enough, because its decisions never enable further ones.
    fn decides_at_once(&self) -> bool {
        false
    }

    /// Whether [`Strategy::decide`] could decide on anything, as in [`Policy::decides`].
    fn decides(&self, _knowledge: &Knowledge, _outstanding: &[u32]) -> bool {
        true
    }

    /// The process spent `compute` thinking between its last two references.
    fn computed(&mut self, _compute: Nanos) {}

    /// The reference at `position` is requested, or is served if single blocks are requested; `is_late`: it has to wait.
    fn read(&mut self, _now: Nanos, _position: Position, _is_late: bool) {}

    /// `disk` spent `service` on `block`.
    fn fetched(&mut self, _block: Block, _disk: Disk, _service: Nanos) {}

    /// A block of `disk` has arrived; `outstanding` more are in flight from that disk.
    fn arrived(&mut self, _now: Nanos, _disk: Disk, _outstanding: u32) {}

    /// As [`Policy::gathers`].
    fn gathers(&self) -> bool {
        false
    }

    /// As [`Policy::order_max`].
    fn order_max(&self) -> u32 {
        u32::MAX
    }

    /// Whether a later decision will fetch `block`, which is absent, disclosed, and waited for at `position`. If not,
    /// it is fetched on demand at once.
    fn promises(&self, _position: Position, _block: Block) -> bool {
        true
    }

    /// A time at which the strategy wants to decide even if nothing else happens then.
    fn wake_at(&self) -> Option<Nanos> {
        None
    }
}

/// Turns a [`Strategy`] into a [`Policy`].
pub struct Hinted<S> {
    knowledge: Knowledge,
    strategy: S,
    /// Number of processes that share the references, at least 1.
    processes: u32,
    /// Number of processes that disclosed these references, at least 1.
    disclosing: u32,
    /// Whether requests may have any number of blocks even with a single process.
    whole: bool,
    /// Blocks to fetch on demand that found no frame; retried at every decision.
    owed: VecDeque<Block>,
    /// With a single process: absent blocks of its request that the strategy has promised to fetch, in order.
    promised: VecDeque<(Position, Block)>,
}

impl<S: Strategy> Hinted<S> {
    /// Runs `strategy` on `knowledge` for `processes` processes, of which `disclosing` give hints; `whole`: their
    /// requests may have any number of blocks.
    pub fn new(knowledge: Knowledge, strategy: S, (processes, disclosing): (u32, u32), whole: bool) -> Self {
        let (owed, promised) = (VecDeque::new(), VecDeque::new());
        Self { knowledge, strategy, processes, disclosing, whole, owed, promised }
    }

    /// Queues the absent blocks of a request that begins at `position` for demand fetching, and returns whether any are
    /// queued. With a single process, blocks that the strategy promises to fetch are left to it.
    fn owes(&mut self, position: Position, view: &View<'_>) -> bool {
        if self.processes == 1 {
            self.owed.clear();
            self.promised.clear();
        }
        for ((block, found), ahead) in view.asked.iter().zip(view.found).zip(0..) {
            let position = position.saturating_add(ahead);
            if *found != Found::Absent || self.owed.contains(block) {
                continue;
            }
            match self.processes == 1 && self.is_promised(position, *block) {
                true => self.promised.push_back((position, *block)),
                false => self.owed.push_back(*block),
            }
        }
        !self.owed.is_empty()
    }

    /// Whether the strategy promises to fetch `block`, which is absent, for its reference at `position`.
    fn is_promised(&self, position: Position, block: Block) -> bool {
        self.knowledge.expects(position, block) && self.strategy.promises(position, block)
    }

    /// Queues the block that the process waits for now if the strategy no longer promises it: a promise may lapse while
    /// earlier blocks arrive.
    fn renew_promises(&mut self, view: &View<'_>) {
        let cursor = self.knowledge.residents().cursor();
        while let Some((position, block)) = self.promised.front().copied() {
            let absent = view.state(block).is_absent();
            if absent && (position > cursor || self.is_promised(position, block)) {
                return;
            }
            self.promised.pop_front();
            if absent {
                self.owed.push_back(block);
            }
        }
    }

    /// Calls the strategy until it decides on nothing more.
    fn decide(&mut self, now: Nanos, view: &View<'_>, fetches: &mut Vec<Fetch>) {
        let mut round = Round::new(&mut self.knowledge, view, fetches);
        let mut decided = usize::MAX;
        while decided != round.decided() {
            decided = round.decided();
            self.strategy.decide(now, &mut round);
            if self.strategy.decides_at_once() {
                break;
            }
        }
    }

    /// Fetches the queued blocks that are still absent, as far as there are frames; returns whether any were queued.
    fn pay(&mut self, view: &View<'_>, fetches: &mut Vec<Fetch>) -> bool {
        self.owed.retain(|block| view.state(*block).is_absent());
        let any = !self.owed.is_empty();
        let mut round = Round::new(&mut self.knowledge, view, fetches);
        while let Some(block) = self.owed.front().copied() {
            let Some(frame) = round.any_frame() else { break };
            round.fetch(block, frame);
            self.owed.pop_front();
        }
        any
    }
}

impl<S: Strategy> Policy for Hinted<S> {
    fn on(&mut self, now: Nanos, event: Event, view: &View<'_>, fetches: &mut Vec<Fetch>) {
        match event {
            Event::Decide => {
                self.renew_promises(view);
                if !self.owed.is_empty() && self.pay(view, fetches) {
                    // One thing at a time: the strategy sees the frame as taken at the next decision.
                    return;
                }
                self.decide(now, view, fetches);
            }
            Event::Served { position, block, compute, outcome, .. } => {
                self.knowledge.served(position, block, view);
                if !self.takes_requests() {
                    self.strategy.read(now, position, outcome != Outcome::HitReady);
                }
                // No think time precedes a process's first reference. The think times of several processes overlap.
                if position >= self.disclosing && position != NEVER {
                    self.strategy.computed(Nanos(compute.0 / u64::from(self.disclosing)));
                }
            }
            Event::Asked { position, .. } => {
                if self.takes_requests() && position != NEVER {
                    let reads = (position..).zip(view.found);
                    reads.for_each(|(at, found)| {
                        self.strategy.read(now, at, !matches!(found, Found::Ready | Found::ReadyPrefetched))
                    });
                }
                if self.owes(position, view) {
                    self.pay(view, fetches);
                } else if self.whole && !self.promised.is_empty() {
                    // The resident part of the request has been served: the strategy is at the first absent block.
                    self.decide(now, view, fetches);
                }
            }
            Event::Skipped { position, block } => self.knowledge.skipped(position, block, view),
            // It prefetches in decisions, at no CPU cost, and has its own hints.
            Event::Idle { .. } | Event::Expected => {}
            Event::Arrived { block, disk, service } => {
                self.knowledge.arrived(block);
                self.strategy.arrived(now, disk, view.outstanding[disk.index()]);
                if let Some(service) = service {
                    self.strategy.fetched(block, disk, service);
                }
            }
        }
    }

    fn grow(&mut self, _blocks: usize) {
        // All blocks are known from the start, because hints hold the whole reference string.
    }

    fn given_frames(&mut self) {
        self.knowledge.note_free(1);
    }

    #[inline]
    fn decides(&self, outstanding: &[u32]) -> bool {
        !self.owed.is_empty() || !self.promised.is_empty() || self.strategy.decides(&self.knowledge, outstanding)
    }

    fn takes_requests(&self) -> bool {
        self.whole || self.processes > 1
    }

    fn gathers(&self) -> bool {
        self.strategy.gathers()
    }

    fn order_max(&self) -> u32 {
        self.strategy.order_max()
    }

    fn wake_at(&self) -> Option<Nanos> {
        self.strategy.wake_at()
    }
}
