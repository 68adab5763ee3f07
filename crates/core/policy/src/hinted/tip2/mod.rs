//! TIP2: buffers go where they save the most time: to prefetching hinted blocks, to keeping hinted blocks, or to an LRU
//! cache of unhinted blocks.
//!
//! Source: R. H. Patterson, G. A. Gibson, E. Ginting, D. Stodolsky and J. Zelenka, "Informed Prefetching and Caching",
//! SOSP 1995: its cost-benefit analysis. `worth.rs` derives the benefits and costs of a buffer, `distances.rs` H'(n).
//!
//! ```text
//! each process's hints: the first missing block, if it is at most P references ahead, would gain benefit(x)
//! the least valuable buffer: each estimator names its own: the LRU cache its tail, each process's hints the block
//!     that is furthest ahead; a buffer has the highest value that any estimator gives it, and 0 if none knows it
//! rates: gains and costs per reference are weighted by the share of all references that are of that kind
//! while the greatest gain of any process exceeds the value of the least valuable buffer: prefetch in its place
//! a missing block that is referenced takes the least valuable buffer regardless of its value; a block that its
//!     process needs next takes the buffer of any block that is not another process's next one
//! ```
//!
//! Differences. T_disk is the device's typical service time, T_driver and T_hit are those of `[host]`; none is
//! measured. An ejected block is also charged the measured disk time (`worth.rs`). A free frame is worth nothing.
//! Unhinted blocks that left the LRU list because they were hinted and used are evicted first, until they are requested
//! again. `partition` instead splits the frames in two, as the fixed partitions that the paper argues against: the LRU
//! cache has its share, hinted blocks the rest, and prefetched blocks replace blocks that are needed later.
//!
//! Where the process of a future reference is unknown (`headstart run`), all hints count as one process's.
//!
//! Cost: constant per event and process, plus the segments of `distances.rs` per unhinted reference. Memory: that of
//! other hinted policies, for each process that gives hints. Not for one process that hints everything (use
//! `just-in-time`): there is nothing to balance, and P assumes disks that serve P requests in parallel.

mod distances;
mod estimators;
mod worth;

use std::collections::VecDeque;

use headstart_types::{keys, Block, KeyTable, Nanos, Position};

use self::estimators::{Estimators, Use};
use self::worth::Worth;
use super::recent::Recent;
use crate::readahead::Found;
use crate::row::{Family, PolicyRow};
use crate::{Event, Fetch, Policy, View};

/// Its row in the registry.
pub static ROW: PolicyRow = PolicyRow {
    name: "tip2",
    summary: "give each buffer to the use that saves most time: hinted prefetching, hinted caching or LRU",
    source: "Patterson, Gibson, Ginting, Stodolsky and Zelenka, SOSP 1995",
    keys: KeyTable::of::<Tip2Keys>(),
    default_replacement: None,
    family: Family::Hinted(&|keys, context| {
        let keys: &Tip2Keys = keys.get();
        let mut worth = Worth::new(context.hit, context.driver, context.nominal_service, context.frames);
        if let Some(horizon) = keys.horizon {
            worth = worth.with_horizon(horizon);
        }
        // A given horizon is the paper's, whose disks serve all requests in parallel.
        let servers = match keys.horizon {
            Some(_) => f64::INFINITY,
            None => context.disks as f64 * f64::from(context.concurrency),
        };
        worth.set_delay(context.nominal_service.0 as f64, servers);
        let quota = keys.partition.map(|share| context.share(share));
        Ok(Box::new(Tip2 {
            estimators: Estimators::new(context, worth, quota),
            servers,
            services: Recent::default(),
            shared: context.processes() > 1,
            owed: VecDeque::new(),
        }))
    }),
};

keys! {
    /// Keys of `tip2`.
    pub struct Tip2Keys {
        /// P: prefetch hinted blocks at most this many references of the hinting process ahead.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(range(min = 1), extend("x-absent" = "a block's typical service time over driver_overhead plus hit_time, at most the blocks of the cache"))]
        pub horizon: Option<Position> = None,
        /// Share of the frames reserved for unhinted references. Replaces the cost-benefit analysis.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(range(min = 0.0, max = 1.0), extend("x-absent" = "none: cost-benefit analysis"))]
        pub partition: Option<f64> = None,
    }
}

