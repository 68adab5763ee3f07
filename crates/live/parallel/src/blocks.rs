//! The blocks of the file, and the mailbox between the machine and the disks.

use std::collections::VecDeque;

use headstart_engine::{Devices, Ended, From, IoRequest, Kind, Pieces, What};
use headstart_policy::BlockMap;
use headstart_types::{Block, Disk, Nanos};

/// The blocks of one file, all known from the start and lying in the order of their numbers.
#[derive(Debug)]
pub struct Numbered {
    /// By block: its disk.
    pub disk_of: Vec<Disk>,
    /// By block: its first sector there.
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

/// A request for a disk: blocks that lie one after another there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Request {
    /// The order that it is a piece of.
    pub slot: usize,
    pub blocks: Vec<Block>,
    pub write: bool,
}

/// Orders of the machine that the disks have not been given, and what they have done that the machine has not seen.
#[derive(Debug)]
pub(super) struct Mailbox {
    pub orders: Vec<(Disk, Request)>,
    block_sectors: u64,
    pieces: Pieces,
    ended: VecDeque<(Ended, Block)>,
}

impl Mailbox {
    pub fn new(block_sectors: u64) -> Self {
        Self { orders: Vec::new(), block_sectors, pieces: Pieces::default(), ended: VecDeque::new() }
    }

    /// A disk has done a request, which took `service`.
    pub fn done(&mut self, request: &Request, service: Nanos) {
        if let Some(ended) = self.pieces.ended(request.slot, service, request.write) {
            let mut blocks = Vec::new();
            self.pieces.take(request.slot, &mut blocks);
            self.ended.extend(blocks.into_iter().map(|block| (ended, block)));
        }
    }

    /// Whether the machine has something to look at.
    pub fn is_empty(&self) -> bool {
        self.ended.is_empty()
    }
}

impl<S: BlockMap> Devices<S> for Mailbox {
    fn submit(&mut self, _now: Nanos, from: From, order: IoRequest<'_>, space: &S) -> u32 {
        let level = from.level;
        if order.kind == Kind::Allocate {
            let ended = Ended { level, what: What::Allocated };
            self.ended.extend(order.blocks.iter().map(|block| (ended, *block)));
            return 0;
        }
        let slot = self.pieces.open(level, order.blocks);
        let place = |block: &Block| (space.disk(*block), space.sector(*block));
        let follows = |one: &Block, next: &Block| {
            let (disk, sector) = place(one);
            place(next) == (disk, sector.map(|sector| sector + self.block_sectors))
        };
        let write = order.kind == Kind::Write;
        let before = self.orders.len();
        for run in order.blocks.chunk_by(follows) {
            self.pieces.add(slot);
            self.orders.push((space.disk(run[0]), Request { slot, blocks: run.to_vec(), write }));
        }
        (self.orders.len() - before) as u32
    }

    fn start(&mut self, _now: Nanos) {
        // The disks are given their orders when the machine's turn is over.
    }

    fn next_event(&self) -> Option<Nanos> {
        // When a disk is done is the disk's business.
        None
    }

    fn ended(&mut self, _now: Nanos, _space: &S, into: &mut Vec<Block>) -> Option<Ended> {
        let (ended, block) = self.ended.pop_front()?;
        into.push(block);
        Some(ended)
    }
}
