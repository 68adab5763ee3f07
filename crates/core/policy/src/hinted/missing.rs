//! Missing blocks (neither resident nor in flight), for each disk in order of their next disclosed reference.
//!
//! One ordered bitmap over [`Slots`] holds the sets of all disks. Cost: a few words per event.

use std::sync::Arc;

use headstart_types::{Block, Disk, IndexSet, Position, NEVER};

use super::slots::Slots;

/// Sets of missing blocks, one per disk.
#[derive(Debug)]
pub struct Missing {
    slots: Slots,
    set: IndexSet,
    /// For each disk: the position of its first missing block, or `NEVER`.
    heads: Vec<Position>,
    /// The minimum of `heads`.
    first: Position,
    blocks: Arc<[Block]>,
    disk_of: Arc<[Disk]>,
}

impl Missing {
    /// Empty sets for the reference string `blocks` over `disks` disks.
    #[must_use]
    pub fn new(blocks: Arc<[Block]>, disk_of: Arc<[Disk]>, disks: usize) -> Self {
        let slots = Slots::new(blocks.iter().map(|block| disk_of[block.index()].index()), disks);
        Self { slots, set: IndexSet::new(blocks.len()), heads: vec![NEVER; disks], first: NEVER, blocks, disk_of }
    }

    /// The position of a slot.
    #[inline]
    pub fn position(&self, slot: u32) -> Position {
        self.slots.position(slot)
    }

    #[inline]
    fn disk_at(&self, position: Position) -> usize {
        self.disk_of[self.blocks[position as usize].index()].index()
    }

    /// For each disk: the position of its first missing block, or `NEVER`.
    #[inline]
    #[must_use]
    pub fn heads(&self) -> &[Position] {
        &self.heads
    }

    /// Position of the first missing block, or `NEVER`.
    #[inline]
    #[must_use]
    pub fn first(&self) -> Position {
        self.first
    }

    /// The missing block whose next use is `position`.
    #[inline]
    #[must_use]
    pub fn block_at(&self, position: Position) -> Block {
        self.blocks[position as usize]
    }

    /// Whether a block with next use `position` is missing.
    #[inline]
    #[must_use]
    pub fn contains(&self, position: Position) -> bool {
        self.set.contains(self.slots.slot(position))
    }

    /// Adds the block with next use `position`. Returns its disk.
    #[inline]
    pub fn insert(&mut self, position: Position) -> Disk {
        let disk = self.disk_at(position);
        self.set.insert(self.slots.slot(position));
        self.heads[disk] = self.heads[disk].min(position);
        self.first = self.first.min(position);
        Disk(disk as u32)
    }

    /// Removes the block with next use `position`.
    #[inline]
    pub fn remove(&mut self, position: Position) {
        let (disk, slot) = (self.disk_at(position), self.slots.slot(position));
        self.set.remove(slot);
        if self.heads[disk] == position {
            self.heads[disk] = match self.set.next(slot + 1) {
                Some(next) if next < self.slots.of_disk(disk).end => self.position(next),
                _ => NEVER,
            };
            if self.first == position {
                self.first = self.heads.iter().copied().min().expect("a level has a disk");
            }
        }
    }

    /// The slots of `disk` from its first missing block on, and the bitmap for counting in them; `None` if none is
    /// missing.
    #[inline]
    #[must_use]
    pub fn tail(&self, disk: usize) -> Option<(std::ops::Range<u32>, &IndexSet)> {
        let head = self.heads[disk];
        (head != NEVER).then(|| (self.slots.slot(head)..self.slots.of_disk(disk).end, &self.set))
    }
}
