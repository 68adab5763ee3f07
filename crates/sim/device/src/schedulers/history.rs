//! The anticipatory scheduler's per-process history: think times between reads, distances between them, and whether new
//! processes return at all.
//!
//! Means decay by an eighth with each sample, in fixed point (1 is 256), as in Linux 2.6.18's as-iosched.c; times are
//! in nanoseconds here, in ticks there. A process with requests queued or in service is not thinking; in Linux,
//! requests taken by the driver do not count. A look-up costs O(log processes); processes are never forgotten.

use std::collections::BTreeMap;

use headstart_types::Nanos;

use crate::Request;

/// Longer think times count as this long (MAX_THINKTIME, HZ / 50).
const THINK_MAX: Nanos = Nanos::from_millis(20);

const ONE: u64 = 256;

/// A mean that decays by an eighth with each sample.
#[derive(Debug, Clone, Copy, Default)]
struct Decaying {
    /// Sum of weights; 0 before the first sample.
    weight: u64,
    total: u128,
}

impl Decaying {
    fn add(&mut self, value: u64) {
        self.weight = (7 * self.weight + ONE) / 8;
        self.total = (7 * self.total + u128::from(ONE) * u128::from(value)) / 8;
    }

    /// Zero before the first sample.
    fn mean(&self) -> u64 {
        let weight = u128::from(self.weight.max(1));
        ((self.total + weight / 2) / weight) as u64
    }

    /// The mean as if the history before the first sample were zeros: low at first.
    fn grown_mean(&self) -> u64 {
        (self.total / u128::from(ONE)) as u64
    }
}

#[derive(Debug, Clone, Default)]
struct ProcessHistory {
    thinks: Decaying,
    /// In sectors.
    seeks: Decaying,
    /// Whether it has read.
    started: bool,
    /// When its last read ended.
    ended: Option<Nanos>,
    /// The sector after its last read.
    position: u64,
    queued: u32,
    in_hand: u32,
}

/// The history of all processes.
#[derive(Debug, Clone, Default)]
pub(super) struct History {
    processes: BTreeMap<u32, ProcessHistory>,
    /// First think times of processes.
    new_thinks: Decaying,
    /// First distances of processes, in sectors.
    new_seeks: Decaying,
    /// Share, in 1/256, of new processes that did not return in time for their second read.
    lost: u64,
}

impl History {
    /// A process reads, or another one does in its place.
    pub(super) fn reads(&mut self, process: u32, now: Nanos, request: &Request) {
        let it = self.processes.entry(process).or_default();
        if it.started || it.ended.is_some() {
            let idle = it.queued + it.in_hand == 0;
            let think = it.ended.filter(|_| idle).map_or(Nanos::ZERO, |ended| now.saturating_sub(ended).min(THINK_MAX));
            if it.thinks.weight == 0 {
                self.new_thinks.add(think.0);
                self.lost = 7 * self.lost / 8;
            }
            it.thinks.add(think.0);
            let mut distance = it.position.abs_diff(request.sector);
            if it.seeks.weight == 0 {
                self.new_seeks.add(distance);
            }
            // A single outlier must not dominate the mean of many.
            let slack: u64 = if it.seeks.weight <= 60 { 2 * 1024 * 1024 } else { 2 * 1024 * 64 };
            distance = distance.min(it.seeks.mean().saturating_mul(4).saturating_add(slack));
            it.seeks.add(distance);
        }
        it.position = request.end();
        it.started = true;
    }

    /// Another request of a process is queued.
    pub(super) fn queued(&mut self, process: u32) {
        self.processes.entry(process).or_default().queued += 1;
    }

    /// A queued request of a process was merged with another's.
    pub(super) fn merged(&mut self, process: u32) {
        let it = self.processes.entry(process).or_default();
        it.queued = it.queued.saturating_sub(1);
    }

    /// A request of a process is dispatched.
    pub(super) fn dispatched(&mut self, process: u32) {
        self.merged(process);
        self.processes.entry(process).or_default().in_hand += 1;
    }

    /// A request of a process has ended.
    pub(super) fn ended(&mut self, process: u32, now: Nanos, read: bool) {
        let it = self.processes.entry(process).or_default();
        it.in_hand = it.in_hand.saturating_sub(1);
        if read {
            it.ended = Some(now);
        }
    }

    /// The process did not return while it was waited for.
    pub(super) fn stayed_away(&mut self, process: u32) {
        if self.processes.get(&process).is_none_or(|it| it.thinks.weight == 0) {
            self.lost = (7 * self.lost + ONE) / 8;
        }
    }

