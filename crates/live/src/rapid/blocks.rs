//! The blocks of the file, and what the cache's level wants done with them.

use headstart_engine::{Backend, Order};
use headstart_policy::Space;
use headstart_types::{Block, Disk, Nanos};

/// The blocks of one file, all known from the start.
#[derive(Debug)]
pub(super) struct Numbered {
    pub disk_of: Vec<Disk>,
}

impl Space for Numbered {
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
}

/// A request for a disk.
pub(super) type Request = (Block, Disk);

/// Orders of the level, to be given to the disks.
#[derive(Default)]
pub(super) struct Orders(pub Vec<Request>);

impl Backend for Orders {
    fn issue(&mut self, _now: Nanos, order: Order<'_>) {
        self.0.extend(order.blocks.iter().map(|block| (*block, order.disk)));
    }
}
