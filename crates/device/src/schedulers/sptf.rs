//! SPTF, shortest positioning time first: the queued request whose first sector can be under the head soonest.
//!
//! The device itself says how long it would take to seek and turn to each ([`Device::positioning`]), with what its
//! controller would add where it counts that: this is the scheduler that a drive's own command queue can have
//! and an operating system cannot. Seltzer, Chen and Ousterhout, "Disk Scheduling Revisited", USENIX Winter 1990
//! (shortest time first), and Jacobson and Wilkes, HPL-CSP-91-7, 1991 (shortest access time first, and its aged
//! form). Ties go to the earlier arrival; where place does not matter it is FCFS.
//!
//! `age_weight` w counts a wait of t as w * t less of positioning. At 0, the default, nothing bounds a wait; at w,
//! no request gives way to one that came later by more than (the longest positioning time) / w, since by then
//! even a positioning time of zero loses. Larger weights come nearer to FCFS: Worthington, Ganger and Patt,
//! "Scheduling algorithms for modern disk drives", SIGMETRICS 1994, find small ones to cut the variance of
//! response times much and their mean little. The weight is kept in millionths.
//!
//! O(n) a choice. The queue is looked through from its eldest, and no further than to the first request that
//! could not win with a positioning time of zero. No allocation once warm.

use std::collections::VecDeque;

use headstart_types::{keys, read_keys, KeyTable, Nanos};

use super::{Next, Queued, Scheduler};
use crate::row::SchedulerRow;
use crate::Device;

/// Its row in the registry.
pub const ROW: SchedulerRow = SchedulerRow {
    name: "sptf",
    summary: "shortest positioning time first, as the device reckons it; age_weight favours those that wait",
    keys: KeyTable::of::<SptfKeys>(),
    build: |keys| {
        let keys: SptfKeys = read_keys(keys)?;
        Ok(Box::new(Sptf::new((keys.age_weight * ONE as f64).round() as u64)))
    },
};

keys! {
    /// Keys of `sptf`.
    pub struct SptfKeys {
        /// A wait of t counts as this times t less of positioning; 0 lets requests wait without end.
        #[schemars(range(min = 0.0, max = 1000.0))]
        pub age_weight: f64 = 0.0,
    }
}

/// Millionths in 1.
const ONE: i128 = 1_000_000;

/// The queue in order of arrival.
#[derive(Debug, Clone, Default)]
pub struct Sptf {
    queue: VecDeque<Queued>,
    /// Positioning time that a unit of waiting time counts for, in millionths.
    age_weight: u64,
}

impl Sptf {
    /// An empty queue that counts a wait as `age_weight` millionths of itself.
    #[must_use]
    pub fn new(age_weight: u64) -> Self {
        Self { queue: VecDeque::new(), age_weight }
    }

    /// Index of the request with the least (positioning time - weight * wait), the earliest of several.
    #[inline]
    fn best(&self, now: Nanos, device: &dyn Device) -> Option<usize> {
        let mut best: Option<(i128, usize)> = None;
        for (index, queued) in self.queue.iter().enumerate() {
            let credit = i128::from(self.age_weight) * i128::from(now.saturating_sub(queued.arrived).0);
            // From here on all are as young or younger, and none is nearer than under the head.
            if best.is_some_and(|(least, _)| least <= -credit) {
                break;
            }
            let cost = ONE * i128::from(device.positioning(now, &queued.request).0) - credit;
            if best.is_none_or(|(least, _)| cost < least) {
                best = Some((cost, index));
            }
        }
        best.map(|(_, index)| index)
    }
}

impl Scheduler for Sptf {
    #[inline]
    fn push(&mut self, queued: Queued) {
        self.queue.push_back(queued);
    }

    #[inline]
    fn pop(&mut self, now: Nanos, device: &dyn Device, _parts: &mut Vec<Queued>) -> Next {
        let best = self.best(now, device);
        best.and_then(|index| self.queue.remove(index)).map_or(Next::Nothing, Next::Serve)
    }

    #[inline]
    fn len(&self) -> usize {
        self.queue.len()
    }
}
