//! One cache level under one policy.
//!
//! Invariants after every call (asserted where a policy could break them): resident and in-flight blocks together never
//! exceed the frames; a block is fetched only while absent; a victim is resident and not pinned; a victim becomes
//! unavailable when the fetch that replaces it is issued, and the fetched block available when that fetch ends.
//!
//! There is one way to request blocks: [`Level::request`]. Policies that ask for whole requests see each request, and
//! its blocks are delivered as they arrive. Other policies follow one process block by block: they see misses only, and
//! the process takes the block when its processor is free ([`Level::take`]); until then the block is pinned.
//!
//! Cost: constant per call besides that of the policy. Memory: 5 bytes per block of the universe.

mod bypass;
mod check;
mod clusters;
mod dirty;
mod ledger;
mod lookup_counts;
mod one;
mod orders;
mod requests;
mod waiting;

use headstart_policy::{BlockMap, BlockState, Event, Fetch, Policy, View};
use headstart_types::{Block, Disk, Nanos, Position};
use prefetch_index::prefetch_index;

pub(crate) use check::holds;
#[cfg(feature = "sabotage")]
pub use check::Sabotage;
pub use clusters::{Clusters, Leaving};
pub use lookup_counts::LookupCounts;
pub use requests::Ask;

use crate::Counts;
use dirty::Dirty;
use ledger::{Ledger, Step};
use one::Held;
use requests::Requests;

/// With fewer blocks than this, at some 40 bytes each, the data stays in the processor's second-level cache without
/// prefetching.
const WARM_BLOCKS_MIN: usize = 1 << 14;

/// A cache level. Calls that may reach the policy take the space in which it may name blocks by their places.
pub struct Level {
    policy: Box<dyn Policy>,
    /// Cached [`Policy::takes_requests`].
    takes_requests: bool,
    /// Whether contiguous fetches leave together.
    gathers: bool,
    blocks: Vec<BlockState>,
    disk_of: Vec<Disk>,
    /// For each disk: blocks issued and not ended.
    outstanding: Vec<u32>,
    frames: u32,
    free: u32,
    cursor: Position,
    /// Whether anything has happened since the last decision.
    changed: bool,
    /// [`Policy::wake_at`] as of the last decision.
    wake_at: Option<Nanos>,
    /// The last instant at which fetches were issued, and the blocks marked fresh: a reference at the same instant is a
    /// miss.
    fresh_at: Nanos,
    fresh: Vec<Block>,
    fetches: Vec<Fetch>,
    /// Blocks that are waited for in order to be overwritten, so they need no fetch.
    allocating: Vec<Block>,
    dirty: Dirty,
    /// Write clustering, if enabled.
    clusters: Option<Box<Clusters>>,
    /// What the only process of a level waits for, or has not taken yet; for policies that do not ask.
    held: Option<Held>,
    requests: Requests,
    ledger: Ledger,
}

