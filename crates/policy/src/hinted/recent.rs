//! The mean of the most recent durations: how estimates follow what they estimate.

use headstart_types::Nanos;

/// Durations remembered (kimbrel96, section 5: "the most recent 100").
const HISTORY: usize = 100;

/// The sum of the most recent `HISTORY` durations.
#[derive(Debug, Clone, Default)]
pub(super) struct Recent {
    each: Vec<Nanos>,
    oldest: usize,
    sum: Nanos,
}

impl Recent {
    /// One more duration; the oldest is forgotten.
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

    /// Mean in nanoseconds, if there is any.
    #[inline]
    pub fn mean_ns(&self) -> Option<f64> {
        (!self.each.is_empty()).then(|| self.sum.0 as f64 / self.each.len() as f64)
    }
}
