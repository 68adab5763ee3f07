//! One cache level under one policy.
//!
//! Invariants, kept after every call (and asserted where they could be broken by a policy): resident and in-flight
//! blocks together never exceed the frames; a block is fetched only while absent; a victim is resident and not
//! pinned; a victim is unavailable from the moment its fetch is issued, the fetched block available when it ends.
//! Cost: constant per call beside the policy's. Memory: 5 bytes a block of the universe.

use std::rc::Rc;

use headstart_policy::{BlockState, Event, Fetch, NoSpace, Policy, Space, View};
use headstart_types::{Block, Disk, Nanos, Outcome, Position};

use crate::dirty::Dirty;
use crate::ledger::Ledger;
use crate::requests::Requests;
use crate::Counts;

/// What a backend is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Fetch the block: a process waits for it.
    Demand,
    /// Fetch the block: nobody waits for it.
    Prefetch,
    /// Nothing but say at once that the block has arrived: it is going to be written whole.
    Allocate,
    /// Write the block.
    Write,
}

/// An order to a backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Order<'a> {
    /// Which blocks: at least one; several follow one another in one file, and are one request.
    pub blocks: &'a [Block],
    /// Where the first is.
    pub disk: Disk,
    /// What to do.
    pub kind: Kind,
}

/// What takes orders: simulated drives, or real ones.
pub trait Backend {
    /// Queues an order. When it has been carried out the host calls [`Level::arrived`] for each of its blocks, or
    /// [`Level::written`] for a write.
    fn issue(&mut self, now: Nanos, order: Order<'_>);

    /// Reads what is kept about a block that may soon be fetched, and returns any number made of it: see
    /// [`Level::warm`].
    fn warm(&self, _block: Block) -> u32 {
        0
    }
}

/// What came of a reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// The block was resident and has been served.
    Served,
    /// The process waits until the block arrives; then the host calls [`Level::resume`].
    Waits(Outcome),
}

/// A cache level. A host whose threads share it takes a space that they can share.
pub struct Level<S = Rc<dyn Space>> {
    pub(crate) policy: Box<dyn Policy>,
    pub(crate) space: S,
    /// The policy's `asks`.
    asks: bool,
    pub(crate) blocks: Vec<BlockState>,
    pub(crate) disk_of: Vec<Disk>,
    /// By disk: blocks issued and not ended.
    pub(crate) outstanding: Vec<u32>,
    frames: u32,
    pub(crate) free: u32,
    pub(crate) cursor: Position,
    /// Whether anything has happened since the last decision.
    pub(crate) changed: bool,
    /// The policy's `decides` and `wake_at`, as of its last decision.
    decides: bool,
    wake_at: Option<Nanos>,
    /// The last instant at which fetches were issued, and of what: a reference at that instant is a miss.
    fresh_at: Nanos,
    pub(crate) fresh: Vec<Block>,
    pub(crate) fetches: Vec<Fetch>,
    /// Blocks that are waited for in order to be written: no fetch is needed.
    pub(crate) allocating: Vec<Block>,
    pub(crate) dirty: Dirty,
    pub(crate) requests: Requests,
    pub(crate) ledger: Ledger,
    pub(crate) counts: Counts,
}

impl Level {
    /// A level of `frames` frames that holds `initial` under `policy`, which has been built for the same.
    ///
    /// # Panics
    /// More initial blocks than frames.
    #[must_use]
    pub fn new(policy: Box<dyn Policy>, frames: u32, initial: &[Block], disk_of: &[Disk], disks: usize) -> Self {
        Self::over(policy, frames, initial, disk_of, disks, Rc::new(NoSpace))
    }

    /// The same level, whose policy may name blocks by their places.
    #[must_use]
    pub fn in_space(mut self, space: Rc<dyn Space>) -> Self {
        self.space = space;
        self.learn();
        self
    }
}

impl<S: Space> Level<S> {
    /// A level as [`Level::new`] makes it, whose policy may name blocks by their places in `space`.
    ///
    /// # Panics
    /// More initial blocks than frames.
    #[must_use]
    pub fn over(
        policy: Box<dyn Policy>,
        frames: u32,
        initial: &[Block],
        disk_of: &[Disk],
        disks: usize,
        space: S,
    ) -> Self {
        let free = frames.checked_sub(initial.len() as u32).expect("the initial blocks fit");
        let mut level = Self {
            asks: policy.asks(),
            policy,
            space,
            blocks: Vec::new(),
            disk_of: Vec::new(),
            outstanding: vec![0; disks],
            frames,
            free,
            cursor: 0,
            changed: true,
            decides: false,
            wake_at: None,
            fresh_at: Nanos::ZERO,
            fresh: Vec::new(),
            fetches: Vec::new(),
            allocating: Vec::new(),
            dirty: Dirty::default(),
            requests: Requests::default(),
            ledger: Ledger::default(),
            counts: Counts::default(),
        };
        level.grow(disk_of);
        level.decides = level.policy.decides();
        level.wake_at = level.policy.wake_at();
        level.requests.order_max = level.policy.order_max() as usize;
        for block in initial {
            level.blocks[block.index()] = BlockState::resident();
        }
        level.learn();
        level
    }

