//! Prefetch actions: how long one takes, and when its request is issued (kotz-ellis, sections 5.1 and 6.2).

use headstart_types::Nanos;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// What an action takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ActionTime {
    /// At least.
    pub least: Nanos,
    /// At most; all times between are equally likely.
    pub most: Nanos,
}

impl ActionTime {
    /// What the actions of a process take; each has a seed of its own.
    #[must_use]
    pub fn draws(self, seed: u64, process: u32) -> ActionDraws {
        let mut rng = ChaCha8Rng::seed_from_u64(seed.wrapping_add(u64::from(process)));
        rng.set_stream(STREAM);
        ActionDraws { time: self, rng }
    }
}

/// Draws what actions take.
pub struct ActionDraws {
    time: ActionTime,
    rng: ChaCha8Rng,
}

impl ActionDraws {
    /// The next one.
    #[inline]
    pub fn next_action(&mut self) -> Nanos {
        let ActionTime { least, most } = self.time;
        Nanos(self.rng.random_range(least.0..=most.0))
    }
}

/// When the request of an action enters its disk's queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ActionIssues {
    /// When the action begins.
    Start,
    /// When it ends.
    End,
}

/// A generator stream apart from those of workloads and placing.
const STREAM: u64 = 3;
