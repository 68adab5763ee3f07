//! SSTF, shortest seek time first: the queued request whose first sector is nearest to the head.
//!
//! Distance is counted in sectors from where the device's last request ended ([`Device::head_sector`]), because an
//! operating system does not know cylinders. Ties go to the earlier arrival. Denning 1967 names it and its flaw: a busy
//! region starves the rest, edges first. It gives no guarantee.
//!
//! O(log n) per request; no allocation after warm-up; about 90 bytes per queued request.

use headstart_types::{KeyTable, Nanos};

use super::sorted::{Key, Sorted};
use super::{without_keys, Next, Queued, Scheduler};
use crate::row::SchedulerRow;
use crate::{Device, Request};

pub const ROW: SchedulerRow = SchedulerRow {
    name: "sstf",
    summary: "shortest seek first: the sector nearest to the head",
    keys: KeyTable::NONE,
    build: |keys| without_keys(keys, Sstf::default()),
};

/// The queue by position.
#[derive(Debug, Clone, Default)]
pub struct Sstf {
    /// By (first sector, sequence).
    queue: Sorted<Option<(Request, Nanos)>>,
}

impl Sstf {
    /// The key of the request nearest to `head`, the earliest of several.
    #[inline]
    fn nearest(&self, head: u64) -> Option<Key> {
        let above = self.queue.at_or_after((head, 0)).map(|(key, _)| key);
        // The last request below the head is the latest for its sector: search the earliest.
        let below = self.queue.before((head, 0)).and_then(|((sector, _), _)| self.queue.at_or_after((sector, 0)));
        let distance = |(sector, sequence): &Key| (sector.abs_diff(head), *sequence);
        above.into_iter().chain(below.map(|(key, _)| key)).min_by_key(distance)
    }
}

impl Scheduler for Sstf {
    #[inline]
    fn push(&mut self, queued: Queued) {
        self.queue.insert((queued.request.sector, queued.sequence), Some((queued.request, queued.arrived)));
    }

    #[inline]
    fn pop(&mut self, _now: Nanos, device: &dyn Device, _parts: &mut Vec<Queued>) -> Next {
        let Some(key) = self.nearest(device.head_sector()) else { return Next::Nothing };
        match self.queue.remove(key).flatten() {
            Some((request, arrived)) => Next::Serve(Queued { request, arrived, sequence: key.1 }),
            None => Next::Nothing,
        }
    }

    #[inline]
    fn len(&self) -> usize {
        self.queue.len()
    }
}
