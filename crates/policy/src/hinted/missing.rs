//! Missing blocks (neither resident nor in flight), per disk, in order of their next disclosed reference.
//!
//! Positions are renumbered so that each disk's come together and keep their order: a *slot* is such a number.
//! One ordered bitmap over slots then holds every disk's set, in memory that does not depend on the number of
//! disks: 8 bytes a reference (nothing with one disk, where slot and position are the same) and one bit.

use std::sync::Arc;

use headstart_types::{Block, Disk, IndexSet, Position, NEVER};

/// The numbering of positions by disk.
#[derive(Debug)]
struct Slots {
    /// By position.
    slot_of: Vec<u32>,
    /// By slot.
    position_of: Vec<Position>,
}

/// Sets of missing blocks, one for each disk.
#[derive(Debug)]
pub struct Missing {
    /// `None` with one disk: slot = position.
    slots: Option<Slots>,
    /// By disk: its first slot; one more entry at the end.
    starts: Vec<u32>,
    set: IndexSet,
    /// By disk: position of its first missing block, or `NEVER`.
    heads: Vec<Position>,
    blocks: Arc<[Block]>,
    disk_of: Arc<[Disk]>,
}

impl Missing {
    /// Empty sets for the reference string `blocks` over `disks` disks.
    #[must_use]
    pub fn new(blocks: Arc<[Block]>, disk_of: Arc<[Disk]>, disks: usize) -> Self {
        let mut starts = vec![0u32; disks + 1];
        for block in blocks.iter() {
            starts[disk_of[block.index()].index() + 1] += 1;
        }
        for disk in 0..disks {
            starts[disk + 1] += starts[disk];
        }
        let slots = (disks > 1).then(|| {
            let mut next = starts.clone();
            let mut slots = Slots { slot_of: vec![0; blocks.len()], position_of: vec![0; blocks.len()] };
            for (position, block) in blocks.iter().enumerate() {
                let slot = &mut next[disk_of[block.index()].index()];
                slots.slot_of[position] = *slot;
                slots.position_of[*slot as usize] = position as Position;
                *slot += 1;
            }
            slots
        });
        Self { slots, starts, set: IndexSet::new(blocks.len()), heads: vec![NEVER; disks], blocks, disk_of }
    }

    #[inline]
    fn slot(&self, position: Position) -> u32 {
        self.slots.as_ref().map_or(position, |slots| slots.slot_of[position as usize])
    }

    /// The position that a slot stands for.
    #[inline]
    pub fn position(&self, slot: u32) -> Position {
        self.slots.as_ref().map_or(slot, |slots| slots.position_of[slot as usize])
    }

    #[inline]
    fn disk_at(&self, position: Position) -> usize {
        self.disk_of[self.blocks[position as usize].index()].index()
    }

    /// By disk: position of its first missing block, or `NEVER`.
    #[inline]
    #[must_use]
    pub fn heads(&self) -> &[Position] {
        &self.heads
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
        self.set.contains(self.slot(position))
    }

    /// A block with next use `position` has become missing. Returns its disk.
    #[inline]
    pub fn insert(&mut self, position: Position) -> Disk {
        let disk = self.disk_at(position);
        self.set.insert(self.slot(position));
        self.heads[disk] = self.heads[disk].min(position);
        Disk(disk as u32)
    }

    /// The block with next use `position` is missing no more.
    #[inline]
    pub fn remove(&mut self, position: Position) {
        let (disk, slot) = (self.disk_at(position), self.slot(position));
        self.set.remove(slot);
        if self.heads[disk] == position {
            self.heads[disk] = match self.set.next(slot + 1) {
                Some(next) if next < self.starts[disk + 1] => self.position(next),
                _ => NEVER,
            };
        }
    }

    /// The slots of `disk` from its first missing block on, and the bitmap, for counting stretches of it.
    #[inline]
    #[must_use]
    pub fn tail(&self, disk: usize) -> Option<(std::ops::Range<u32>, &IndexSet)> {
        let head = self.heads[disk];
        (head != NEVER).then(|| (self.slot(head)..self.starts[disk + 1], &self.set))
    }
}
