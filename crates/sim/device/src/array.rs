//! Where a block of the volume lies: its disk and its first sector there.
//!
//! `Stripe` assigns units of the volume to the disks in turn (kimbrel96 section 3.2: one block per unit). `Concat`
//! fills one disk after another. `Explicit` takes one list of blocks per disk, in placement order. Arrays that are one
//! device (mirrors, RAID behind a controller) are in `arrays/`.
//!
//! A block lies on one disk. If its size is not a multiple of the sector size, it occupies whole sectors.

use std::collections::BTreeMap;

use headstart_types::{Bytes, Disk, KeyError, KeyTable};

use crate::device::sectors_of;
use crate::row::{ArrayKind, ArrayRow};

pub(crate) const STRIPE: ArrayRow = ArrayRow {
    name: "stripe",
    summary: "independent disks, units in turn",
    source: "kimbrel96 section 3.2",
    keys: KeyTable::NONE,
    kind: ArrayKind::Independent(|disks, unit, block, _| Ok(Layout::Stripe(Stripe::try_new(disks, unit, block)?))),
};

pub(crate) const CONCAT: ArrayRow = ArrayRow {
    name: "concat",
    summary: "independent disks, one after another",
    source: "folklore",
    keys: KeyTable::NONE,
    kind: ArrayKind::Independent(|disks, _, block, capacity| {
        Ok(Layout::Concat(Concat::try_new(disks, block, capacity)?))
    }),
};

/// A volume that does not fit on its disks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "block {block} of {} lies at sector {sector} of disk {disk}, which has {capacity_sectors} sectors",
    Bytes(*block_bytes)
)]
pub struct CapacityError {
    /// The block that does not fit.
    pub block: u64,
    pub block_bytes: u64,
    /// The disk to which it is mapped.
    pub disk: u32,
    /// Its first sector there.
    pub sector: u64,
    pub capacity_sectors: u64,
}

/// Striping: unit i of the volume is unit i / d of disk i mod d.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stripe {
    disks: u64,
    unit_blocks: u64,
    block_bytes: u64,
    block_sectors: u64,
}

impl Stripe {
    /// `disks` disks and stripe units of `unit`, which must be a whole number of blocks.
    ///
    /// # Errors
    /// At the scenario's keys `count`, `block_size` or `stripe_unit`.
    pub fn try_new(disks: u32, unit: Bytes, block: Bytes) -> Result<Self, KeyError> {
        if disks == 0 {
            return Err(KeyError::new("count", "no disk", "a whole number from 1"));
        }
        if block.0 == 0 {
            return Err(KeyError::new("block_size", "must be above zero", Bytes::ALLOWED));
        }
        if unit.0 == 0 || !unit.0.is_multiple_of(block.0) {
            let problem = format!("{unit} is not a whole number of blocks of {block}");
            return Err(KeyError::new("stripe_unit", problem, format!("a multiple of {block}")));
        }
        Ok(Self {
            disks: u64::from(disks),
            unit_blocks: unit.0 / block.0,
            block_bytes: block.0,
            block_sectors: sectors_of(block.0),
        })
    }

    /// Disk and first sector of `block`.
    #[inline]
    #[must_use]
    pub fn place(&self, block: u64) -> (Disk, u64) {
        let (unit, within) =
            if self.unit_blocks == 1 { (block, 0) } else { (block / self.unit_blocks, block % self.unit_blocks) };
        let local = unit / self.disks * self.unit_blocks + within;
        (Disk((unit % self.disks) as u32), local * self.block_sectors)
    }

    /// Blocks of the volume on disks of `capacity_sectors` each, counting whole stripes only.
    #[must_use]
    pub fn capacity_blocks(&self, capacity_sectors: u64) -> u64 {
        capacity_sectors / (self.unit_blocks * self.block_sectors) * self.unit_blocks * self.disks
    }

    fn check(&self, block: u64, capacity_sectors: u64) -> Result<(), CapacityError> {
        if block < self.capacity_blocks(capacity_sectors) {
            return Ok(());
        }
        let (disk, sector) = self.place(block);
        Err(CapacityError { block, block_bytes: self.block_bytes, disk: disk.0, sector, capacity_sectors })
    }
}

/// Concatenation: the first disk's blocks, then the second's, and so on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Concat {
    disks: u64,
    blocks_per_disk: u64,
    block_bytes: u64,
    block_sectors: u64,
}

impl Concat {
    /// `disks` disks of `capacity_sectors` each.
    ///
    /// # Errors
    /// At the scenario's keys `count` or `block_size`, or at `array` if the disks have no limit or hold no block.
    pub fn try_new(disks: u32, block: Bytes, capacity_sectors: Option<u64>) -> Result<Self, KeyError> {
        const ALLOWED: &str = "a model with a capacity, or another array, such as \"stripe\"";
        if disks == 0 {
            return Err(KeyError::new("count", "no disk", "a whole number from 1"));
        }
        if block.0 == 0 {
            return Err(KeyError::new("block_size", "must be above zero", Bytes::ALLOWED));
        }
        let block_sectors = sectors_of(block.0);
        match capacity_sectors.map(|sectors| sectors / block_sectors) {
            None => Err(KeyError::new("array", "\"concat\" needs disks with a capacity", ALLOWED)),
            Some(0) => Err(KeyError::new("array", format!("no block of {block} fits on a disk"), ALLOWED)),
            Some(blocks_per_disk) => {
                Ok(Self { disks: disks.into(), blocks_per_disk, block_bytes: block.0, block_sectors })
            }
        }
    }

