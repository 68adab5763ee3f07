//! Hinted policies: prefetching and replacement decided together from disclosed future references.
//!
//! Source: T. Kimbrel et al., "A Trace-Driven Comparison of Algorithms for Parallel Prefetching and Caching",
//! OSDI 1996 (kimbrel96 below), sections 2 and 5.
//!
//! [`Hinted`] does what all of them share: it keeps [`Knowledge`] of the disclosed future up to date and serves
//! undisclosed references on demand. A [`Strategy`] says what to fetch when, through a [`Round`].
//!
//! A process that asks for whole requests waits for all blocks of one at a time. The strategy orders those that it was
//! going to fetch; the others are fetched at once.
//!
//! Several processes may share one string of references, each serving its own positions: the string is then the order
//! in which they are expected, the cursor the lowest position not served. They do not wait for a strategy's turn: what
//! one asks for and is missing is fetched at once, since a disk that others keep busy may never be free. References of
//! processes that give no hints are not in the string; they are served at position `NEVER`.

pub(crate) mod aggressive;
mod batch;
pub(crate) mod fixed_horizon;
pub(crate) mod forestall;
mod from_device;
pub(crate) mod just_in_time;
mod knowledge;
mod missing;
pub(crate) mod optimum;
mod plan;
mod recent;
mod residents;
pub(crate) mod reverse_aggressive;
mod round;
mod slots;
pub(crate) mod tip2;
mod trigger;

use std::collections::VecDeque;

use headstart_types::{Block, Disk, Nanos, Position, NEVER};

pub use aggressive::Aggressive;
pub use batch::BatchSize;
pub use fixed_horizon::{FixedHorizon, HORIZON};
pub use forestall::{FetchRatio, Forestall};
pub use from_device::References;
pub use knowledge::Knowledge;
pub use optimum::{optimal_elapsed, Instance as OptimumInstance, Optimum, TooLarge};
pub use residents::Residents;
pub use reverse_aggressive::{Replay, ReverseAggressive, Setting as ReverseSetting};
pub use round::Round;

use crate::readahead::Found;
use crate::{Event, Fetch, Policy, View};

/// What distinguishes one hinted policy from another.
pub trait Strategy: Send {
    /// Step (2): decide on fetches. Called again within the round until it decides on none, unless it
    /// [decides at once](Strategy::decides_at_once): an eviction may be what another disk needs to act.
    fn decide(&mut self, now: Nanos, round: &mut Round<'_>);

    /// Whether one call of [`Strategy::decide`] in a round is enough: what it decides gives it no reason for more.
    fn decides_at_once(&self) -> bool {
        false
    }

    /// Whether [`Strategy::decide`] could come to any decision, as [`Policy::decides`] has it.
    fn decides(&self, _knowledge: &Knowledge, _outstanding: &[u32]) -> bool {
        true
    }

    /// The process has spent `compute` thinking between its last two references.
    fn computed(&mut self, _compute: Nanos) {}

    /// `disk` has worked `service` on one block.
    fn fetched(&mut self, _disk: Disk, _service: Nanos) {}

    /// A block of `disk` has arrived; `outstanding` are still on their way from there.
    fn arrived(&mut self, _now: Nanos, _disk: Disk, _outstanding: u32) {}

    /// As [`Policy::gathers`].
    fn gathers(&self) -> bool {
        false
    }

    /// As [`Policy::order_max`].
    fn order_max(&self) -> u32 {
        u32::MAX
    }

    /// Whether a later decision will fetch `block`, absent, disclosed, and waited for at `position`. If not, it
    /// is fetched on demand at once.
    fn promises(&self, _position: Position, _block: Block) -> bool {
        true
    }

    /// A time at which the strategy wants to decide though nothing may happen then.
    fn wake_at(&self) -> Option<Nanos> {
        None
    }
}

/// A [`Strategy`] as a [`Policy`].
pub struct Hinted<S> {
    knowledge: Knowledge,
    strategy: S,
    /// Processes that share the references, at least 1.
    processes: u32,
    /// Those of them whose references these are, at least 1.
    disclosing: u32,
    /// Requests have any number of blocks, also those of a process that has the hints for itself.
    whole: bool,
    /// Blocks to be fetched on demand that found no frame: tried again at every decision.
    owed: VecDeque<Block>,
    /// Absent blocks of that process's request that the strategy has promised to fetch, in order.
    promised: VecDeque<(Position, Block)>,
}

impl<S: Strategy> Hinted<S> {
    /// Runs `strategy` on `knowledge` for `processes` processes, of which `disclosing` give hints; `whole`: their requests
    /// have any number of blocks.
    pub fn new(knowledge: Knowledge, strategy: S, (processes, disclosing): (u32, u32), whole: bool) -> Self {
        let (owed, promised) = (VecDeque::new(), VecDeque::new());
        Self { knowledge, strategy, processes, disclosing, whole, owed, promised }
    }

    /// Owes what is absent of a request that begins at `position`; says whether it is to be paid. To a process that has the
    /// hints for itself nothing is owed that it expects and the strategy promises.
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

    /// Whether the strategy is going to fetch `block`, absent, for its reference at `position`.
    fn is_promised(&self, position: Position, block: Block) -> bool {
        self.knowledge.expects(position, block) && self.strategy.promises(position, block)
    }

    /// Owes the block that the process waits for now, if the strategy no longer promises it: promises may lapse while the blocks
    /// before it arrive.
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

    /// Lets the strategy decide, until it comes to nothing more.
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

    /// Fetches what is owed and still absent, as far as there are frames; says whether there was any.
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
                    // One thing at a time: the strategy sees the frame taken at the next decision.
                    return;
                }
                self.decide(now, view, fetches);
            }
            Event::Served { position, block, compute, .. } => {
                self.knowledge.served(position, block, view);
                // No think time comes before a process's first reference. Those of several go on side by side.
                if position >= self.disclosing && position != NEVER {
                    self.strategy.computed(Nanos(compute.0 / u64::from(self.disclosing)));
                }
            }
            Event::Asked { position, .. } => {
                if self.owes(position, view) {
                    self.pay(view, fetches);
                } else if self.whole && !self.promised.is_empty() {
                    // What was resident of the request has been served: the strategy stands at the first block that is not.
                    self.decide(now, view, fetches);
                }
            }
            Event::Skipped { position, block } => self.knowledge.skipped(position, block, view),
            // It prefetches when it decides, at no cost, and has hints of its own.
            Event::Idle { .. } | Event::Expected => {}
            Event::Arrived { block, disk, service } => {
                self.knowledge.arrived(block);
                self.strategy.arrived(now, disk, view.outstanding[disk.index()]);
                if let Some(service) = service {
                    self.strategy.fetched(disk, service);
                }
            }
        }
    }

    fn grow(&mut self, _blocks: usize) {
        // Every block is known from the start: hints hold the whole reference string.
    }

    fn given_frames(&mut self) {
        self.knowledge.note_free(1);
    }

    #[inline]
    fn decides(&self, outstanding: &[u32]) -> bool {
        !self.owed.is_empty() || !self.promised.is_empty() || self.strategy.decides(&self.knowledge, outstanding)
    }

    fn asks(&self) -> bool {
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