    /// Makes `block` known, if it has been numbered since.
    #[inline]
    pub fn meet(&mut self, block: Block) {
        if block.index() >= self.blocks.len() {
            self.learn();
        }
    }

    /// Makes blocks known that have been numbered since.
    pub(crate) fn learn(&mut self) {
        let (known, blocks) = (self.blocks.len(), self.space.blocks());
        if blocks > known {
            self.disk_of.extend((known..blocks).map(|at| self.space.disk(Block(at as u32))));
            self.blocks.resize(blocks, BlockState::ABSENT);
            self.policy.grow(blocks);
        }
    }

    /// Makes further blocks known: `disk_of` holds the disk of each block, those known before included.
    pub fn grow(&mut self, disk_of: &[Disk]) {
        self.blocks.resize(disk_of.len(), BlockState::ABSENT);
        self.disk_of.extend_from_slice(&disk_of[self.disk_of.len()..]);
        self.policy.grow(disk_of.len());
    }

    /// What has been counted.
    #[must_use]
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Position of the next reference not yet served.
    #[must_use]
    pub fn cursor(&self) -> Position {
        self.cursor
    }

    /// Frames, with or without a block.
    #[must_use]
    pub fn frames(&self) -> u32 {
        self.frames
    }

    /// Frames without a block.
    #[must_use]
    pub fn free_frames(&self) -> u32 {
        self.free
    }

    /// Whether the policy is asked about requests.
    #[must_use]
    pub fn asks(&self) -> bool {
        self.asks
    }

    /// Whether `block` is resident or on its way, into the cache or past it: what a coordinator sees. The policy does
    /// not see what passes.
    #[must_use]
    pub fn is_cached(&self, block: Block) -> bool {
        self.blocks.get(block.index()).is_some_and(|state| !state.is_absent() || state.is_passing())
    }

    /// State of a block.
    #[must_use]
    pub fn state(&self, block: Block) -> BlockState {
        self.blocks[block.index()]
    }

    /// Whether [`Level::decide`] could decide anything.
    #[inline]
    #[must_use]
    pub fn wants_to_decide(&self) -> bool {
        self.changed && self.decides
    }

    /// A time at which the policy wants to decide though nothing may happen then.
    #[inline]
    #[must_use]
    pub fn wake_at(&self) -> Option<Nanos> {
        self.wake_at
    }

    #[inline]
    pub(crate) fn tell(&mut self, now: Nanos, event: Event) {
        let view = View {
            cursor: self.cursor,
            free: self.free,
            blocks: &self.blocks,
            outstanding: &self.outstanding,
            disk_of: &self.disk_of,
            space: &self.space,
            found: &self.requests.found,
        };
        self.policy.on(now, event, &view, &mut self.fetches);
    }

    /// Reads what is kept about `blocks`, soon to be referenced: see [`Policy::warm`].
    #[inline]
    pub fn warm(&self, blocks: &[Block], backend: &impl Backend) {
        let absent = blocks.iter().filter(|block| self.blocks[block.index()].is_absent());
        std::hint::black_box(absent.fold(0, |sum, block| sum ^ self.disk_of[block.index()].0 ^ backend.warm(*block)));
        self.policy.warm(blocks);
    }

    /// Step (1): the fetch of `block` has ended after `service` on `disk`; `None` where it was only allocated.
    #[inline]
    pub fn arrived(&mut self, now: Nanos, block: Block, disk: Disk, service: Option<Nanos>) {
        self.outstanding[disk.index()] -= 1;
        self.changed = true;
        if self.blocks[block.index()].is_passing() {
            return self.passed(now, block);
        }
        let state = self.blocks[block.index()].arrived();
        self.blocks[block.index()] = state;
        if state.is_unused_prefetch() {
            self.ledger.arrived(now, block, service);
        }
        self.tell(now, Event::Arrived { block, disk, service });
        if !self.requests.is_empty() {
            self.hand_over(now, block);
        }
    }

    /// Step (2): lets the policy decide. `at_hand` is the block that a process is about to reference at this
    /// instant, or already waits for: a fetch of it is a demand fetch. Returns how many requests were issued.
    #[inline]
    pub fn decide(&mut self, now: Nanos, at_hand: Option<Block>, backend: &mut impl Backend) -> u32 {
        self.changed = false;
        self.tell(now, Event::Decide);
        self.issue(now, at_hand, backend)
    }

