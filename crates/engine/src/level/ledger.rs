//! What prefetches gained and cost, beside the counts: lead time, pollution, and device time spent on waste.
//!
//! Memory: 13 bytes a block of the universe, from the first prefetch on. Cost: constant.

use headstart_types::{Block, Nanos};

use crate::Counts;

/// What is kept about each block.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ledger {
    /// When a prefetched block that is still unused arrived.
    arrived_at: Vec<Nanos>,
    /// What its fetch took, in ns; at most 4.29 s, which longer ones count as.
    service_ns: Vec<u32>,
    /// Whether it was evicted to make room for a prefetch, and has not been fetched since.
    made_way: Vec<bool>,
}

impl Ledger {
    /// A prefetched block has arrived, and nobody has asked for it yet.
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

    /// A resident prefetch has been asked for.
    #[inline]
    pub fn used(&mut self, now: Nanos, block: Block, counts: &mut Counts) {
        counts.lead_time_ns += u128::from((now - self.arrived_at[block.index()]).0);
    }

    /// A block has been evicted.
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

    /// A block that is absent has been asked for.
    #[inline]
    pub fn missed(&mut self, block: Block, counts: &mut Counts) {
        if let Some(made_way) = self.made_way.get_mut(block.index()) {
            counts.pollution += u64::from(std::mem::take(made_way));
        }
    }
}
