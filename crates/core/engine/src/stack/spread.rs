//! Levels of one tier that share its blocks: servers. Each block belongs to one server. A server stores its parts of a
//! file contiguously and does not know the other blocks.

use headstart_policy::BlockMap;
use headstart_types::{Block, Disk, Spread};

/// The share of a level that is one of several servers, or is below one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// How blocks are distributed.
    pub spread: Spread,
    /// Number of the server, from 0.
    pub server: u32,
}

/// The blocks as a level sees them.
#[derive(Clone, Copy)]
pub enum LevelSpace<'a, S> {
    /// All blocks, in their files.
    All(&'a S),
    /// Only those of a server, in its parts of the files.
    Part(Part<'a, S>),
}

impl<'a, S: BlockMap> LevelSpace<'a, S> {
    /// The view of `space` for a level with that share.
    #[inline(always)]
    pub fn new(space: &'a S, share: Option<Share>) -> Self {
        match share {
            None => LevelSpace::All(space),
            Some(share) => LevelSpace::Part(Part { space, share }),
        }
    }

    /// The view as a trait object, for a policy.
    #[inline(always)]
    pub fn as_space(&self) -> &dyn BlockMap {
        match self {
            LevelSpace::All(space) => *space,
            LevelSpace::Part(part) => part,
        }
    }
}

/// The blocks of one server.
#[derive(Clone, Copy)]
pub struct Part<'a, S> {
    space: &'a S,
    share: Share,
}

impl<S> Part<'_, S> {
    fn global(&self, file: u32, local: u64) -> Option<u64> {
        self.share.spread.global(file, (self.share.server, local))
    }
}

impl<S: BlockMap> BlockMap for Part<'_, S> {
    fn block(&self, file: u32, index: u64) -> Option<Block> {
        self.space.block(file, self.global(file, index)?)
    }

    fn known(&self, file: u32, index: u64) -> Option<Block> {
        self.space.known(file, self.global(file, index)?)
    }

    fn place(&self, block: Block) -> (u32, u64) {
        let (file, index) = self.space.place(block);
        let (server, local) = self.share.spread.local(file, index);
        debug_assert_eq!(server, self.share.server, "{block:?} is on another server");
        (file, local)
    }

    fn file_blocks(&self, file: u32) -> Option<u64> {
        self.space.file_blocks(file).map(|blocks| self.share.spread.blocks_of(file, self.share.server, blocks))
    }

    fn disk(&self, block: Block) -> Disk {
        self.space.disk(block)
    }

    fn blocks(&self) -> usize {
        self.space.blocks()
    }

    fn sector(&self, block: Block) -> Option<u64> {
        self.space.sector(block)
    }

    fn adjoins(&self, block: Block, next: Block) -> bool {
        self.space.adjoins(block, next)
    }

    fn prefetch(&self, block: Block) {
        self.space.prefetch(block);
    }
}
