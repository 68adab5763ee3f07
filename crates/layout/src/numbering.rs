//! Dense block numbers and the place of each block.

use std::mem::{replace, take};

use hashbrown::HashMap;
use headstart_types::{Block, Disk, KeyError};
use prefetch_index::prefetch_index;
use rustc_hash::FxBuildHasher;

use super::pages::Pages;
use super::placing::{Extent, Placing};

/// The blocks seen so far, numbered in order of first appearance, and where each lies.
///
/// Memory: 12 bytes a block, and what finds its number.
#[derive(Debug, Default)]
pub struct Universe {
    /// By block.
    pub disk_of: Vec<Disk>,
    /// By block: its first sector on that disk.
    pub sector_of: Vec<u64>,
    /// Blocks of file 0 (the only one of block traces and generators) below `DIRECT_MAX`, by block in file: the
    /// number plus one, or zero. A table is a third of a map's size and found without hashing.
    direct: Vec<u32>,
    /// Other blocks.
    pages: Pages,
    /// By block: its file and its place in it; `None` where nobody asks.
    places: Option<Vec<(u32, u64)>>,
    /// Sectors of blocks that are no whole ones: fragments.
    short: HashMap<Block, u32, FxBuildHasher>,
    /// Blocks whose places have been handed over: those above begin with the next one.
    handed_over: usize,
    /// The extent in which a block was placed last, and its first block: file and place in it.
    placed: (u32, u64, Extent),
}

/// Places of blocks that have been numbered one after another.
#[derive(Debug)]
pub struct Fresh {
    disks: Vec<Disk>,
    sectors: Vec<u64>,
}

/// 64 MB of table at most, which only pages that are used cost: 128 GB of 8 KiB blocks.
const DIRECT_MAX: u64 = 1 << 24;

/// Block numbers are 32 bits and the highest is reserved.
const BLOCKS_MAX: usize = u32::MAX as usize - 1;

impl Universe {
    /// Adds a block at a known place.
    pub fn push(&mut self, disk: Disk, sector: u64) -> Block {
        self.disk_of.push(disk);
        self.sector_of.push(sector);
        Block(self.len() as u32 - 1)
    }

    /// Blocks.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.handed_over + self.disk_of.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Their numbers, without their places; this one keeps the places, and numbers nothing any more.
    #[must_use]
    pub fn numbers_apart(&mut self) -> Self {
        let places_stay =
            Self { disk_of: take(&mut self.disk_of), sector_of: take(&mut self.sector_of), ..Self::default() };
        let handed_over = self.handed_over + places_stay.disk_of.len();
        Self { handed_over, ..replace(self, places_stay) }
    }

    /// The places of the blocks that were numbered since the last call.
    pub fn take_fresh(&mut self) -> Fresh {
        self.handed_over = self.len();
        Fresh { disks: take(&mut self.disk_of), sectors: take(&mut self.sector_of) }
    }

    /// Adds places that another one has numbered.
    pub fn add(&mut self, fresh: &Fresh) {
        self.disk_of.extend_from_slice(&fresh.disks);
        self.sector_of.extend_from_slice(&fresh.sectors);
    }

    /// From now on [`Universe::place_of`] may be asked. Nothing has been numbered yet.
    pub fn keep_places(&mut self) {
        self.places.get_or_insert_with(Vec::new);
    }

    /// File of `block`, and which of its blocks it is.
    ///
    /// # Panics
    /// Places are not kept.
    #[must_use]
    pub fn place_of(&self, block: Block) -> (u32, u64) {
        self.places.as_ref().expect("places are kept where they are asked for")[block.index()]
    }

    /// Whether any block is no whole one.
    #[inline]
    #[must_use]
    pub fn has_fragments(&self) -> bool {
        !self.short.is_empty()
    }

    /// Sectors of `block`, where it is no whole block.
    #[inline]
    #[must_use]
    pub fn short(&self, block: Block) -> Option<u32> {
        if self.short.is_empty() {
            return None;
        }
        self.short.get(&block).copied()
    }

    /// Adds a block that only has a name: it counts as the next of file 0.
    pub fn push_named(&mut self, disk: Disk, sector: u64) -> Block {
        let block = self.push(disk, sector);
        self.direct.push(block.0 + 1);
        if let Some(places) = &mut self.places {
            places.push((0, u64::from(block.0)));
        }
        block
    }

    /// Brings what is known of block `at` of file 0 into the processor's cache.
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

    /// The number of block `at` of `file`; on first sight the block is placed.
    ///
    /// # Errors
    /// It lies beyond the device, or there are too many blocks.
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

    /// As [`Universe::number`]; `None` where the block has no place.
    #[must_use]
    pub fn name(&mut self, file: u32, at: u64, placing: &Placing) -> Option<Block> {
        self.find(file, at).or_else(|| {
            self.lies(file, at, placing).ok()?;
            self.number(file, at, placing).ok()
        })
    }

    /// Disk and first sector of block `at` of `file`: by a rule, or a neighbour of the last block that was placed.
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
