//! Small integer ids. `Block` and `Disk` are newtypes so that one cannot be passed for the other.

use serde::Serialize;

/// "No such position": the block is never referenced again. Greater than every real position.
pub const NEVER: Position = u32::MAX;

/// Index of a reference in the (merged) reference string of a run, from 0; [`NEVER`] if there is none.
///
/// An alias, not a newtype, because distances between positions are computed everywhere.
pub type Position = u32;

/// A block of the workload's universe, numbered densely from 0 in order of first appearance.
///
/// Dense numbers let every level and policy keep its per-block state in flat arrays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Block(pub u32);

impl Block {
    /// The block number as an array index.
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
    /// The disk number as an array index.
    #[inline]
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}
