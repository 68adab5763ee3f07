//! One cache level under one policy.
//!
//! Invariants, kept after every call (and asserted where they could be broken by a policy): resident and in-flight
//! blocks together never exceed the frames; a block is fetched only while absent; a victim is resident and not
//! pinned; a victim is unavailable from the moment its fetch is issued, the fetched block available when it ends.
//!
//! There is one way to ask: [`Level::request`]. Policies that are asked about whole requests see each request, and its
//! blocks are handed over as they arrive. Others follow one process block by block: they hear of misses only, and their
//! process takes the block when its processor is free ([`Level::take`]); until then the block is pinned.
//!
//! Cost: constant per call beside the policy's. Memory: 5 bytes a block of the universe.

mod bypass;
mod check;
mod clusters;
mod dirty;
mod ledger;
mod one;
mod orders;
mod requests;
mod waiting;

use headstart_policy::{BlockState, Event, Fetch, Policy, Space, View};
use headstart_types::{Block, Disk, Nanos, Position};
use prefetch_index::prefetch_index;

pub(crate) use check::holds;
#[cfg(feature = "sabotage")]
pub use check::Sabotage;
pub use clusters::{Clusters, Leaving};
pub use requests::{Ask, Looked};

use crate::Counts;
use dirty::Dirty;
use ledger::Ledger;
use one::Held;
use requests::Requests;

/// What is kept about fewer blocks than this, some 40 bytes each, stays in a processor's second cache by itself.
const WARM_BLOCKS_MIN: usize = 1 << 14;

/// A cache level. Calls that may reach the policy are given the space in which it may name blocks by their places.
pub struct Level {
    policy: Box<dyn Policy>,
    /// The policy's `asks`.
    asks: bool,
    /// Fetches that lie one after another leave together.
    gathers: bool,
    blocks: Vec<BlockState>,
    disk_of: Vec<Disk>,
    /// By disk: blocks issued and not ended.
    outstanding: Vec<u32>,
    frames: u32,
    free: u32,
    cursor: Position,
    /// Whether anything has happened since the last decision.
    changed: bool,
    /// The policy's `wake_at`, as of its last decision.
    wake_at: Option<Nanos>,
    /// The last instant at which fetches were issued, and of what: a reference at that instant is a miss.
    fresh_at: Nanos,
    fresh: Vec<Block>,
    fetches: Vec<Fetch>,
    /// Blocks that are waited for in order to be written: no fetch is needed.
    allocating: Vec<Block>,
    dirty: Dirty,
    /// Where blocks that are written one after another leave together.
    clusters: Option<Box<Clusters>>,
    /// What the only process of a level that is not asked waits for, or has not taken.
    held: Option<Held>,
    requests: Requests,
    ledger: Ledger,
    counts: Counts,
}

impl Level {
    /// A level of `frames` frames that holds `initial` under `policy`, which has been built for the same.
    ///
    /// # Panics
    /// More initial blocks than frames.
    #[must_use]
    pub fn new(policy: Box<dyn Policy>, frames: u32, initial: &[Block], disk_of: &[Disk], disks: usize) -> Self {
        let free = frames.checked_sub(initial.len() as u32).expect("the initial blocks fit");
        let mut level = Self {
            asks: policy.asks(),
            gathers: policy.asks() || policy.gathers(),
            policy,
            blocks: vec![BlockState::ABSENT; disk_of.len()],
            disk_of: disk_of.to_vec(),
            outstanding: vec![0; disks],
            frames,
            free,
            cursor: 0,
            changed: true,
            wake_at: None,
            fresh_at: Nanos::ZERO,
            fresh: Vec::new(),
            fetches: Vec::new(),
            allocating: Vec::new(),
            dirty: Dirty::default(),
            clusters: None,
            held: None,
            requests: Requests::default(),
            ledger: Ledger::default(),
            counts: Counts::default(),
        };
        level.policy.grow(disk_of.len());
        level.wake_at = level.policy.wake_at();
        level.requests.order_max = level.policy.order_max() as usize;
        level.requests.by_disk = level.policy.gathers();
        for block in initial {
            level.blocks[block.index()] = BlockState::resident();
        }
        level
    }

