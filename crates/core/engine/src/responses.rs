//! Response times: exact mean and maximum, percentiles to three digits, in constant memory.

use hdrhistogram::Histogram;
use headstart_types::Nanos;
use schemars::JsonSchema;
use serde::Serialize;

/// Significant digits of the percentiles.
const DIGITS: u8 = 3;

/// The distribution of response times so far.
#[derive(Debug)]
pub struct Responses {
    /// Most requests are hits with zero response time; they are counted outside the histogram.
    zeros: u64,
    others: Histogram<u64>,
    sum: u128,
    max: Nanos,
}

/// The reported statistics, in nanoseconds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Summary {
    /// Mean, rounded down.
    pub mean: u64,
    /// Median.
    pub p50: u64,
    /// 90th percentile.
    pub p90: u64,
    /// 99th percentile.
    pub p99: u64,
    /// The maximum.
    pub max: u64,
}

impl Responses {
    /// An empty distribution.
    #[must_use]
    pub fn new() -> Self {
        let others = Histogram::new(DIGITS).expect("3 digits are allowed");
        Self { zeros: 0, others, sum: 0, max: Nanos::ZERO }
    }

    /// Adds a response time.
    #[inline]
    pub fn record(&mut self, response: Nanos) {
        if response == Nanos::ZERO {
            self.zeros += 1;
            return;
        }
        self.sum += u128::from(response.0);
        self.max = self.max.max(response);
        self.others.record(response.0).expect("the histogram grows with its values");
    }

    /// The distribution in five numbers, in nanoseconds.
    #[must_use]
    pub fn summary(&self) -> Summary {
        let count = self.zeros + self.others.len();
        if count == 0 {
            return Summary::default();
        }
        let percentile = |percent: u64| {
            // The rank-th smallest value, counting the zeros first.
            let rank = (count * percent).div_ceil(100).max(1);
            if rank <= self.zeros {
                return 0;
            }
            let share = (rank - self.zeros) as f64 / self.others.len() as f64;
            self.others.value_at_quantile(share).min(self.max.0)
        };
        Summary {
            mean: (self.sum / u128::from(count)) as u64,
            p50: percentile(50),
            p90: percentile(90),
            p99: percentile(99),
            max: self.max.0,
        }
    }
}

impl Default for Responses {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_responses_keep_three_digits() {
        let mut responses = Responses::new();
        for ms in 1..=100u64 {
            responses.record(Nanos::from_millis(ms));
        }
        let summary = responses.summary();
        for (ours, exact) in [(summary.p50, 50_000_000), (summary.p90, 90_000_000), (summary.p99, 99_000_000)] {
            assert!(ours.abs_diff(exact) <= exact / 1_000, "{ours} {exact}");
        }
        assert_eq!((summary.mean, summary.max), (50_500_000, 100_000_000));
        responses.record(Nanos::MAX);
        assert_eq!(responses.summary().max, u64::MAX);
    }

    #[test]
    fn ten_requests_by_hand() {
        let mut responses = Responses::new();
        for ns in [0, 0, 0, 0, 0, 0, 100, 200, 300, 1_000] {
            responses.record(Nanos(ns));
        }
        // Sum 1600 over 10; the 5th smallest is 0, the 9th 300, the 10th 1000.
        assert_eq!(responses.summary(), Summary { mean: 160, p50: 0, p90: 300, p99: 1_000, max: 1_000 });
    }
}
