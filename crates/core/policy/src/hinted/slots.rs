//! Renumbers positions so that those of one disk are contiguous and keep their order; such a number is a *slot*.
//!
//! One ordered bitmap over slots then holds a set for every disk, in memory that does not depend on the number of
//! disks: 8 bytes per position, and nothing with one disk, where slot and position are the same.

use std::ops::Range;

use headstart_types::Position;

/// The numbering of positions by disk.
#[derive(Debug)]
pub(super) struct Slots {
    /// For each disk: its first slot; plus one entry for the end.
    starts: Vec<u32>,
    /// `None` with one disk: slots equal positions.
    numbering: Option<Numbering>,
}

#[derive(Debug)]
struct Numbering {
    /// Indexed by position.
    slot_of: Vec<u32>,
    /// Indexed by slot.
    position_of: Vec<Position>,
}

impl Slots {
    /// Position i belongs to the disk that is the i-th of `disk_at`, each below `disks`.
    pub fn new(disk_at: impl Iterator<Item = usize> + Clone, disks: usize) -> Self {
        let mut starts = vec![0u32; disks + 1];
        disk_at.clone().for_each(|disk| starts[disk + 1] += 1);
        for disk in 0..disks {
            starts[disk + 1] += starts[disk];
        }
        let numbering = (disks > 1).then(|| {
            let mut next = starts.clone();
            let count = starts[disks] as usize;
            let mut numbering = Numbering { slot_of: vec![0; count], position_of: vec![0; count] };
            for (position, disk) in disk_at.enumerate() {
                numbering.slot_of[position] = next[disk];
                numbering.position_of[next[disk] as usize] = position as Position;
                next[disk] += 1;
            }
            numbering
        });
        Self { starts, numbering }
    }

    /// The slots of `disk`.
    #[inline]
    pub fn of_disk(&self, disk: usize) -> Range<u32> {
        self.starts[disk]..self.starts[disk + 1]
    }

    /// The slot of a position.
    #[inline]
    pub fn slot(&self, position: Position) -> u32 {
        self.numbering.as_ref().map_or(position, |numbering| numbering.slot_of[position as usize])
    }

    /// The position of a slot.
    #[inline]
    pub fn position(&self, slot: u32) -> Position {
        self.numbering.as_ref().map_or(slot, |numbering| numbering.position_of[slot as usize])
    }
}