    /// Disk and first sector of `block`; blocks beyond the last disk are mapped to it.
    #[inline]
    #[must_use]
    pub fn place(&self, block: u64) -> (Disk, u64) {
        let disk = (block / self.blocks_per_disk).min(self.disks - 1);
        (Disk(disk as u32), (block - disk * self.blocks_per_disk) * self.block_sectors)
    }

    #[must_use]
    pub fn capacity_blocks(&self) -> u64 {
        self.blocks_per_disk.saturating_mul(self.disks)
    }

    fn check(&self, block: u64, capacity_sectors: u64) -> Result<(), CapacityError> {
        if block < self.capacity_blocks() {
            return Ok(());
        }
        let (disk, sector) = self.place(block);
        Err(CapacityError { block, block_bytes: self.block_bytes, disk: disk.0, sector, capacity_sectors })
    }
}

/// One list of blocks per disk; the blocks of a list lie one after another from sector 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explicit {
    places: BTreeMap<u64, (Disk, u64)>,
    block_bytes: u64,
}

impl Explicit {
    /// `lists[i]` are the blocks of disk i.
    ///
    /// # Errors
    /// At `layout`, if there is no disk or a block is listed twice.
    pub fn try_new(lists: &[Vec<u64>], block: Bytes) -> Result<Self, KeyError> {
        const ALLOWED: &str = "one list of blocks for each disk, every block once";
        if lists.is_empty() {
            return Err(KeyError::new("layout", "no disk", ALLOWED));
        }
        let block_sectors = sectors_of(block.0).max(1);
        let mut places = BTreeMap::new();
        for (disk, list) in lists.iter().enumerate() {
            for (slot, each) in list.iter().enumerate() {
                let place = (Disk(disk as u32), slot as u64 * block_sectors);
                if places.insert(*each, place).is_some() {
                    let key = format!("layout[{disk}][{slot}]");
                    return Err(KeyError::new(key, "block is placed twice", ALLOWED));
                }
            }
        }
        Ok(Self { places, block_bytes: block.0 })
    }
}

/// The mapping of the volume's blocks to the disks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Layout {
    Stripe(Stripe),
    Concat(Concat),
    Explicit(Explicit),
}

impl Layout {
    /// Disk and first sector of `block`; `None` for a block that an explicit layout does not list.
    #[inline]
    #[must_use]
    pub fn place(&self, block: u64) -> Option<(Disk, u64)> {
        match self {
            Layout::Stripe(stripe) => Some(stripe.place(block)),
            Layout::Concat(concat) => Some(concat.place(block)),
            Layout::Explicit(explicit) => explicit.places.get(&block).copied(),
        }
    }

    /// Number of blocks from `block` on, including it, that are contiguous on its disk by the mapping rule; at least 1.
    #[must_use]
    pub fn follow(&self, block: u64) -> u64 {
        match self {
            Layout::Stripe(Stripe { disks: 1, .. }) => u64::MAX,
            Layout::Stripe(stripe) => stripe.unit_blocks - block % stripe.unit_blocks,
            Layout::Concat(concat) if block / concat.blocks_per_disk >= concat.disks - 1 => u64::MAX,
            Layout::Concat(concat) => concat.blocks_per_disk - block % concat.blocks_per_disk,
            Layout::Explicit(_) => 1,
        }
    }

    /// Number of disks over which a long run of blocks is striped.
    #[must_use]
    pub fn disks_abreast(&self) -> u64 {
        match self {
            Layout::Stripe(stripe) => stripe.disks,
            Layout::Concat(_) | Layout::Explicit(_) => 1,
        }
    }

    /// Checks that a volume whose highest block is `highest` fits on disks of `capacity_sectors` (`None`: no limit).
    ///
    /// # Errors
    /// The block that does not fit. For an explicit layout, every listed block is checked.
    pub fn check_capacity(&self, highest: u64, capacity_sectors: Option<u64>) -> Result<(), CapacityError> {
        let Some(capacity_sectors) = capacity_sectors else { return Ok(()) };
        match self {
            Layout::Stripe(stripe) => stripe.check(highest, capacity_sectors),
            Layout::Concat(concat) => concat.check(highest, capacity_sectors),
            Layout::Explicit(Explicit { places, block_bytes }) => {
                let over = |&(_, &(_, sector)): &(&u64, &(Disk, u64))| {
                    sector + sectors_of(*block_bytes).max(1) > capacity_sectors
                };
                match places.iter().find(over) {
                    None => Ok(()),
                    Some((&block, &(disk, sector))) => {
                        Err(CapacityError { block, block_bytes: *block_bytes, disk: disk.0, sector, capacity_sectors })
                    }
                }
            }
        }
    }
}
