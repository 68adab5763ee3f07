//! Small integer names. Each is a newtype so that a block is never taken for a disk or a position.

use serde::Serialize;

/// "No such position": a block that is never referenced again. Compares greater than every real position.
pub const NEVER: Position = u32::MAX;

/// Index of a reference in the (merged) reference string of a run, from 0; `NEVER` where there is none.
///
/// An alias, not a newtype: positions are subtracted to give distances at every turn.
pub type Position = u32;

/// A block of the workload's universe, numbered densely from 0 in order of first appearance.
///
/// Dense numbers let every level and policy keep its per-block state in flat arrays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Block(pub u32);

impl Block {
    /// The block's number as an array index.
    #[inline]
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// One of the independent disks of a device, numbered from 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Disk(pub u32);

impl Disk {
    /// The disk's number as an array index.
    #[inline]
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}
