//! Carries out a level's decisions: fetches, evictions, writes.

use std::ops::Range;

use headstart_policy::{BlockMap, BlockState, Event, Fetch};
use headstart_types::{Block, Nanos};

use super::ledger::Step;
use super::Level;
use crate::backend::{Backend, IoRequest, Kind};

impl Level {
    /// Step (2): lets the policy decide. `at_hand` is the block that a process is about to reference at this instant:
    /// its fetch is a demand fetch, as is that of a block that is waited for. Returns the number of driver requests.
    #[inline(always)]
    pub fn decide(
        &mut self,
        now: Nanos,
        at_hand: Option<Block>,
        space: &dyn BlockMap,
        backend: &mut impl Backend,
    ) -> u32 {
        self.changed = false;
        self.tell(now, Event::Decide, space);
        self.issue(now, at_hand, space, backend)
    }

    /// Step (3), after a write's references have been served. With a `delay` of `None` its blocks go to their disk at
    /// once as one order, whose end the process waits for. Otherwise they become dirty and are written when `delay` is
    /// over, when they are evicted, or with their cluster ([`Level::gather_writes`]); each block comes with the number
    /// of bytes written (`None`: all). A block whose frame another process has taken since it was delivered is written
    /// at once. Returns the number of driver requests.
    pub fn write(
        &mut self,
        now: Nanos,
        blocks: &[(Block, Option<u32>)],
        delay: Option<Nanos>,
        space: &dyn BlockMap,
        backend: &mut impl Backend,
    ) -> u32 {
        let (mut issued, mut leaving) = (0, Vec::new());
        for (block, bytes) in blocks.iter().copied() {
            match delay {
                Some(delay) if self.blocks[block.index()].is_resident() => {
                    self.dirty.mark(block, now + delay);
                    issued += self.gather(now, block, bytes, space, backend);
                }
                _ => leaving.push(block),
            }
        }
        let orders = leaving.chunks(self.requests.order_max);
        issued + orders.map(|blocks| self.write_out(now, blocks, backend)).sum::<u32>()
    }

    /// Adds a dirty block to a cluster and writes out what leaves the cluster.
    fn gather(
        &mut self,
        now: Nanos,
        block: Block,
        bytes: Option<u32>,
        space: &dyn BlockMap,
        backend: &mut impl Backend,
    ) -> u32 {
        let Some(clusters) = &mut self.clusters else { return 0 };
        let (file, index) = space.place(block);
        let leaving = clusters.written(file, index, bytes, |most| space.contiguous(file, index, most));
        leaving.into_iter().map(|run| self.write_run(now, file, run, space, backend)).sum()
    }

    /// Writes the dirty blocks of a run: one order per contiguous part.
    fn write_run(
        &mut self,
        now: Nanos,
        file: u32,
        run: Range<u64>,
        space: &dyn BlockMap,
        backend: &mut impl Backend,
    ) -> u32 {
        let mut issued = 0;
        let mut part = Vec::new();
        for index in run {
            match space.known(file, index).filter(|block| self.dirty.clean(*block)) {
                Some(block) => part.push(block),
                None => issued += self.write_out(now, &std::mem::take(&mut part), backend),
            }
        }
        issued + self.write_out(now, &part, backend)
    }

    /// Step (2): writes the blocks that are due. Returns the number of driver requests.
    #[inline(never)]
    pub fn flush(&mut self, now: Nanos, backend: &mut impl Backend) -> u32 {
        let mut issued = 0;
        while let Some(block) = self.dirty.take_due(now) {
            issued += self.write_out(now, &[block], backend);
        }
        issued
    }

    /// Issues one order for `blocks`, which may be empty.
    fn write_out(&mut self, now: Nanos, blocks: &[Block], backend: &mut impl Backend) -> u32 {
        let Some(first) = blocks.first() else { return 0 };
        for block in blocks {
            self.outstanding[self.disk_of[block.index()].index()] += 1;
        }
        self.ledger.counts.blocks_written += blocks.len() as u64;
        backend.issue(now, IoRequest { blocks, disk: self.disk_of[first.index()], kind: Kind::Write })
    }

    /// Whether the fetch of `block` was issued at this instant.
    #[inline]
    pub(super) fn is_fresh(&self, now: Nanos, block: Block) -> bool {
        self.fresh_at == now && self.blocks[block.index()].is_fresh()
    }

    /// Handles a request of a resident block: if it is an unused prefetch, that was useful.
    #[inline]
    pub(super) fn first_use(&mut self, now: Nanos, block: Block, state: BlockState) {
        if state.is_unused_prefetch() {
            self.ledger.add(now, block, Step::Used { late: false });
        }
    }

