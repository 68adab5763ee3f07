//! Mean of the most recent durations, so that an estimate follows changes.

use headstart_types::Nanos;

/// Durations remembered (kimbrel96, section 5: "the most recent 100").
const HISTORY: usize = 100;

/// The most recent `HISTORY` durations and their sum.
#[derive(Debug, Clone, Default)]
pub(super) struct Recent {
    each: Vec<Nanos>,
    oldest: usize,
    sum: Nanos,
}

impl Recent {
    /// Adds a duration; the oldest drops out if the history is full.
    #[inline]
    pub fn push(&mut self, duration: Nanos) {
        self.sum += duration;
        if self.each.len() < HISTORY {
            self.each.push(duration);
            return;
        }
        self.sum -= std::mem::replace(&mut self.each[self.oldest], duration);
        self.oldest += 1;
        if self.oldest == HISTORY {
            self.oldest = 0;
        }
    }

    /// The mean in nanoseconds; `None` before the first duration.
    #[inline]
    pub fn mean_ns(&self) -> Option<f64> {
        (!self.each.is_empty()).then(|| self.sum.0 as f64 / self.each.len() as f64)
    }
}