impl Level {
    /// A level of `frames` frames that holds `initial` under `policy`, which was built for the same.
    ///
    /// # Panics
    /// There are more initial blocks than frames.
    #[must_use]
    pub fn new(policy: Box<dyn Policy>, frames: u32, initial: &[Block], disk_of: &[Disk], disks: usize) -> Self {
        let free = frames.checked_sub(initial.len() as u32).expect("the initial blocks fit");
        let mut level = Self {
            takes_requests: policy.takes_requests(),
            gathers: policy.takes_requests() || policy.gathers(),
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

    /// Registers `block` if it has been numbered since the last call.
    #[inline]
    fn register_block(&mut self, block: Block, space: &dyn BlockMap) {
        if block.index() >= self.blocks.len() {
            self.register_blocks(space);
        }
    }

    /// Registers all blocks that have been numbered since the last call.
    #[cold]
    fn register_blocks(&mut self, space: &dyn BlockMap) {
        let (known, blocks) = (self.blocks.len(), space.blocks());
        if blocks > known {
            self.disk_of.extend((known..blocks).map(|at| space.disk(Block(at as u32))));
            self.blocks.resize(blocks, BlockState::ABSENT);
            self.policy.grow(blocks);
        }
    }

    /// The counts so far.
    #[must_use]
    pub fn counts(&self) -> &Counts {
        &self.ledger.counts
    }

    /// Position of the next reference that has not been served.
    #[must_use]
    pub fn cursor(&self) -> Position {
        self.cursor
    }

    /// Number of frames, free or not.
    #[must_use]
    pub fn frames(&self) -> u32 {
        self.frames
    }

    /// Number of free frames.
    #[must_use]
    pub fn free_frames(&self) -> u32 {
        self.free
    }

    /// Whether the policy asks for whole requests.
    #[inline]
    #[must_use]
    pub fn takes_requests(&self) -> bool {
        self.takes_requests
    }

    /// Whether `block` is resident or in flight, whether it will be stored or not: the view of a coordinator. The
    /// policy does not see blocks in flight that will not be stored.
    #[must_use]
    pub fn is_cached(&self, block: Block) -> bool {
        self.blocks.get(block.index()).is_some_and(|state| !state.is_absent() || state.is_passing())
    }

    /// Whether `block` is cached, or waits for a frame without needing a fetch: this level is responsible for its
    /// bytes.
    #[must_use]
    pub fn has_to_do_with(&self, block: Block) -> bool {
        self.is_cached(block) || self.allocating.contains(&block)
    }

    /// Whether the level keeps nothing about `block`, except what its policy remembers: it is not cached, not waited for,
    /// and the policy will not fetch it on its own account.
    #[must_use]
    pub fn is_unknown(&self, block: Block) -> bool {
        let is_wanted = self.requests.waiting.of(block).next().is_some() || self.policy.retries(block);
        !is_wanted && !self.has_to_do_with(block)
    }

    /// State of a block; an unregistered block is absent.
    #[must_use]
    pub fn state(&self, block: Block) -> BlockState {
        self.blocks.get(block.index()).copied().unwrap_or(BlockState::ABSENT)
    }

    /// Whether [`Level::decide`] could lead to any decision.
    #[inline]
    #[must_use]
    pub fn wants_to_decide(&self) -> bool {
        self.changed && self.policy.decides(&self.outstanding)
    }

    /// A time at which the policy wants to decide even if nothing else happens then.
    #[inline]
    #[must_use]
    pub fn wake_at(&self) -> Option<Nanos> {
        self.wake_at
    }

    /// Due time of the first dirty block.
    #[inline]
    #[must_use]
    pub fn flush_at(&self) -> Option<Nanos> {
        self.dirty.due()
    }

    /// The earlier of two times: when the first dirty block is due, and when, after `now`, the policy wants to decide.
    #[inline(always)]
    #[must_use]
    pub fn next_wake(&self, now: Nanos) -> Option<Nanos> {
        let wake = self.wake_at.filter(|at| *at > now);
        match (self.dirty.due(), wake) {
            (None, wake) => wake,
            (Some(flush), wake) => Some(wake.map_or(flush, |wake| wake.min(flush))),
        }
    }

    /// Number of dirty blocks.
    #[must_use]
    pub fn dirty_blocks(&self) -> usize {
        self.dirty.len()
    }

    #[inline]
    fn tell(&mut self, now: Nanos, event: Event, space: &dyn BlockMap) {
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

    /// Prefetches what is kept about `blocks`, which will soon be referenced, into the processor's cache; see
    /// [`Policy::warm`].
    #[inline]
    pub fn warm(&mut self, blocks: &[Block], space: &impl BlockMap) {
        if space.blocks() > self.blocks.len() {
            self.register_blocks(space);
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

    /// Step (1): the fetch of `block` has ended after `service` on its disk; `None` if it was only allocated.
    #[inline]
    pub fn arrived(&mut self, now: Nanos, block: Block, service: Option<Nanos>, space: &dyn BlockMap) {
        let disk = self.disk_of[block.index()];
        self.outstanding[disk.index()] -= 1;
        self.changed = true;
        if self.blocks[block.index()].is_passing() {
            return self.passed(now, block);
        }
        let state = self.blocks[block.index()].arrived();
        self.blocks[block.index()] = state;
        self.ledger.add(now, block, Step::Arrived { unused: state.is_unused_prefetch(), service });
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

    /// Whether any requests have finished since [`Level::take_done`].
    #[inline]
    #[must_use]
    pub fn has_done(&self) -> bool {
        !self.requests.done.is_empty()
    }

    /// Appends the requests that had to wait and have finished since the last call, in order.
    pub fn take_done(&mut self, into: &mut Vec<u64>) {
        into.append(&mut self.requests.done);
    }

    /// Makes prefetches leave in orders of their own instead of joining the preceding demand.
    pub fn separate_prefetches(&mut self) {
        self.requests.separate = true;
    }

    /// Makes contiguous fetches be joined by files instead of places on disks, for a level above another one, whose
    /// requests are of one file.
    pub fn order_by_files(&mut self) {
        self.requests.by_disk = false;
    }

    /// Makes each block be fetched by its own request, for objects whose numbers are not places.
    pub fn order_singly(&mut self) {
        self.requests.order_max = 1;
    }

    /// Makes consecutively written blocks leave in clusters.
    pub fn gather_writes(&mut self, clusters: Clusters) {
        self.clusters = Some(Box::new(clusters));
    }

    /// Makes [`Level::take_evicted`] report evictions from now on.
    pub fn note_evictions(&mut self) {
        self.requests.evicted = Some(Vec::new());
    }

    /// Appends the blocks evicted since the last call, in order.
    pub fn take_evicted(&mut self, into: &mut Vec<Block>) {
        if let Some(evicted) = &mut self.requests.evicted {
            into.append(evicted);
        }
    }

    /// Notifies the policy that the reference of `block` expected at `position` will not happen, or happens out of
    /// order.
    pub fn skip(&mut self, now: Nanos, position: Position, block: Block, space: &dyn BlockMap) {
        self.register_block(block, space);
        self.changed = true;
        self.tell(now, Event::Skipped { position, block }, space);
    }

    /// Adds `more` frames. The policy was built for the maximum number of frames.
    pub fn grow(&mut self, more: u32) {
        self.frames += more;
        self.free += more;
        self.changed = true;
        self.policy.given_frames();
    }

    /// Stops counting the in-flight prefetch of `block` as a prefetch, because it turned out to be unnecessary.
    pub fn uncount_prefetch(&mut self, block: Block) {
        let state = self.blocks[block.index()];
        if state.is_in_flight() && state.is_unused_prefetch() {
            self.ledger.counts.prefetches -= 1;
            self.blocks[block.index()] = state.used();
        }
    }

    /// Makes `block` the first victim for a coordinator, overriding the policy. No effect if it is not evictable.
    pub fn make_first_victim(&mut self, block: Block) {
        if self.state(block).is_evictable() {
            self.policy.first_victim(block);
        }
    }

    /// Removes `block` from the cache for a coordinator. No effect if it is not evictable, or if it is dirty.
    pub fn take_out(&mut self, block: Block) {
        let state = self.state(block);
        if !state.is_evictable() || self.dirty.contains(block) {
            return;
        }
        self.blocks[block.index()] = BlockState::ABSENT;
        self.free += 1;
        self.changed = true;
        self.ledger.counts.evictions += 1;
        self.ledger.evicted(block, state.is_unused_prefetch(), false);
        self.policy.removed(block);
    }
}
