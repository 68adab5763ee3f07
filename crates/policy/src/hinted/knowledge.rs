//! What a hinted policy knows: resident blocks by next use, missing blocks by disk and next use.
//!
//! Every block with a visible next use is in exactly one of three places: [`Residents`], [`Missing`], or in
//! flight (in neither). Only this file moves blocks between them.

use std::sync::Arc;

use headstart_types::{Block, Disk, Position, NEVER};

use super::missing::Missing;
use super::Residents;
use crate::{Hints, View};

/// Blocks of one disk that have become missing, by eviction or disclosure.
#[derive(Debug, Clone, Copy)]
pub(super) struct Losses {
    /// How many.
    pub count: u32,
    /// The earliest of their next uses.
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

/// The disclosed future against the state of the cache.
#[derive(Debug)]
pub struct Knowledge {
    residents: Residents,
    missing: Missing,
    /// By disk, since they were last taken.
    losses: Vec<Losses>,
    /// How many there have been, of all disks.
    lost: u64,
    /// Whether the last round began without a free frame: none has come free since.
    is_full: bool,
}

impl Knowledge {
    /// The cache holds `initial`; nothing is in flight; the cursor is 0.
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

    /// A round begins with `free` free frames.
    #[inline]
    pub(super) fn note_free(&mut self, free: u32) {
        self.is_full = free == 0;
    }

    /// Whether "do no harm" might let an idle disk, one with nothing `outstanding`, fetch its first missing block: into a
    /// free frame, or in place of a block that is needed later.
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

    /// How many blocks have become missing so far.
    #[inline]
    pub(super) fn lost(&self) -> u64 {
        self.lost
    }

    /// A block of `disk` has become missing; its next use is at `position`.
    #[inline]
    fn note_loss(&mut self, disk: Disk, position: Position) {
        self.lost += 1;
        self.losses[disk.index()].note(position);
    }

    /// Whether the reference of `block` at `position` has been disclosed; at `NEVER` none has.
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

    /// A fetch of the absent `block` is issued.
    #[inline]
    pub(super) fn fetch(&mut self, block: Block) {
        let position = self.residents.next_use(block);
        if position != NEVER {
            self.missing.remove(position);
        }
    }

    /// The resident `block` is evicted.
    #[inline]
    pub(super) fn evict(&mut self, block: Block) {
        let position = self.residents.remove(block);
        if position != NEVER {
            let disk = self.missing.insert(position);
            self.note_loss(disk, position);
        }
    }

    /// The fetch of `block` has ended.
    #[inline]
    pub(super) fn arrived(&mut self, block: Block) {
        self.residents.insert(block);
    }

    /// The resident `block` has been referenced at `position`.
    #[inline]
    pub(super) fn served(&mut self, position: Position, block: Block, view: &View<'_>) {
        if let Some(hinted) = self.residents.wrongly_expected(position, block) {
            self.pass(position, hinted, view);
        }
        self.residents.served(position, block);
        self.disclose(view);
    }

    /// The reference of `block` at `position` will not come.
    pub(super) fn skipped(&mut self, position: Position, block: Block, view: &View<'_>) {
        self.pass(position, block, view);
        self.disclose(view);
    }

    /// The hint of `block` at `position` is given up.
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

    /// Takes in what may be known at the cursor.
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
