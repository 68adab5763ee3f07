//! Prefetch actions: their duration, and when their request is issued (kotz-ellis, sections 5.1 and 6.2).

use headstart_types::{stream_seed, Nanos};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The duration of an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ActionTime {
    /// Minimum.
    pub least: Nanos,
    /// Maximum; durations are uniform in between.
    pub most: Nanos,
}

impl ActionTime {
    /// The durations of the actions of one process, which has its own random stream.
    #[must_use]
    pub fn draws(self, seed: u64, process: u32) -> ActionDraws {
        let seed = stream_seed(seed, "action", process.into());
        ActionDraws { time: self, rng: ChaCha8Rng::seed_from_u64(seed) }
    }
}

/// Draws durations of actions.
pub struct ActionDraws {
    time: ActionTime,
    rng: ChaCha8Rng,
}

impl ActionDraws {
    #[inline]
    pub fn next_action(&mut self) -> Nanos {
        let ActionTime { least, most } = self.time;
        Nanos(self.rng.random_range(least.0..=most.0))
    }
}

/// When the request of a prefetch action enters its disk's queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ActionIssues {
    /// When the action begins.
    Start,
    /// When the action ends.
    End,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_process_of_one_seed_acts_as_one_of_the_next() {
        let time = ActionTime { least: Nanos(0), most: Nanos(1 << 40) };
        let first = |seed, process| time.draws(seed, process).next_action();
        assert_ne!(first(1, 1), first(2, 0));
        assert_ne!(first(1, 0), first(1, 1));
        assert_eq!(first(1, 0), first(1, 0));
    }
}