    /// Makes `block` known, if it has been numbered since.
    #[inline]
    fn meet(&mut self, block: Block, space: &dyn Space) {
        if block.index() >= self.blocks.len() {
            self.learn(space);
        }
    }

    /// Makes blocks known that have been numbered since.
    #[cold]
    fn learn(&mut self, space: &dyn Space) {
        let (known, blocks) = (self.blocks.len(), space.blocks());
        if blocks > known {
            self.disk_of.extend((known..blocks).map(|at| space.disk(Block(at as u32))));
            self.blocks.resize(blocks, BlockState::ABSENT);
            self.policy.grow(blocks);
        }
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
    #[inline]
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

    /// Whether `block` is cached, or waits for a frame without needing a fetch: its bytes are this level's business.
    #[must_use]
    pub fn has_to_do_with(&self, block: Block) -> bool {
        self.is_cached(block) || self.allocating.contains(&block)
    }

    /// Whether nothing is kept about `block` but what policies remember of it: it is not cached, and not waited for.
    #[must_use]
    pub fn is_unknown(&self, block: Block) -> bool {
        !self.has_to_do_with(block) && self.requests.waiting.of(block).next().is_none()
    }

    /// State of a block; one that has not been met is absent.
    #[must_use]
    pub fn state(&self, block: Block) -> BlockState {
        self.blocks.get(block.index()).copied().unwrap_or(BlockState::ABSENT)
    }

    /// Whether [`Level::decide`] could decide anything.
    #[inline]
    #[must_use]
    pub fn wants_to_decide(&self) -> bool {
        self.changed && self.policy.decides(&self.outstanding)
    }

    /// A time at which the policy wants to decide though nothing may happen then.
    #[inline]
    #[must_use]
    pub fn wake_at(&self) -> Option<Nanos> {
        self.wake_at
    }

    /// When the first dirty block is due.
    #[inline]
    #[must_use]
    pub fn flush_at(&self) -> Option<Nanos> {
        self.dirty.due()
    }

    /// When the first dirty block is due or, after `now`, the policy wants to decide though nothing may happen.
    #[inline(always)]
    #[must_use]
    pub fn next_wish(&self, now: Nanos) -> Option<Nanos> {
        let wake = self.wake_at.filter(|at| *at > now);
        match (self.dirty.due(), wake) {
            (None, wake) => wake,
            (Some(flush), wake) => Some(wake.map_or(flush, |wake| wake.min(flush))),
        }
    }

    /// Blocks that are dirty.
    #[must_use]
    pub fn dirty_blocks(&self) -> usize {
        self.dirty.len()
    }

    #[inline]
    fn tell(&mut self, now: Nanos, event: Event, space: &dyn Space) {
        let view = View {
            cursor: self.cursor,
            free: self.free,
            blocks: &self.blocks,
            outstanding: &self.outstanding,
            disk_of: &self.disk_of,
            space,
            asked: &self.requests.asked,
            found: &self.requests.found,
        };
        self.policy.on(now, event, &view, &mut self.fetches);
    }

    /// Brings what is kept about `blocks`, soon to be referenced, into the processor's cache: see [`Policy::warm`].
    #[inline]
    pub fn warm(&mut self, blocks: &[Block], space: &impl Space) {
        if space.blocks() > self.blocks.len() {
            self.learn(space);
        }
        if self.blocks.len() < WARM_BLOCKS_MIN {
            return;
        }
        blocks.iter().for_each(|block| prefetch_index(&self.blocks, block.index()));
        for block in blocks.iter().filter(|block| self.blocks[block.index()].is_absent()) {
            prefetch_index(&self.disk_of, block.index());
            space.prefetch(*block);
        }
        self.policy.warm(blocks);
    }

    /// Step (1): the fetch of `block` has ended after `service` on its disk; `None` where it was only allocated.
    #[inline]
    pub fn arrived(&mut self, now: Nanos, block: Block, service: Option<Nanos>, space: &dyn Space) {
        let disk = self.disk_of[block.index()];
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
        self.tell(now, Event::Arrived { block, disk, service }, space);
        self.hold_out(block);
        if !self.requests.is_empty() {
            self.hand_over(now, block, space);
        }
    }

    /// Step (1): a write of `block` has ended.
    #[inline]
    pub fn written(&mut self, block: Block) {
        self.outstanding[self.disk_of[block.index()].index()] -= 1;
        self.changed = true;
    }

    /// Whether any requests have been done since [`Level::take_done`].
    #[inline]
    #[must_use]
    pub fn has_done(&self) -> bool {
        !self.requests.done.is_empty()
    }

    /// Gives the requests that had to wait and have been done since it was last asked, in order.
    pub fn take_done(&mut self, into: &mut Vec<u64>) {
        into.append(&mut self.requests.done);
    }

    /// From now on a prefetch does not leave in the order of the demand that it follows, but in one of its own.
    pub fn separate_prefetches(&mut self) {
        self.requests.separate = true;
    }

    /// The level stands on another one, to which a request is of one file: from now on orders are gathered by files, not by
    /// places on disks.
    pub fn order_by_files(&mut self) {
        self.requests.by_disk = false;
    }

    /// Blocks are objects whose numbers are no places: each is fetched by a request of its own.
    pub fn order_singly(&mut self) {
        self.requests.order_max = 1;
    }

    /// From now on written blocks that follow one another leave in clusters.
    pub fn gather_writes(&mut self, clusters: Clusters) {
        self.clusters = Some(Box::new(clusters));
    }

    /// From now on [`Level::take_evicted`] tells what has been evicted.
    pub fn note_evictions(&mut self) {
        self.requests.evicted = Some(Vec::new());
    }

    /// Gives the blocks that have been evicted since it was last asked, in order.
    pub fn take_evicted(&mut self, into: &mut Vec<Block>) {
        if let Some(evicted) = &mut self.requests.evicted {
            into.append(evicted);
        }
    }

    /// The reference of `block` that the policy expects at `position` will not come, or comes out of turn.
    pub fn skip(&mut self, now: Nanos, position: Position, block: Block, space: &dyn Space) {
        self.meet(block, space);
        self.changed = true;
        self.tell(now, Event::Skipped { position, block }, space);
    }

    /// From now on the level has `more` frames more. Its policy has been built for as many as there will ever be.
    pub fn grow(&mut self, more: u32) {
        self.frames += more;
        self.free += more;
        self.changed = true;
        self.policy.given_frames();
    }

    /// The prefetch of `block`, on its way, was not needed and is not one: it is no longer counted.
    pub fn take_back(&mut self, block: Block) {
        let state = self.blocks[block.index()];
        if state.is_in_flight() && state.is_unused_prefetch() {
            self.counts.prefetches -= 1;
            self.blocks[block.index()] = state.used();
        }
    }

    /// A coordinator wants `block` out first, whatever the policy would choose. Nothing where it is not resident.
    pub fn make_first_victim(&mut self, block: Block) {
        if self.state(block).is_evictable() {
            self.policy.first_victim(block);
        }
    }

    /// A coordinator takes `block` out of the cache. Nothing where it is not resident, or dirty.
    pub fn take_out(&mut self, block: Block) {
        let state = self.state(block);
        if !state.is_evictable() || self.dirty.contains(block) {
            return;
        }
        self.blocks[block.index()] = BlockState::ABSENT;
        self.free += 1;
        self.changed = true;
        self.counts.evictions += 1;
        self.ledger.evicted(block, state.is_unused_prefetch(), false, &mut self.counts);
        self.policy.removed(block);
    }
}