    pub(super) fn has_queued(&self, process: u32) -> bool {
        self.processes.get(&process).is_some_and(|it| it.queued > 0)
    }

    /// Whether waiting for `wait` for the process's next read does not pay.
    pub(super) fn thinks_too_long(&self, process: u32, wait: Nanos) -> bool {
        match self.processes.get(&process).filter(|it| it.thinks.weight > 0) {
            Some(it) => it.thinks.mean() > wait.0,
            None => self.new_thinks.grown_mean() > wait.0 || self.lost > ONE / 2,
        }
    }

    /// Expected distance of the process's next read from its last, in sectors.
    pub(super) fn seeks(&self, process: u32) -> u64 {
        match self.processes.get(&process).filter(|it| it.seeks.weight > 0) {
            Some(it) => it.seeks.mean(),
            None => self.new_seeks.grown_mean(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Nanos = Nanos::from_millis;

    /// A process that reads 8 sectors at each of these (sector, at, ended at).
    fn reader(reads: &[(u64, u64, u64)]) -> History {
        let mut history = History::default();
        for &(sector, at, ended) in reads {
            history.reads(1, MS(at), &Request::read(sector, 8, 0));
            history.queued(1);
            history.dispatched(1);
            history.ended(1, MS(ended), true);
        }
        history
    }

    #[test]
    fn think_times_by_hand() {
        // One sample of 8 ms: weight 256 / 8 = 32, total 32 * 8 ms, mean 8 ms.
        let history = reader(&[(0, 0, 10), (8, 18, 20)]);
        assert_eq!(history.processes[&1].thinks.mean(), 8_000_000);
        assert!(history.thinks_too_long(1, MS(7)) && !history.thinks_too_long(1, MS(8)));
        // Then one of 0: weight (7 * 32 + 256) / 8 = 60, total 7/8 of 256 ms = 224 ms, mean 3.733 ms.
        let history = reader(&[(0, 0, 10), (8, 18, 20), (16, 20, 30)]);
        assert_eq!(history.processes[&1].thinks.mean(), 3_733_333);
        // Ten seconds count as 20 ms: (7 * 224 + 256 * 20) / 8 = 836 ms over (7 * 60 + 256) / 8 = 84: 9.952 ms.
        let history = reader(&[(0, 0, 10), (8, 18, 20), (16, 20, 30), (24, 10_030, 10_040)]);
        assert_eq!(history.processes[&1].thinks.mean(), 9_952_381);
        // New processes: 256 / 8 * 8 ms / 256 = 1 ms.
        assert_eq!(history.new_thinks.grown_mean(), 1_000_000);
        assert!(!history.thinks_too_long(2, MS(1)) && history.thinks_too_long(2, Nanos(999_999)));
    }

    #[test]
    fn a_process_with_something_outstanding_does_not_think() {
        let mut history = reader(&[(0, 0, 10)]);
        history.queued(1);
        history.reads(1, MS(15), &Request::read(8, 8, 0));
        assert_eq!(history.processes[&1].thinks.mean(), 0);
    }

    #[test]
    fn distances_by_hand() {
        // From 8 to 1008: 1000. From 1016 back to 16: 1000.
        let history = reader(&[(0, 0, 1), (1008, 2, 3), (16, 4, 5)]);
        assert_eq!(history.seeks(1), 1000);
        // New processes: 32 * 1000 / 256.
        assert_eq!(history.seeks(2), 125);
        // The fourth is clipped to 4 * 1000 + 2,097,152 = 2,101,152 (weight 60):
        // total (7 * 60,000 + 256 * 2,101,152) / 8 = 67,289,364; over 84: 801,064 and a bit.
        let history = reader(&[(0, 0, 1), (1008, 2, 3), (16, 4, 5), (1 << 40, 6, 7)]);
        assert_eq!(history.seeks(1), 801_064);
    }

    #[test]
    fn new_processes_that_stay_away_are_not_waited_for() {
        let mut history = History::default();
        // 256 (1 - (7/8)^n) passes 128 with the sixth: 32, 60, 84, 105, 123, 139.
        for process in 0..6 {
            assert!(!history.thinks_too_long(99, MS(6)));
            history.stayed_away(process);
        }
        assert!(history.thinks_too_long(99, MS(6)));
        // A process that returns at once: 7/8 of 139 is 121.
        history.reads(7, MS(0), &Request::read(0, 8, 0));
        history.reads(7, MS(0), &Request::read(8, 8, 0));
        assert!(!history.thinks_too_long(99, MS(6)));
        // A known process does not count.
        history.stayed_away(7);
        assert_eq!(history.lost, 121);
    }
}
