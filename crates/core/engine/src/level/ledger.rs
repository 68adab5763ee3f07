//! The counts of a level. Those of fetches follow each block from its fetch to its eviction; lead time, pollution and
//! wasted device time need times of earlier steps, which are kept per block.
//!
//! Memory: 13 bytes per block of the universe, from the first prefetch on. Cost: constant.

use headstart_types::{Block, Nanos};

use crate::Counts;

/// What happens to a block.
pub(super) enum Step {
    /// Its fetch is issued.
    Fetched { prefetch: bool },
    /// A demand at the instant of its prefetch: that counts as a fetch on demand.
    Demanded,
    /// It has arrived; `unused`: prefetched and not requested so far.
    Arrived { unused: bool, service: Option<Nanos> },
    /// Its prefetch is requested for the first time; `late`: in flight.
    Used { late: bool },
    /// It is evicted, or overwritten as a whole; `unused`: prefetched and never requested.
    Evicted { unused: bool, for_prefetch: bool },
    /// It is requested while absent.
    Missed,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Ledger {
    pub counts: Counts,
    /// Arrival time of each prefetched block that is still unused.
    arrived_at: Vec<Nanos>,
    /// Service time of its fetch in ns, capped at 4.29 s.
    service_ns: Vec<u32>,
    /// Whether it was evicted to make room for a prefetch, and has not been fetched since.
    made_way: Vec<bool>,
}

impl Ledger {
    /// Counts a step of `block`. The caller guarantees that the steps of a block come in their order.
    #[inline(always)]
    pub fn add(&mut self, now: Nanos, block: Block, step: Step) {
        let counts = &mut self.counts;
        match step {
            Step::Fetched { prefetch: true } => counts.prefetches += 1,
            Step::Fetched { prefetch: false } => counts.demand_fetches += 1,
            Step::Demanded => {
                counts.prefetches -= 1;
                counts.demand_fetches += 1;
            }
            Step::Arrived { unused: true, service } => self.arrived(now, block, service),
            Step::Arrived { unused: false, .. } => {}
            Step::Used { late } => {
                counts.prefetches_used += 1;
                if late {
                    counts.prefetches_late += 1;
                } else {
                    counts.lead_time_ns += u128::from((now - self.arrived_at[block.index()]).0);
                }
            }
            Step::Evicted { unused, for_prefetch } => self.evicted(block, unused, for_prefetch),
            Step::Missed => {
                if let Some(made_way) = self.made_way.get_mut(block.index()) {
                    counts.pollution += u64::from(std::mem::take(made_way));
                }
            }
        }
    }

    #[inline]
    fn arrived(&mut self, now: Nanos, block: Block, service: Option<Nanos>) {
        let at = block.index();
        if at >= self.arrived_at.len() {
            let room = (at + 1).next_power_of_two();
            self.arrived_at.resize(room, Nanos::ZERO);
            self.service_ns.resize(room, 0);
        }
        self.arrived_at[at] = now;
        self.service_ns[at] = service.map_or(0, |service| u32::try_from(service.0).unwrap_or(u32::MAX));
    }

    /// [`Step::Evicted`], at a time that is not known.
    #[inline]
    pub fn evicted(&mut self, block: Block, unused: bool, for_prefetch: bool) {
        let at = block.index();
        if unused {
            self.counts.wasted_service_ns += u64::from(self.service_ns[at]);
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
}