    /// Handles the overwriting of `block`: if it is a prefetch that has not been read, that was useless.
    pub(super) fn overwrite(&mut self, now: Nanos, block: Block) {
        let state = self.blocks[block.index()];
        if !state.is_unused_prefetch() || (state.is_in_flight() && self.is_fresh(now, block)) {
            return;
        }
        self.blocks[block.index()] = state.used();
        if state.is_resident() {
            self.ledger.add(now, block, Step::Evicted { unused: true, for_prefetch: false });
        }
    }

    /// Carries out the policy's decisions. Returns the number of driver requests.
    #[inline]
    pub(crate) fn issue(
        &mut self,
        now: Nanos,
        at_hand: Option<Block>,
        space: &dyn BlockMap,
        backend: &mut impl Backend,
    ) -> u32 {
        self.wake_at = self.policy.wake_at();
        if self.fresh_at != now {
            self.fresh_at = now;
            for block in self.fresh.drain(..) {
                self.blocks[block.index()] = self.blocks[block.index()].fresh(false);
            }
        }
        if self.fetches.is_empty() {
            return 0;
        }
        let fetches = std::mem::take(&mut self.fetches);
        if self.takes_requests {
            self.register_blocks(space);
        }
        let mut issued = 0;
        for Fetch { block, victim } in &fetches {
            issued += self.fetch(now, *block, *victim, at_hand, space, backend);
        }
        if self.gathers {
            issued += self.requests.close_order(now, &self.disk_of, backend);
        }
        self.fetches = fetches;
        self.fetches.clear();
        issued
    }

    #[inline]
    fn fetch(
        &mut self,
        now: Nanos,
        block: Block,
        victim: Option<Block>,
        at_hand: Option<Block>,
        space: &dyn BlockMap,
        backend: &mut impl Backend,
    ) -> u32 {
        let allocate = !self.allocating.is_empty() && self.stop_allocating(block);
        let waited_for = at_hand == Some(block) || self.is_held(block) || self.requests.is_waited_for(block);
        let prefetch = !allocate && !waited_for;
        let mut issued = self.take_frame(now, victim, prefetch, backend);
        let state = &mut self.blocks[block.index()];
        assert!(state.is_absent(), "{block:?} is fetched though it is resident or in flight");
        if state.is_passing() {
            // In flight already for a request that bypassed the policy, and counted: from now on it will be stored.
            *state = BlockState::in_flight(prefetch).used_silently();
            return issued;
        }
        // A block that a process waits for stays pinned.
        *state = BlockState::in_flight(prefetch).pinned(state.is_pinned()).fresh(!allocate);
        if !allocate {
            self.fresh.push(block);
            self.ledger.add(now, block, Step::Fetched { prefetch });
        }
        let disk = self.disk_of[block.index()];
        self.outstanding[disk.index()] += 1;
        let kind = match (allocate, prefetch) {
            (true, _) => Kind::Allocate,
            (false, true) => Kind::Prefetch,
            (false, false) => Kind::Demand,
        };
        if self.gathers && !allocate {
            issued += self.requests.add_to_order(now, block, kind, space, &self.disk_of, backend);
        } else {
            issued += backend.issue(now, IoRequest { blocks: &[block], disk, kind });
        }
        issued
    }

    /// Whether `block` will be overwritten as a whole and so needs no fetch; stops tracking that.
    fn stop_allocating(&mut self, block: Block) -> bool {
        match self.allocating.iter().position(|other| *other == block) {
            Some(at) => {
                self.allocating.swap_remove(at);
                true
            }
            None => false,
        }
    }

    /// Makes room for a fetch; a dirty victim is written. Returns the number of driver requests.
    #[inline]
    fn take_frame(&mut self, now: Nanos, victim: Option<Block>, prefetch: bool, backend: &mut impl Backend) -> u32 {
        let Some(victim) = victim else {
            assert!(self.free > 0, "a fetch without a victim needs a free frame");
            self.free -= 1;
            return 0;
        };
        assert_eq!(self.free, 0, "free frames go before victims");
        let state = &mut self.blocks[victim.index()];
        assert!(state.is_evictable(), "{victim:?} is no victim: absent, in flight or pinned");
        let unused = state.is_unused_prefetch();
        *state = BlockState::ABSENT;
        self.ledger.counts.evictions += 1;
        self.ledger.add(now, victim, Step::Evicted { unused, for_prefetch: prefetch });
        self.requests.note_evicted(victim);
        if self.dirty.clean(victim) {
            return self.write_out(now, &[victim], backend);
        }
        0
    }
}