    /// Step (3): a process is at reference `position` of `block`; `compute` is the think time before it.
    /// Returns what came of it, and how many requests were issued. The reference of a `write` finds its block as a
    /// read does, but needs no fetch where it is absent; once it is served the host calls [`Level::write`].
    #[inline]
    #[allow(clippy::too_many_arguments)] // One reference, as the process sees it.
    pub fn reference(
        &mut self,
        now: Nanos,
        position: Position,
        block: Block,
        write: bool,
        compute: Nanos,
        backend: &mut impl Backend,
    ) -> (Access, u32) {
        self.counts.references += 1;
        self.counts.writes += u64::from(write);
        let state = self.blocks[block.index()];
        if state.is_resident() {
            self.counts.hits_ready += 1;
            self.first_use(now, block, state);
            let issued = self.serve(now, position, block, Outcome::HitReady, compute, backend);
            return (Access::Served, issued);
        }
        let mut issued = 0;
        let outcome = if state.is_in_flight() && !self.is_fresh(now, block) {
            self.counts.hits_unready += 1;
            self.counts.prefetches_used += u64::from(state.is_unused_prefetch());
            self.counts.prefetches_late += u64::from(state.is_unused_prefetch());
            Outcome::HitUnready
        } else {
            self.counts.misses += 1;
            if state.is_absent() {
                self.ledger.missed(block, &mut self.counts);
                if write {
                    self.counts.write_misses += 1;
                    self.allocating.push(block);
                }
                self.tell(now, Event::Miss { position, block });
                issued = self.issue(now, Some(block), backend);
            } else if state.is_unused_prefetch() {
                // Fetched at this very instant, before the process came here without thinking: on demand after all.
                self.counts.prefetches -= 1;
                self.counts.demand_fetches += 1;
            }
            Outcome::Miss
        };
        self.blocks[block.index()] = self.blocks[block.index()].used().pinned(true);
        (Access::Waits(outcome), issued)
    }

    /// Step (3): the block that a process waited for since `since` has arrived and is handed over.
    /// Returns how many requests were issued.
    #[inline]
    #[allow(clippy::too_many_arguments)] // The outcome and its start belong to the process, not to the level.
    pub fn resume(
        &mut self,
        now: Nanos,
        position: Position,
        block: Block,
        outcome: Outcome,
        since: Nanos,
        compute: Nanos,
        backend: &mut impl Backend,
    ) -> u32 {
        if outcome == Outcome::HitUnready {
            self.counts.hit_wait_ns += u128::from((now - since).0);
        }
        self.serve(now, position, block, outcome, compute, backend)
    }

    /// Step (3), after a write's reference has been served: the block goes to its disk at once (`delay` is `None`,
    /// and one request is issued, for whose end the process waits), or is dirty and goes there when `delay` is over
    /// or when it is evicted. It goes there at once too where another process has taken its frame since it was handed
    /// over. Returns how many requests were issued.
    pub fn write(&mut self, now: Nanos, block: Block, delay: Option<Nanos>, backend: &mut impl Backend) -> u32 {
        match delay {
            Some(delay) if self.blocks[block.index()].is_resident() => {
                self.dirty.mark(block, now + delay);
                0
            }
            _ => {
                self.write_out(now, block, backend);
                1
            }
        }
    }

    /// When the first dirty block is due.
    #[inline]
    #[must_use]
    pub fn flush_at(&self) -> Option<Nanos> {
        self.dirty.due()
    }

    /// Step (2): writes what is due. Returns how many requests were issued.
    pub fn flush(&mut self, now: Nanos, backend: &mut impl Backend) -> u32 {
        let mut issued = 0;
        while let Some(block) = self.dirty.take_due(now) {
            self.write_out(now, block, backend);
            issued += 1;
        }
        issued
    }

    /// Blocks that are dirty.
    #[must_use]
    pub fn dirty_blocks(&self) -> usize {
        self.dirty.len()
    }

    /// Step (1): a write has ended on `disk`.
    pub fn written(&mut self, disk: Disk) {
        self.outstanding[disk.index()] -= 1;
        self.changed = true;
    }

    pub(crate) fn write_out(&mut self, now: Nanos, block: Block, backend: &mut impl Backend) {
        let disk = self.disk_of[block.index()];
        self.outstanding[disk.index()] += 1;
        self.counts.blocks_written += 1;
        backend.issue(now, Order { blocks: &[block], disk, kind: Kind::Write });
    }

