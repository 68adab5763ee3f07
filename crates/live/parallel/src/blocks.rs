//! The blocks of the file.

use headstart_policy::BlockMap;
use headstart_types::{Block, Disk};

/// The blocks of one file, all known from the start and placed in numeric order.
#[derive(Debug)]
pub struct Numbered {
    /// Disk of each block.
    pub disk_of: Vec<Disk>,
    /// First sector of each block on its disk.
    pub sector_of: Vec<u64>,
}

impl BlockMap for Numbered {
    fn block(&self, file: u32, index: u64) -> Option<Block> {
        self.known(file, index)
    }

    fn known(&self, file: u32, index: u64) -> Option<Block> {
        (file == 0 && index < self.disk_of.len() as u64).then_some(Block(index as u32))
    }

    fn place(&self, block: Block) -> (u32, u64) {
        (0, u64::from(block.0))
    }

    fn file_blocks(&self, _file: u32) -> Option<u64> {
        Some(self.disk_of.len() as u64)
    }

    fn disk(&self, block: Block) -> Disk {
        self.disk_of[block.index()]
    }

    fn blocks(&self) -> usize {
        self.disk_of.len()
    }

    fn sector(&self, block: Block) -> Option<u64> {
        self.sector_of.get(block.index()).copied()
    }
}
