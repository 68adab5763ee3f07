//! Benefits and costs of prefetches that simple counts cannot show: lead time, pollution, and device time wasted.
//!
//! Memory: 13 bytes per block of the universe, from the first prefetch on. Cost: constant.

use headstart_types::{Block, Nanos};

use crate::Counts;

/// Per-block records.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ledger {
    /// Arrival time of each prefetched block that is still unused.
    arrived_at: Vec<Nanos>,
    /// Service time of its fetch in ns, capped at 4.29 s.
    service_ns: Vec<u32>,
    /// Whether it was evicted to make room for a prefetch, and has not been fetched since.
    made_way: Vec<bool>,
}

impl Ledger {
    /// Records the arrival of a prefetched block that has not been requested.
    #[inline]
    pub fn arrived(&mut self, now: Nanos, block: Block, service: Option<Nanos>) {
        let at = block.index();
        if at >= self.arrived_at.len() {
            let room = (at + 1).next_power_of_two();
            self.arrived_at.resize(room, Nanos::ZERO);
            self.service_ns.resize(room, 0);
        }
        self.arrived_at[at] = now;
        self.service_ns[at] = service.map_or(0, |service| u32::try_from(service.0).unwrap_or(u32::MAX));
    }

    /// Records the first request of a resident prefetched block.
    #[inline]
    pub fn used(&mut self, now: Nanos, block: Block, counts: &mut Counts) {
        counts.lead_time_ns += u128::from((now - self.arrived_at[block.index()]).0);
    }

    /// Records an eviction.
    #[inline]
    pub fn evicted(&mut self, block: Block, unused: bool, for_prefetch: bool, counts: &mut Counts) {
        let at = block.index();
        if unused {
            counts.wasted_service_ns += u64::from(self.service_ns[at]);
        }
        if for_prefetch {
            if at >= self.made_way.len() {
                self.made_way.resize((at + 1).next_power_of_two(), false);
            }
            self.made_way[at] = true;
        } else if let Some(made_way) = self.made_way.get_mut(at) {
            *made_way = false;
        }
    }

    /// Records a request of an absent block.
    #[inline]
    pub fn missed(&mut self, block: Block, counts: &mut Counts) {
        if let Some(made_way) = self.made_way.get_mut(block.index()) {
            counts.pollution += u64::from(std::mem::take(made_way));
        }
    }
}
