//! Hinted policies: prefetching and replacement decided together from disclosed future references.
//!
//! Source: T. Kimbrel et al., "A Trace-Driven Comparison of Algorithms for Parallel Prefetching and Caching",
//! OSDI 1996 (kimbrel96 below), sections 2 and 5.
//!
//! [`Hinted`] does what all of them share: it keeps [`Knowledge`] of the disclosed future up to date and serves
//! undisclosed references on demand. A [`Strategy`] says what to fetch when, through a [`Round`].

mod aggressive;
mod batch;
mod fixed_horizon;
mod forestall;
mod knowledge;
mod missing;
mod optimum;
mod plan;
mod residents;
mod reverse_aggressive;
mod round;
mod slots;
mod trigger;

use headstart_types::{Block, Disk, Nanos, Position};

pub use aggressive::Aggressive;
pub use batch::BatchSize;
pub use fixed_horizon::{FixedHorizon, HORIZON};
pub use forestall::{FetchRatio, Forestall};
pub use knowledge::Knowledge;
pub use optimum::{optimal_elapsed, Instance as OptimumInstance, Optimum, TooLarge};
pub use residents::Residents;
pub use reverse_aggressive::{Replay, ReverseAggressive, Setting as ReverseSetting};
pub use round::Round;

use crate::{Event, Fetch, Policy, View};

/// What distinguishes one hinted policy from another.
pub trait Strategy: Send {
    /// Step (2): decide on fetches. Called again within the round until it decides on none: an eviction may be
    /// what another disk needs to act.
    fn decide(&mut self, now: Nanos, round: &mut Round<'_>);

    /// The process has spent `compute` thinking between its last two references.
    fn computed(&mut self, _compute: Nanos) {}

    /// `disk` has worked `service` on one block.
    fn fetched(&mut self, _disk: Disk, _service: Nanos) {}

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
    /// A block to be fetched on demand that found no frame: tried again at every decision.
    owed: Option<Block>,
}

impl<S: Strategy> Hinted<S> {
    /// Runs `strategy` on `knowledge`.
    pub fn new(knowledge: Knowledge, strategy: S) -> Self {
        Self { knowledge, strategy, owed: None }
    }

    fn demand(&mut self, block: Block, view: &View<'_>, fetches: &mut Vec<Fetch>) {
        self.owed = None;
        let mut round = Round::new(&mut self.knowledge, view, fetches);
        match round.any_frame() {
            Some(frame) => round.fetch(block, frame),
            None => self.owed = Some(block),
        }
    }
}

impl<S: Strategy> Policy for Hinted<S> {
    fn on(&mut self, now: Nanos, event: Event, view: &View<'_>, fetches: &mut Vec<Fetch>) {
        match event {
            Event::Decide => {
                if let Some(block) = self.owed.filter(|block| view.state(*block).is_absent()) {
                    // One thing at a time: the strategy sees the frame taken at the next decision.
                    return self.demand(block, view, fetches);
                }
                self.owed = None;
                let mut round = Round::new(&mut self.knowledge, view, fetches);
                let mut decided = usize::MAX;
                while decided != round.decided() {
                    decided = round.decided();
                    self.strategy.decide(now, &mut round);
                }
            }
            Event::Miss { position, block } => {
                if !self.knowledge.expects(position, block) || !self.strategy.promises(position, block) {
                    self.demand(block, view, fetches);
                }
            }
            Event::Served { position, block, compute, .. } => {
                self.knowledge.served(position, block, view);
                // No think time comes before the first reference.
                if position > 0 {
                    self.strategy.computed(compute);
                }
            }
            // Hints tell what is asked for; requests as a whole say nothing more.
            Event::Asked { .. } | Event::Idle { .. } => {}
            Event::Arrived { block, disk, service } => {
                self.knowledge.arrived(block);
                if let Some(service) = service {
                    self.strategy.fetched(disk, service);
                }
            }
        }
    }

    fn grow(&mut self, _blocks: usize) {
        // Every block is known from the start: hints hold the whole reference string.
    }

    fn wake_at(&self) -> Option<Nanos> {
        self.strategy.wake_at()
    }
}
