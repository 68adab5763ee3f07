//! Dense block numbers and the place of each block.

use std::mem::{replace, take};

use hashbrown::HashMap;
use headstart_types::{Block, Disk, KeyError};
use prefetch_index::prefetch_index;
use rustc_hash::FxBuildHasher;

use super::pages::Pages;
use super::placing::{Extent, Placing};

/// The blocks seen so far, numbered in order of first appearance, with their places.
///
/// Memory: 12 bytes per block, and the look-up tables.
#[derive(Debug, Default)]
pub struct Universe {
    /// By block.
    pub disk_of: Vec<Disk>,
    /// By block: its first sector on that disk.
    pub sector_of: Vec<u64>,
    /// Blocks of file 0 (the only file of block traces and generators) below `DIRECT_MAX`, by block in file: the number
    /// plus one, or zero. A table needs a third of a map's memory and no hashing.
    direct: Vec<u32>,
    /// Other blocks.
    pages: Pages,
    /// By block: its file and its position in it; `None` if this is not needed.
    places: Option<Vec<(u32, u64)>>,
    /// Sectors of partial blocks: fragments.
    short: HashMap<Block, u32, FxBuildHasher>,
    /// Number of blocks whose places have been handed over to the level above.
    handed_over: usize,
    /// The extent in which the last block was placed, and its first block: file and position.
    placed: (u32, u64, Extent),
}

/// Places of consecutively numbered blocks.
#[derive(Debug)]
pub struct Fresh {
    disks: Vec<Disk>,
    sectors: Vec<u64>,
}

/// At most 64 MB of table, of which only touched pages use memory: 128 GB in blocks of 8 KiB.
const DIRECT_MAX: u64 = 1 << 24;

/// Block numbers have 32 bits, and the highest is reserved.
const BLOCKS_MAX: usize = u32::MAX as usize - 1;

impl Universe {
    /// Adds a block at a known place.
    pub fn push(&mut self, disk: Disk, sector: u64) -> Block {
        self.disk_of.push(disk);
        self.sector_of.push(sector);
        Block(self.len() as u32 - 1)
    }

    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.handed_over + self.disk_of.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Moves the numbers, without the places, to a new universe; this one keeps the places and no longer numbers
    /// blocks.
    #[must_use]
    pub fn numbers_apart(&mut self) -> Self {
        let places_stay =
            Self { disk_of: take(&mut self.disk_of), sector_of: take(&mut self.sector_of), ..Self::default() };
        let handed_over = self.handed_over + places_stay.disk_of.len();
        Self { handed_over, ..replace(self, places_stay) }
    }

    /// The places of the blocks numbered since the last call.
    pub fn take_fresh(&mut self) -> Fresh {
        self.handed_over = self.len();
        Fresh { disks: take(&mut self.disk_of), sectors: take(&mut self.sector_of) }
    }

    /// Adds places of blocks that another universe numbered.
    pub fn add(&mut self, fresh: &Fresh) {
        self.disk_of.extend_from_slice(&fresh.disks);
        self.sector_of.extend_from_slice(&fresh.sectors);
    }

    /// Enables [`Universe::place_of`]. Must be called before any block is numbered.
    pub fn keep_places(&mut self) {
        self.places.get_or_insert_with(Vec::new);
    }

    /// The file of `block`, and its position in the file.
    ///
    /// # Panics
    /// If places are not kept.
    #[must_use]
    pub fn place_of(&self, block: Block) -> (u32, u64) {
        self.places.as_ref().expect("places are kept where they are asked for")[block.index()]
    }

    /// Whether any block is partial.
    #[inline]
    #[must_use]
    pub fn has_fragments(&self) -> bool {
        !self.short.is_empty()
    }

    /// Sectors of `block`, if it is partial.
    #[inline]
    #[must_use]
    pub fn short(&self, block: Block) -> Option<u32> {
        if self.short.is_empty() {
            return None;
        }
        self.short.get(&block).copied()
    }

    /// Adds a block that is only identified by a label; it counts as the next block of file 0.
    pub fn push_named(&mut self, disk: Disk, sector: u64) -> Block {
        let block = self.push(disk, sector);
        self.direct.push(block.0 + 1);
        if let Some(places) = &mut self.places {
            places.push((0, u64::from(block.0)));
        }
        block
    }

    /// Prefetches the entry of block `at` of file 0 into the processor's cache.
    #[inline]
    pub fn prefetch(&self, at: u64) {
        prefetch_index(&self.direct, at as usize);
    }

    /// The number of block `at` of `file`, if it has one.
    #[must_use]
    pub fn find(&self, file: u32, at: u64) -> Option<Block> {
        let number = if file == 0 && at < DIRECT_MAX {
            self.direct.get(at as usize).and_then(|entry| entry.checked_sub(1))
        } else {
            self.pages.find(file, at)
        };
        number.map(Block)
    }

    /// The number of block `at` of `file`; a new block is numbered and placed.
    ///
    /// # Errors
    /// If it lies beyond the device, or there are too many blocks.
    #[inline]
    pub fn number(&mut self, file: u32, at: u64, placing: &Placing) -> Result<Block, KeyError> {
        let fresh = self.len() as u32;
        let number = if file != 0 {
            self.pages.number(file, at, fresh)
        } else if let Some(entry) = self.direct.get_mut(at as usize) {
            if *entry == 0 {
                *entry = fresh + 1;
            }
            *entry - 1
        } else if at < DIRECT_MAX {
            self.direct.resize((at as usize + 1).next_power_of_two(), 0);
            self.direct[at as usize] = fresh + 1;
            fresh
        } else {
            self.pages.number(file, at, fresh)
        };
        if number == fresh {
            self.place(file, at, placing)?;
        }
        Ok(Block(number))
    }

    /// As [`Universe::number`]; `None` if the block has no place.
    #[must_use]
    pub fn name(&mut self, file: u32, at: u64, placing: &Placing) -> Option<Block> {
        self.find(file, at).or_else(|| {
            self.lies(file, at, placing).ok()?;
            self.number(file, at, placing).ok()
        })
    }

    /// Disk and first sector of block `at` of `file`: by the rule, or adjacent to the last block that was placed.
    #[inline]
    fn lies(&mut self, file: u32, at: u64, placing: &Placing) -> Result<(Disk, u64), KeyError> {
        let (of, first, extent) = self.placed;
        if of != file || at.wrapping_sub(first) >= extent.blocks {
            self.placed = (file, at, placing.extent(file, at)?);
        }
        let (_, first, Extent { disk, sector, .. }) = self.placed;
        Ok((disk, sector + (at - first) * placing.block_sectors()))
    }

    fn place(&mut self, file: u32, at: u64, placing: &Placing) -> Result<(), KeyError> {
        if self.len() >= BLOCKS_MAX {
            let problem = format!("more than {BLOCKS_MAX} distinct blocks");
            return Err(KeyError::new("workload.block_size", problem, "larger blocks, or a limit"));
        }
        let (disk, sector) = self.lies(file, at, placing)?;
        let block = self.push(disk, sector);
        if let Some(sectors) = placing.short(file, at) {
            self.short.insert(block, sectors);
        }
        if let Some(places) = &mut self.places {
            places.push((file, at));
        }
        Ok(())
    }
}
