//! Whether the processes of a trace read concurrently, so that replaying them as one process would be wrong.
//!
//! Cost: constant per request. Memory: 24 bytes per process.

use std::collections::HashMap;

use headstart_types::Nanos;

use crate::hash::Build;
use crate::Record;

/// Minimum share of requests that begin while another process has one outstanding. A guess: two threads that take turns
/// reach 0; two that each read independently half of the time reach a quarter.
const OVERLAPPING_MIN: f64 = 0.25;
/// Minimum of the mean time between a process's first and last request, as a share of the trace. Processes that run one
/// after another must not be replayed as if they started together.
const ALIVE_MIN: f64 = 0.5;

/// Statistics collected in a pass over the records.
#[derive(Debug, Default)]
pub struct ConcurrencyStats {
    requests: u64,
    overlapping: u64,
    /// The latest end of any request with its process, and the latest end among the other processes.
    latest: [(Nanos, u32); 2],
    /// First and last request of each process.
    alive: HashMap<u32, (Nanos, Nanos), Build>,
    last: Nanos,
}

impl ConcurrencyStats {
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

    /// Share of requests that began while another process had one outstanding, 0 to 1.
    #[must_use]
    pub fn overlapping_share(&self) -> f64 {
        self.overlapping as f64 / self.requests.max(1) as f64
    }

    /// Whether the processes should be replayed concurrently.
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
        let mut found = ConcurrencyStats::default();
        for &(pid, begin, end) in requests {
            found.add(&Record { time: Nanos(begin), duration: Nanos(end - begin), pid, ..Record::default() });
        }
        (found.overlapping_share(), found.is_parallel())
    }

    #[test]
    fn threads_that_overlap_and_those_that_take_turns() {
        // The second request of each pair begins during the first; process 1's next request begins after both.
        assert_eq!(of(&[(1, 0, 10), (2, 5, 12), (1, 20, 30), (2, 25, 32)]), (0.5, true));
        assert_eq!(of(&[(1, 0, 10), (2, 10, 20), (1, 20, 30), (2, 30, 40)]), (0.0, false));
        // A single process may have several requests outstanding.
        assert_eq!(of(&[(1, 0, 10), (1, 5, 12), (1, 6, 7)]), (0.0, false));
        // Process 1's long request is still outstanding, although process 2's last one ended after it began.
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
