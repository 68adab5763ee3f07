//! Requests, or parts of them, that bypass a level's policy as decided by a coordinator.

use headstart_policy::{BlockMap, BlockState};
use headstart_types::{Block, Nanos, NEVER};

use super::ledger::Step;
use super::waiting::Waiter;
use super::Level;
use super::LookupCounts;
use crate::backend::{Backend, Kind};

impl Level {
    /// Serves a request of `client` whose blocks all bypass the policy, which is not notified. Resident blocks are
    /// silent hits: they do not change recency or the policy's knowledge of a prefetch. Absent blocks are fetched in
    /// orders of `kind` and not stored. Returns how the blocks were found.
    pub fn bypass(
        &mut self,
        now: Nanos,
        (id, client): (u64, u32),
        blocks: &[Block],
        kind: Kind,
        space: &dyn BlockMap,
        backend: &mut impl Backend,
    ) -> LookupCounts {
        let slot = self.requests.open(id);
        let mut looked = LookupCounts::default();
        for &block in blocks {
            self.register_block(block, space);
            self.ledger.counts.references += 1;
            self.ledger.counts.bypass_blocks += 1;
            let state = self.blocks[block.index()];
            if state.is_resident() {
                self.ledger.counts.hits_ready += 1;
                self.ledger.counts.silent_hits += 1;
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
    fn pass(&mut self, now: Nanos, block: Block, kind: Kind, space: &dyn BlockMap, backend: &mut impl Backend) -> u32 {
        self.ledger.add(now, block, Step::Fetched { prefetch: false });
        self.ledger.counts.bypass_fetches += 1;
        self.blocks[block.index()] = BlockState::passing();
        self.outstanding[self.disk_of[block.index()].index()] += 1;
        self.requests.add_to_order(now, block, kind, space, &self.disk_of, backend)
    }

    /// Handles the arrival of a block that is not stored. Requests that the policy has seen keep waiting, because the
    /// policy still has to fetch the block.
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
