//! Sums over each interval between two synchronisations of the processes, updated as events happen (kotz-ellis, section
//! 4).
//!
//! Cost: constant per read, per action and per process that continues.

use headstart_types::Nanos;

use super::{Interval, Meeting};
use crate::LookupCounts;

/// How a process has spent its time, since the start of the run or within an interval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TimeSpent {
    /// Think time.
    pub compute: Nanos,
    /// Waits for I/O that it started itself.
    pub own_io: Nanos,
    /// Waits for I/O that was started elsewhere.
    pub other_io: Nanos,
    /// Prefetch actions that delayed it although it could have continued.
    pub overrun: Nanos,
}

/// Sums over all processes in an interval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sums {
    /// Blocks that were resident when requested.
    pub hits_ready: u64,
    /// Blocks that were in flight.
    pub hits_unready: u64,
    /// Blocks that were neither.
    pub misses: u64,
    /// Blocks read.
    pub references: u64,
    /// Total time of these reads.
    pub read_time: Nanos,
    /// Total time of the actions started.
    pub action_time: Nanos,
    /// Overrun of the waits that ended.
    pub overrun: Nanos,
}

impl Sums {
    /// Records the lookup of a request.
    #[inline]
    pub fn found(&mut self, looked: &LookupCounts) {
        self.hits_ready += u64::from(looked.hits_ready);
        self.hits_unready += u64::from(looked.hits_unready);
        self.misses += u64::from(looked.misses);
    }

    /// Records that `references` blocks have been read in `time`.
    #[inline]
    pub fn read(&mut self, references: u64, time: Nanos) {
        self.references += references;
        self.read_time += time;
    }
}

/// A completed interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// Its start, its end, and the process that arrived last.
    pub interval: Interval,
    /// Sums over all processes.
    pub sums: Sums,
    /// How the process that arrived last spent its time in the interval.
    pub critical: TimeSpent,
}

/// The intervals of a run.
#[derive(Debug, Clone, Default)]
pub struct Intervals {
    /// Sums of the current interval.
    pub sums: Sums,
    /// For each process: its times when it was last released.
    starts: Vec<TimeSpent>,
    /// Completed intervals.
    pub ended: Vec<Ended>,
}

impl Intervals {
    /// The intervals of `processes` processes, at time zero.
    #[must_use]
    pub fn new(processes: usize) -> Self {
        Self { sums: Sums::default(), starts: vec![TimeSpent::default(); processes], ended: Vec::new() }
    }

    /// Completes the interval that ends with `meeting`. `parts` returns a process's times up to now.
    pub fn ends(&mut self, meeting: &Meeting, parts: impl Fn(u32) -> TimeSpent) {
        let critical = meeting.interval.critical;
        let (before, now) = (self.starts[critical as usize], parts(critical));
        self.ended.push(Ended {
            interval: meeting.interval,
            sums: std::mem::take(&mut self.sums),
            critical: TimeSpent {
                compute: now.compute - before.compute,
                own_io: now.own_io - before.own_io,
                other_io: now.other_io - before.other_io,
                overrun: now.overrun - before.overrun,
            },
        });
        for process in &meeting.released {
            self.starts[*process as usize] = parts(*process);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_and_parts_are_of_their_interval() {
        let mut intervals = Intervals::new(2);
        let interval =
            |start, end, critical| Interval { start: Nanos(start), end: Nanos(end), critical, slack: Nanos::ZERO };
        intervals.sums.found(&LookupCounts { issued: 1, hits_ready: 0, hits_unready: 1, misses: 1 });
        intervals.sums.read(2, Nanos(30));
        let at = |time: u64| {
            move |process: u32| TimeSpent { compute: Nanos(time + u64::from(process)), ..TimeSpent::default() }
        };
        intervals.ends(&Meeting { interval: interval(0, 10, 1), released: vec![0, 1] }, at(6));
        intervals.sums.action_time += Nanos(4);
        intervals.ends(&Meeting { interval: interval(10, 15, 1), released: vec![1] }, at(10));
        let [first, second] = intervals.ended[..] else { panic!("two have ended") };
        assert_eq!((first.sums.references, first.sums.misses, first.sums.read_time), (2, 1, Nanos(30)));
        assert_eq!((first.critical.compute, second.critical.compute), (Nanos(7), Nanos(4)));
        assert_eq!(second.sums, Sums { action_time: Nanos(4), ..Sums::default() });
    }
}