/// The TIP2 policy.
struct Tip2 {
    estimators: Estimators,
    /// Number of fetches that the disks serve in parallel, and recent service times.
    servers: f64,
    services: Recent,
    /// Whether several processes issue requests.
    shared: bool,
    /// Blocks that a process waits for and that found no frame; retried at every decision.
    owed: VecDeque<Block>,
}

impl Tip2 {
    /// Fetches the blocks in `owed` that are still absent, as far as there are frames.
    fn pay(&mut self, view: &View<'_>, fetches: &mut Vec<Fetch>) {
        self.owed.retain(|block| view.state(*block).is_absent() && !named(fetches, *block));
        while let Some(block) = self.owed.front().copied() {
            let use_ = if self.estimators.is_hinted(block) { Use::Hinted } else { Use::Unhinted };
            let Some(victim) = self.frame(use_, view, fetches) else { break };
            self.issue(block, victim, fetches);
            self.owed.pop_front();
        }
    }

    /// A free frame, or that of the least valuable buffer.
    fn frame(&self, use_: Use, view: &View<'_>, fetches: &[Fetch]) -> Option<Option<Block>> {
        if free(view, fetches) > 0 {
            return Some(None);
        }
        self.estimators.least_valuable(use_, view).map(|buffer| Some(buffer.block))
    }

    fn issue(&mut self, block: Block, victim: Option<Block>, fetches: &mut Vec<Fetch>) {
        if let Some(victim) = victim {
            self.estimators.evicted(victim);
        }
        self.estimators.issued(block);
        fetches.push(Fetch { block, victim });
    }

    /// Fetches the blocks that processes need next, whatever the cost, and prefetches blocks that gain more than they
    /// cost.
    fn prefetch(&mut self, view: &View<'_>, fetches: &mut Vec<Fetch>) {
        while let Some(candidate) = self.estimators.best_prefetch() {
            let victim = match free(view, fetches) {
                0 => match self.estimators.least_valuable(Use::Hinted, view) {
                    Some(buffer) if self.estimators.gains(&candidate, &buffer) => Some(buffer.block),
                    _ => return,
                },
                _ => None,
            };
            self.issue(candidate.block, victim, fetches);
        }
    }
}

/// Free frames that no decided fetch takes.
fn free(view: &View<'_>, fetches: &[Fetch]) -> u32 {
    view.free - fetches.iter().filter(|fetch| fetch.victim.is_none()).count() as u32
}

fn named(fetches: &[Fetch], block: Block) -> bool {
    fetches.iter().any(|fetch| fetch.block == block)
}

impl Policy for Tip2 {
    fn on(&mut self, _now: Nanos, event: Event, view: &View<'_>, fetches: &mut Vec<Fetch>) {
        match event {
            Event::Decide => {
                self.pay(view, fetches);
                // Waiting processes come first: nothing is prefetched into a frame that a demand fetch needs.
                if self.owed.is_empty() {
                    self.prefetch(view, fetches);
                }
            }
            Event::Served { position, block, .. } => self.estimators.served(position, block, view),
            Event::Asked { .. } => {
                for (block, found) in view.asked.iter().zip(view.found) {
                    if *found == Found::Absent && !self.owed.contains(block) {
                        self.owed.push_back(*block);
                    }
                }
                self.pay(view, fetches);
            }
            Event::Skipped { position, block } => self.estimators.skipped(position, block, view),
            // It prefetches in decisions, at no CPU cost, and has its own hints.
            Event::Idle { .. } | Event::Expected => {}
            Event::Arrived { block, service, .. } => {
                if let Some(service) = service {
                    self.services.push(service);
                    let mean_ns = self.services.mean_ns().unwrap_or(0.0);
                    self.estimators.worth.set_delay(mean_ns, self.servers);
                }
                self.estimators.arrived(block);
            }
        }
    }

    fn grow(&mut self, blocks: usize) {
        self.estimators.grow(blocks);
    }

    fn decides(&self, _outstanding: &[u32]) -> bool {
        !self.owed.is_empty() || self.estimators.best_prefetch().is_some()
    }

    fn takes_requests(&self) -> bool {
        self.shared
    }
}

#[cfg(test)]
mod tests;