    #[inline]
    fn serve(
        &mut self,
        now: Nanos,
        position: Position,
        block: Block,
        outcome: Outcome,
        compute: Nanos,
        backend: &mut impl Backend,
    ) -> u32 {
        let state = &mut self.blocks[block.index()];
        debug_assert!(state.is_resident(), "{block:?} is served while absent");
        *state = state.used().pinned(false);
        self.cursor = position + 1;
        self.changed = true;
        self.tell(now, Event::Served { position, block, outcome, compute, process: 0 });
        if self.fetches.is_empty() {
            return 0;
        }
        self.issue(now, None, backend)
    }

    /// Whether the fetch of `block` has been issued at this very instant.
    #[inline]
    pub(crate) fn is_fresh(&self, now: Nanos, block: Block) -> bool {
        self.fresh_at == now && self.fresh.contains(&block)
    }

    /// A resident block is asked for: where it is a prefetch, that has paid.
    #[inline]
    pub(crate) fn first_use(&mut self, now: Nanos, block: Block, state: BlockState) {
        if state.is_unused_prefetch() {
            self.counts.prefetches_used += 1;
            self.ledger.used(now, block, &mut self.counts);
        }
    }

    /// Carries out what the policy has decided. Returns how many requests were issued.
    #[inline]
    pub(crate) fn issue(&mut self, now: Nanos, at_hand: Option<Block>, backend: &mut impl Backend) -> u32 {
        self.decides = self.policy.decides();
        self.wake_at = self.policy.wake_at();
        let fetches = std::mem::take(&mut self.fetches);
        if self.fresh_at != now {
            self.fresh_at = now;
            self.fresh.clear();
        }
        let mut issued = 0;
        if self.asks && !fetches.is_empty() {
            self.learn();
        }
        for Fetch { block, victim } in &fetches {
            let allocate = !self.allocating.is_empty() && self.stop_allocating(*block);
            let waited_for = at_hand == Some(*block) || self.requests.is_waited_for(*block);
            let prefetch = !allocate && !waited_for;
            issued += self.take_frame(now, *victim, prefetch, backend);
            let state = &mut self.blocks[block.index()];
            assert!(state.is_absent(), "{block:?} is fetched though it is resident or in flight");
            if state.is_passing() {
                // On its way already, for a request that bypassed the policy, and counted: from now on it is stored.
                *state = BlockState::in_flight(prefetch).used_silently();
                continue;
            }
            // A process that waits for the block keeps it pinned.
            *state = BlockState::in_flight(prefetch).pinned(state.is_pinned());
            if !allocate {
                self.fresh.push(*block);
            }
            let disk = self.disk_of[block.index()];
            self.outstanding[disk.index()] += 1;
            let kind = if allocate {
                Kind::Allocate
            } else if prefetch {
                self.counts.prefetches += 1;
                Kind::Prefetch
            } else {
                self.counts.demand_fetches += 1;
                Kind::Demand
            };
            if self.asks && !allocate {
                issued += self.requests.add_to_order(now, *block, kind, &self.space, &self.disk_of, backend);
            } else {
                issued += u32::from(!allocate);
                backend.issue(now, Order { blocks: std::slice::from_ref(block), disk, kind });
            }
        }
        if self.asks {
            issued += self.requests.close_order(now, &self.disk_of, backend);
        }
        self.fetches = fetches;
        self.fetches.clear();
        issued
    }

    /// Whether `block` is to be written whole; if so it needs no fetch, and is asked about no more.
    fn stop_allocating(&mut self, block: Block) -> bool {
        match self.allocating.iter().position(|other| *other == block) {
            Some(at) => {
                self.allocating.swap_remove(at);
                true
            }
            None => false,
        }
    }

    /// Makes room for a fetch; a dirty victim is written. Returns how many requests were issued.
    #[inline]
    fn take_frame(&mut self, now: Nanos, victim: Option<Block>, prefetch: bool, backend: &mut impl Backend) -> u32 {
        match victim {
            None => {
                assert!(self.free > 0, "a fetch without a victim needs a free frame");
                self.free -= 1;
                0
            }
            Some(victim) => {
                assert_eq!(self.free, 0, "free frames go before victims");
                let state = &mut self.blocks[victim.index()];
                assert!(state.is_evictable(), "{victim:?} is no victim: absent, in flight or pinned");
                let unused = state.is_unused_prefetch();
                *state = BlockState::ABSENT;
                self.counts.evictions += 1;
                self.ledger.evicted(victim, unused, prefetch, &mut self.counts);
                self.requests.note_evicted(victim);
                if self.dirty.clean(victim) {
                    self.write_out(now, victim, backend);
                    return 1;
                }
                0
            }
        }
    }
}
