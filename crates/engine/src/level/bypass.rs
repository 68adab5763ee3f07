//! Requests, or parts of them, that bypass a level's policy, because a coordinator wants it so.

use headstart_policy::{BlockState, Space};
use headstart_types::{Block, Nanos, NEVER};

use super::requests::Looked;
use super::waiting::Waiter;
use super::Level;
use crate::backend::{Backend, Kind};

impl Level {
    /// A request of `client` whose blocks all bypass the policy, which is told nothing. Resident ones are silent hits: they
    /// change no recency and leave what the policy knows of a prefetch as it is; absent ones are fetched in orders of `kind`
    /// and not stored. Returns how they were found.
    pub fn bypass(
        &mut self,
        now: Nanos,
        (id, client): (u64, u32),
        blocks: &[Block],
        kind: Kind,
        space: &dyn Space,
        backend: &mut impl Backend,
    ) -> Looked {
        let slot = self.requests.open(id);
        let mut looked = Looked::default();
        for &block in blocks {
            self.meet(block, space);
            self.counts.references += 1;
            self.counts.bypass_blocks += 1;
            let state = self.blocks[block.index()];
            if state.is_resident() {
                self.counts.hits_ready += 1;
                self.counts.silent_hits += 1;
                self.first_use(now, block, state);
                self.blocks[block.index()] = state.used_silently();
                looked.hits_ready += 1;
                continue;
            }
            let on_its_way = state.is_in_flight() || state.is_passing();
            let outcome = self.count_wait(now, block, false, on_its_way, false);
            looked.count(outcome);
            let (position, process, compute) = (NEVER, client, Nanos::ZERO);
            let waiter = Waiter { slot, position, process, outcome, compute, since: now, silent: true };
            self.requests.wait(block, waiter);
            self.blocks[block.index()] = state.used_silently();
            if !on_its_way {
                looked.issued += self.pass(now, block, kind, space, backend);
            }
        }
        looked.issued += self.requests.close_order(now, &self.disk_of, backend);
        self.requests.close_if_served(slot);
        looked
    }

    /// Fetches a block that will not be stored.
    fn pass(&mut self, now: Nanos, block: Block, kind: Kind, space: &dyn Space, backend: &mut impl Backend) -> u32 {
        self.counts.demand_fetches += 1;
        self.counts.bypass_fetches += 1;
        self.blocks[block.index()] = BlockState::passing();
        self.outstanding[self.disk_of[block.index()].index()] += 1;
        self.requests.add_to_order(now, block, kind, space, &self.disk_of, backend)
    }

    /// A block that is not stored has arrived. Requests that the policy has seen go on waiting: it owes them a fetch.
    pub(super) fn passed(&mut self, now: Nanos, block: Block) {
        self.blocks[block.index()] = BlockState::ABSENT;
        let mut seen = Vec::new();
        while let Some(waiter) = self.requests.waiting.pop(block) {
            if waiter.silent {
                self.waited(now, &waiter);
            } else {
                seen.push(waiter);
            }
        }
        seen.into_iter().for_each(|waiter| self.requests.waiting.push(block, waiter));
    }
}
