//! Dense block numbers and the place of each block.

use hashbrown::HashMap;
use headstart_types::{Block, Disk, KeyError};
use rustc_hash::FxBuildHasher;

use super::placing::Placing;
use crate::Error;

/// The blocks seen so far, numbered in order of first appearance, and where each lies.
///
/// Memory: 12 bytes a block, and about 32 in the table that finds its number.
#[derive(Debug, Default)]
pub struct Universe {
    /// By block.
    pub disk_of: Vec<Disk>,
    /// By block: its first sector on that disk.
    pub sector_of: Vec<u64>,
    /// Blocks of files 0, by block in file: the only map that block traces and generators need.
    plain: HashMap<u64, u32, FxBuildHasher>,
    /// Blocks of other files.
    in_files: HashMap<(u32, u64), u32, FxBuildHasher>,
}

/// Block numbers are 32 bits and the highest is reserved.
const BLOCKS_MAX: usize = u32::MAX as usize - 1;

impl Universe {
    /// Adds a block at a known place.
    pub fn push(&mut self, disk: Disk, sector: u64) -> Block {
        self.disk_of.push(disk);
        self.sector_of.push(sector);
        Block(self.disk_of.len() as u32 - 1)
    }

    /// The number of block `at` of `file`; on first sight the block is placed.
    ///
    /// # Errors
    /// It lies beyond the device, or there are too many blocks.
    #[inline]
    pub fn number(&mut self, file: u32, at: u64, placing: &Placing) -> Result<Block, Error> {
        let fresh = self.disk_of.len() as u32;
        let number = if file == 0 {
            *self.plain.entry(at).or_insert(fresh)
        } else {
            *self.in_files.entry((file, at)).or_insert(fresh)
        };
        if number == fresh {
            self.place(file, at, placing)?;
        }
        Ok(Block(number))
    }

    #[cold]
    fn place(&mut self, file: u32, at: u64, placing: &Placing) -> Result<(), Error> {
        if self.disk_of.len() >= BLOCKS_MAX {
            let problem = format!("more than {BLOCKS_MAX} distinct blocks");
            return Err(KeyError::new("workload.block_size", problem, "larger blocks, or a limit").into());
        }
        let (disk, sector) = placing.place(file, at)?;
        self.push(disk, sector);
        Ok(())
    }
}
