//! What happened over time: sums of intervals of one length, which is doubled whenever there are too many.

use headstart_types::Nanos;
use schemars::JsonSchema;
use serde::Serialize;

/// As many as a page can draw.
const INTERVALS_MAX: usize = 256;

/// Waits and bytes, by interval since the start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct History {
    /// Length of an interval.
    pub interval_ns: u64,
    /// Time that readers waited, the sum over all of them.
    pub waited_ns: Vec<u64>,
    /// Bytes that readers asked for.
    pub read_bytes: Vec<u64>,
    /// Bytes that arrived from the source.
    pub fetched_bytes: Vec<u64>,
}

impl Default for History {
    fn default() -> Self {
        Self { interval_ns: 100_000_000, waited_ns: Vec::new(), read_bytes: Vec::new(), fetched_bytes: Vec::new() }
    }
}

impl History {
    /// The interval of `at`.
    fn index(&mut self, at: Nanos) -> usize {
        while at.0 / self.interval_ns >= INTERVALS_MAX as u64 {
            self.interval_ns *= 2;
            for sums in [&mut self.waited_ns, &mut self.read_bytes, &mut self.fetched_bytes] {
                *sums = sums.chunks(2).map(|pair| pair.iter().sum()).collect();
            }
        }
        let index = (at.0 / self.interval_ns) as usize;
        for sums in [&mut self.waited_ns, &mut self.read_bytes, &mut self.fetched_bytes] {
            sums.resize(sums.len().max(index + 1), 0);
        }
        index
    }

    /// A reader that asked for `bytes` at `asked` had them at `now`.
    pub fn has_read(&mut self, bytes: u64, asked: Nanos, now: Nanos) {
        let (last, first) = (self.index(now), self.index(asked));
        self.read_bytes[first] += bytes;
        for index in first..=last {
            let begin = index as u64 * self.interval_ns;
            self.waited_ns[index] += now.0.min(begin + self.interval_ns) - asked.0.max(begin);
        }
    }

    pub fn has_fetched(&mut self, bytes: u64, now: Nanos) {
        let index = self.index(now);
        self.fetched_bytes[index] += bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_lost_when_intervals_are_joined() {
        let mut history = History::default();
        history.has_read(5, Nanos::from_millis(50), Nanos::from_millis(250));
        history.has_fetched(7, Nanos::from_millis(120));
        assert_eq!(history.waited_ns, [50_000_000, 100_000_000, 50_000_000]);
        assert_eq!((&history.read_bytes[..], &history.fetched_bytes[..]), (&[5, 0, 0][..], &[0, 7, 0][..]));
        history.has_read(1, Nanos::from_millis(100_000), Nanos::from_millis(100_001));
        assert_eq!(history.interval_ns, 400_000_000);
        assert_eq!(
            (history.waited_ns.len(), history.waited_ns[0], history.waited_ns[250]),
            (251, 200_000_000, 1_000_000)
        );
        assert_eq!((history.read_bytes.iter().sum::<u64>(), history.fetched_bytes[0]), (6, 7));
    }
}
