//! What a hinted policy knows: resident blocks by next use, missing blocks by disk and next use.
//!
//! Every block with a visible next use is in exactly one of three states: in [`Residents`], in [`Missing`], or in
//! flight (in neither). Only this file moves blocks between them.

use std::sync::Arc;

use headstart_types::{Block, Disk, Position, NEVER};

use super::missing::Missing;
use super::Residents;
use crate::{Hints, View};

/// Blocks of one disk that became missing through eviction or disclosure.
#[derive(Debug, Clone, Copy)]
pub(super) struct Losses {
    /// Number of blocks.
    pub count: u32,
    /// The earliest of their next uses; `NEVER` if there are none.
    pub nearest: Position,
}

const NO_LOSSES: Losses = Losses { count: 0, nearest: NEVER };

impl Losses {
    #[inline]
    fn note(&mut self, position: Position) {
        self.count += 1;
        self.nearest = self.nearest.min(position);
    }
}

/// The disclosed future, matched with the state of the cache.
#[derive(Debug)]
pub struct Knowledge {
    residents: Residents,
    missing: Missing,
    /// For each disk, since its losses were last taken.
    losses: Vec<Losses>,
    /// Total losses of all disks.
    lost: u64,
    /// Whether the last round began without a free frame. No frame has become free since.
    is_full: bool,
}

impl Knowledge {
    /// Starts with `initial` resident, nothing in flight and the cursor at 0.
    #[must_use]
    pub fn new(hints: Arc<Hints>, initial: &[Block], disk_of: Arc<[Disk]>, disks: usize) -> Self {
        let blocks = disk_of.len();
        let mut missing = Missing::new(hints.blocks.clone(), disk_of, disks);
        let mut residents = Residents::new(hints, blocks);
        let mut held = vec![false; blocks];
        for block in initial {
            held[block.index()] = true;
            residents.insert(*block);
        }
        residents.disclose(|_, position| {
            missing.insert(position);
        });
        for block in (0..blocks as u32).map(Block).filter(|block| !held[block.index()]) {
            if residents.next_use(block) != NEVER {
                missing.insert(residents.next_use(block));
            }
        }
        Self { residents, missing, losses: vec![NO_LOSSES; disks], lost: 0, is_full: false }
    }

    /// The resident blocks.
    #[inline]
    #[must_use]
    pub fn residents(&self) -> &Residents {
        &self.residents
    }

    /// The missing blocks.
    #[inline]
    #[must_use]
    pub fn missing(&self) -> &Missing {
        &self.missing
    }

    /// Notes that a round begins with `free` free frames.
    #[inline]
    pub(super) fn note_free(&mut self, free: u32) {
        self.is_full = free == 0;
    }

    /// Whether "do no harm" might let an idle disk (nothing `outstanding`) fetch its first missing block: into a free
    /// frame, or in place of a block that is needed later.
    #[inline]
    #[must_use]
    pub fn may_fetch_on_idle_disk(&self, outstanding: &[u32]) -> bool {
        let harmless_before = if self.is_full { self.residents.furthest_use() } else { NEVER };
        if self.missing.first() >= harmless_before {
            return false;
        }
        let mut heads = self.missing.heads().iter().zip(outstanding);
        heads.any(|(head, outstanding)| *outstanding == 0 && *head < harmless_before)
    }

    /// The blocks of `disk` that have become missing since the last call.
    #[inline]
    pub(super) fn take_losses(&mut self, disk: usize) -> Losses {
        std::mem::replace(&mut self.losses[disk], NO_LOSSES)
    }

    /// Number of blocks that have become missing so far.
    #[inline]
    pub(super) fn lost(&self) -> u64 {
        self.lost
    }

    /// Notes that a block of `disk` became missing; its next use is at `position`.
    #[inline]
    fn note_loss(&mut self, disk: Disk, position: Position) {
        self.lost += 1;
        self.losses[disk.index()].note(position);
    }

    /// Whether the reference of `block` at `position` is disclosed; false at `NEVER`.
    #[inline]
    #[must_use]
    pub fn expects(&self, position: Position, block: Block) -> bool {
        position != NEVER && self.residents.next_use(block) == position
    }

    /// Whether `block` has a visible next use and is neither resident nor in flight.
    #[inline]
    #[must_use]
    pub fn is_missing(&self, block: Block) -> bool {
        let position = self.residents.next_use(block);
        position != NEVER && self.missing.contains(position)
    }

    /// Called when a fetch of the absent `block` is issued.
    #[inline]
    pub(super) fn fetch(&mut self, block: Block) {
        let position = self.residents.next_use(block);
        if position != NEVER {
            self.missing.remove(position);
        }
    }

    /// Called when the resident `block` is evicted.
    #[inline]
    pub(super) fn evict(&mut self, block: Block) {
        let position = self.residents.remove(block);
        if position != NEVER {
            let disk = self.missing.insert(position);
            self.note_loss(disk, position);
        }
    }

    /// Called when the fetch of `block` has ended.
    #[inline]
    pub(super) fn arrived(&mut self, block: Block) {
        self.residents.insert(block);
    }

    /// Called when the resident `block` has been referenced at `position`.
    #[inline]
    pub(super) fn served(&mut self, position: Position, block: Block, view: &View<'_>) {
        if let Some(hinted) = self.residents.wrongly_expected(position, block) {
            self.pass(position, hinted, view);
        }
        self.residents.served(position, block);
        self.disclose(view);
    }

    /// Called when the reference of `block` at `position` will not happen.
    pub(super) fn skipped(&mut self, position: Position, block: Block, view: &View<'_>) {
        self.pass(position, block, view);
        self.disclose(view);
    }

    /// Drops the hint of `block` at `position`.
    fn pass(&mut self, position: Position, block: Block, view: &View<'_>) {
        let state = view.state(block);
        if state.is_absent() && self.expects(position, block) {
            self.missing.remove(position);
        }
        if let Some(next) = self.residents.skipped(position, block, state.is_resident()) {
            if state.is_absent() && next != NEVER {
                let disk = self.missing.insert(next);
                self.note_loss(disk, next);
            }
        }
    }

    /// Discloses what is visible from the current cursor.
    #[inline]
    fn disclose(&mut self, view: &View<'_>) {
        let Self { residents, missing, losses, lost, .. } = self;
        residents.disclose(|block, at| {
            if view.state(block).is_absent() {
                *lost += 1;
                losses[missing.insert(at).index()].note(at);
            }
        });
    }
}
