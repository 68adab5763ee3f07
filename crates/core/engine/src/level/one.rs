//! Requests of one process under a policy that does not ask: one block at a time, which the process takes when its
//! processor is free. Most runs of hinted policies and of demand fetching are of this kind.

use headstart_policy::readahead::Found;
use headstart_policy::{BlockMap, Event};
use headstart_types::{Block, Nanos, Outcome, Position};

use super::{Ask, Level, LookupCounts};
use crate::backend::Backend;

/// A block that a process waits for, or that is there and not taken yet.
#[derive(Debug, Clone, Copy)]
pub(super) struct Held {
    id: u64,
    pub block: Block,
    position: Position,
    outcome: Outcome,
    compute: Nanos,
    since: Nanos,
}

impl Level {
    /// [`Level::request`] for one block.
    #[inline(always)]
    pub(super) fn request_one(
        &mut self,
        now: Nanos,
        ask: &Ask<'_>,
        space: &dyn BlockMap,
        backend: &mut impl Backend,
    ) -> LookupCounts {
        let Ask { position, compute, .. } = *ask;
        let block = ask.blocks[0];
        self.register_block(block, space);
        if ask.write {
            self.ledger.counts.writes += 1;
            self.overwrite(now, block);
        }
        if let Some(decided) = self.hit(now, (position, block), compute, space) {
            let issued = if decided { self.issue(now, None, space, backend) } else { 0 };
            return LookupCounts { issued, hits_ready: 1, ..LookupCounts::default() };
        }
        self.ledger.counts.references += 1;
        let state = self.blocks[block.index()];
        let outcome = self.count_wait(now, block, ask.write, state.is_in_flight(), false);
        self.held = Some(Held { id: ask.id, block, position, outcome, compute, since: now });
        let mut issued = 0;
        if state.is_absent() {
            self.requests.asked.push(block);
            self.requests.found.push(Found::Absent);
            self.tell(now, Event::Asked { asked: ask.asked, position, write: ask.write }, space);
            self.requests.asked.clear();
            self.requests.found.clear();
            issued = self.issue(now, None, space, backend);
        }
        self.blocks[block.index()] = self.blocks[block.index()].used().pinned(true);
        let unready = u32::from(outcome == Outcome::HitUnready);
        LookupCounts { issued, hits_unready: unready, misses: 1 - unready, ..LookupCounts::default() }
    }

    /// Whether a reference can only be a plain hit: no block is dirty, and the policy does not ask and has no wake-up
    /// time.
    #[inline]
    pub(crate) fn is_quiet(&self) -> bool {
        !self.takes_requests && self.wake_at.is_none() && self.dirty.due().is_none()
    }

    /// References `block` at `position` if it is resident. Returns whether the policy has decided on fetches, which the
    /// caller must issue; `None` if the block is not resident.
    #[inline(always)]
    pub(crate) fn hit(
        &mut self,
        now: Nanos,
        (position, block): (Position, Block),
        compute: Nanos,
        space: &dyn BlockMap,
    ) -> Option<bool> {
        let state = self.blocks.get(block.index()).copied().filter(|state| state.is_resident())?;
        self.ledger.counts.references += 1;
        self.ledger.counts.hits_ready += 1;
        self.first_use(now, block, state);
        self.serve(now, (position, block), Outcome::HitReady, compute, space);
        Some(!self.fetches.is_empty())
    }

    /// Handles the arrival of a block: if it is waited for, its request is done, and it stays pinned until it is taken.
    #[inline]
    pub(super) fn hold_out(&mut self, block: Block) {
        if let Some(held) = self.held.filter(|held| held.block == block) {
            self.requests.done.push(held.id);
        }
    }

    /// Whether a process waits for `block`.
    #[inline]
    pub(super) fn is_held(&self, block: Block) -> bool {
        self.held.is_some_and(|held| held.block == block)
    }

    /// Step (3): a process that has waited takes its block, unless it was delivered on arrival. Returns the number of
    /// driver requests.
    #[inline]
    pub fn take(&mut self, now: Nanos, space: &dyn BlockMap, backend: &mut impl Backend) -> u32 {
        let Some(Held { block, position, outcome, compute, since, .. }) = self.held.take() else { return 0 };
        if outcome == Outcome::HitUnready {
            self.ledger.counts.hit_wait_ns += u128::from((now - since).0);
        }
        self.serve(now, (position, block), outcome, compute, space);
        if self.fetches.is_empty() {
            return 0;
        }
        self.issue(now, None, space, backend)
    }

    #[inline(always)]
    fn serve(
        &mut self,
        now: Nanos,
        (position, block): (Position, Block),
        outcome: Outcome,
        compute: Nanos,
        space: &dyn BlockMap,
    ) {
        let state = &mut self.blocks[block.index()];
        debug_assert!(state.is_resident(), "{block:?} is served while absent");
        *state = state.used().pinned(false);
        self.cursor = position.saturating_add(1);
        self.changed = true;
        self.tell(now, Event::Served { position, block, outcome, compute, process: 0 }, space);
    }
}
