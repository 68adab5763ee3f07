//! Whether the processes of a trace read at the same time, so that one reader would not stand for them.
//!
//! Cost: constant for each request, and 24 bytes for each process.

use std::collections::HashMap;

use headstart_types::Nanos;

use crate::hash::Build;
use crate::Record;

/// Requests that begin while another process has one under way, at least, as a share of all. A guess: two threads that
/// read by turns have none, two that read independently half of the time a quarter.
const OVERLAPPING_MIN: f64 = 0.25;
/// Mean time between a process's first and last request, as a share of the trace, at least: processes that begin one
/// after another are not replayed as if they began together.
const ALIVE_MIN: f64 = 0.5;

/// What a pass over the records has found.
#[derive(Debug, Default)]
pub struct AtOnce {
    requests: u64,
    overlapping: u64,
    /// The latest end of a request, and whose it is; and the latest of another process.
    latest: [(Nanos, u32); 2],
    /// First and last request by process.
    alive: HashMap<u32, (Nanos, Nanos), Build>,
    last: Nanos,
}

impl AtOnce {
    /// Takes the next record.
    #[inline]
    pub fn add(&mut self, record: &Record) {
        let Record { time, duration, pid, .. } = *record;
        let [first, second] = &mut self.latest;
        let of_others = if first.1 == pid { second.0 } else { first.0 };
        self.requests += 1;
        self.overlapping += u64::from(of_others > time);
        let end = (Nanos(time.0.saturating_add(duration.0)), pid);
        if first.1 == pid {
            first.0 = first.0.max(end.0);
        } else if end.0 > first.0 {
            (*second, *first) = (*first, end);
        } else if end.0 > second.0 {
            *second = end;
        }
        self.alive.entry(pid).or_insert((time, time)).1 = time;
        self.last = time;
    }

    /// Requests that began while another process had one under way, 0 to 1.
    #[must_use]
    pub fn overlapping_share(&self) -> f64 {
        self.overlapping as f64 / self.requests.max(1) as f64
    }

    /// Whether the processes are to be replayed side by side.
    #[must_use]
    pub fn is_parallel(&self) -> bool {
        let alive: f64 = self.alive.values().map(|(first, last)| (last.0 - first.0) as f64).sum();
        let mean = alive / self.alive.len().max(1) as f64;
        self.overlapping_share() >= OVERLAPPING_MIN && mean >= ALIVE_MIN * self.last.0 as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Requests of (process, begin, end).
    fn of(requests: &[(u32, u64, u64)]) -> (f64, bool) {
        let mut found = AtOnce::default();
        for &(pid, begin, end) in requests {
            found.add(&Record { time: Nanos(begin), duration: Nanos(end - begin), pid, ..Record::default() });
        }
        (found.overlapping_share(), found.is_parallel())
    }

    #[test]
    fn threads_that_overlap_and_those_that_take_turns() {
        // The second of each pair begins within the first; process 1's next request after both.
        assert_eq!(of(&[(1, 0, 10), (2, 5, 12), (1, 20, 30), (2, 25, 32)]), (0.5, true));
        assert_eq!(of(&[(1, 0, 10), (2, 10, 20), (1, 20, 30), (2, 30, 40)]), (0.0, false));
        // One process alone may have several under way.
        assert_eq!(of(&[(1, 0, 10), (1, 5, 12), (1, 6, 7)]), (0.0, false));
        // A long request of 1 is still under way though 2's ended later than it began.
        assert_eq!(of(&[(1, 0, 100), (2, 10, 20), (2, 30, 40), (1, 100, 101)]), (0.5, true));
    }

    #[test]
    fn short_processes_one_after_another_are_one_reader() {
        let pairs = (0..50).flat_map(|at| {
            [
                (2 * at, 100 * u64::from(at), 100 * u64::from(at) + 50),
                (2 * at + 1, 100 * u64::from(at) + 10, 100 * u64::from(at) + 60),
            ]
        });
        let (share, parallel) = of(&pairs.collect::<Vec<_>>());
        assert!(share >= 0.5 && !parallel);
    }
}
