//! SPTF, shortest positioning time first: the queued request whose first sector can be under the head soonest.
//!
//! The device itself computes the seek and rotation time of each ([`Device::positioning`]), with controller overhead if
//! it counts it: a drive's own command queue can use this scheduler, an operating system cannot. Seltzer, Chen and
//! Ousterhout, "Disk Scheduling Revisited", USENIX Winter 1990 (shortest time first), and Jacobson and Wilkes,
//! HPL-CSP-91-7, 1991 (shortest access time first, and its aged form). Ties go to the earlier arrival; if position does
//! not matter it is FCFS.
//!
//! With `age_weight` w, a wait of t reduces the positioning time by w * t. At 0, the default, waits are unbounded; at
//! w, no request yields to one that arrived later by more than (the longest positioning time) / w, since by then even a
//! positioning time of zero loses. Larger weights approach FCFS: Worthington, Ganger and Patt, "Scheduling algorithms
//! for modern disk drives", SIGMETRICS 1994, find that small ones reduce the variance of response times much and
//! increase their mean little. The weight is stored in millionths.
//!
//! O(n) per choice. The queue is scanned from its oldest request, up to the first request that could not win with a
//! positioning time of zero. No allocation after warm-up.

use std::collections::VecDeque;

use headstart_types::{keys, read_keys, KeyTable, Nanos};

use super::{Next, Queued, Scheduler};
use crate::row::SchedulerRow;
use crate::Device;

pub const ROW: SchedulerRow = SchedulerRow {
    name: "sptf",
    summary: "shortest positioning time first, as computed by the device; age_weight favours requests that have waited",
    keys: KeyTable::of::<SptfKeys>(),
    build: |keys| {
        let keys: SptfKeys = read_keys(keys)?;
        Ok(Box::new(Sptf::new((keys.age_weight * ONE as f64).round() as u64)))
    },
};

keys! {
    /// Keys of `sptf`.
    pub struct SptfKeys {
        /// A request that has waited for t is treated as if its positioning time were shorter by t times this weight.
        /// 0: waits are unbounded.
        #[schemars(range(min = 0.0, max = 1000.0))]
        pub age_weight: f64 = 0.0,
    }
}

/// 1 in millionths.
const ONE: i128 = 1_000_000;

/// The queue in order of arrival.
#[derive(Debug, Clone, Default)]
pub struct Sptf {
    queue: VecDeque<Queued>,
    /// Positioning time per unit of waiting time, in millionths.
    age_weight: u64,
}

impl Sptf {
    /// An empty queue with this age weight in millionths.
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
            // All requests from here on are at least as young, and none can be nearer than under the head.
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
