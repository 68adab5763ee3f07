//! What passes between the machine and a live host: orders that the host has not taken, and ends that the machine has not seen.
//!
//! A host ends orders block by block ([`Mailbox::end`]), or request by request, where an order ends with the last of its requests
//! ([`Mailbox::end_request`]).

use std::collections::VecDeque;

use headstart_engine::{Devices, Ended, From, IoRequest, Kind, Pieces, What};
use headstart_policy::BlockMap;
use headstart_types::{Block, Disk, Nanos};

/// A request for a disk: blocks of an order that lie one after another there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The order that it is a piece of, where orders end by their requests.
    pub slot: usize,
    /// The disk.
    pub disk: Disk,
    /// What to do with the blocks.
    pub kind: Kind,
    /// The blocks.
    pub blocks: Vec<Block>,
}

/// Requests that the host has not taken, and ends that the machine has not seen.
#[derive(Debug, Default)]
pub struct Mailbox {
    /// The requests.
    pub requests: Vec<Request>,
    ended: VecDeque<(Ended, Block)>,
    /// Of orders that end by their requests.
    pieces: Option<Pieces>,
    /// How far apart on a disk blocks lie that follow one another.
    block_sectors: u64,
    /// What is demanded ends at once.
    only_prefetches: bool,
}

impl Mailbox {
    /// Orders end with their last request; blocks that follow one another lie `block_sectors` apart.
    #[must_use]
    pub fn by_request(block_sectors: u64) -> Self {
        Self { pieces: Some(Pieces::default()), block_sectors, ..Self::default() }
    }

    /// Orders end block by block; what is demanded is there, and only prefetches become requests.
    #[must_use]
    pub fn of_prefetches() -> Self {
        Self { only_prefetches: true, ..Self::default() }
    }

    /// A block of an order of `level` has ended.
    pub fn end(&mut self, level: u32, what: What, block: Block) {
        self.ended.push_back((Ended { level, what }, block));
    }

    /// A disk has done a request, which took `service`.
    pub fn end_request(&mut self, request: &Request, service: Nanos) {
        let Some(pieces) = &mut self.pieces else { return };
        if let Some(ended) = pieces.ended(request.slot, service, request.kind == Kind::Write) {
            let mut blocks = Vec::new();
            pieces.take(request.slot, &mut blocks);
            self.ended.extend(blocks.into_iter().map(|block| (ended, block)));
        }
    }

    /// Whether something has ended that the machine has not seen.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        !self.ended.is_empty()
    }
}

impl<S: BlockMap> Devices<S> for Mailbox {
    fn submit(&mut self, _now: Nanos, from: From, order: IoRequest<'_>, space: &S) -> u32 {
        let IoRequest { blocks, kind, .. } = order;
        if kind == Kind::Allocate || self.only_prefetches && kind != Kind::Prefetch {
            blocks.iter().for_each(|block| self.end(from.level, What::Allocated, *block));
            return 0;
        }
        let slot = self.pieces.as_mut().map_or(0, |pieces| pieces.open(from.level, blocks));
        let follows = |one: &Block, next: &Block| {
            let after = space.sector(*one).map(|sector| sector + self.block_sectors);
            space.disk(*one) == space.disk(*next) && after == space.sector(*next)
        };
        let before = self.requests.len();
        for run in blocks.chunk_by(follows) {
            self.pieces.iter_mut().for_each(|pieces| pieces.add(slot));
            self.requests.push(Request { slot, disk: space.disk(run[0]), kind, blocks: run.to_vec() });
        }
        (self.requests.len() - before) as u32
    }

    /// The host takes requests when the machine's turn is over.
    fn start(&mut self, _now: Nanos) {}

    fn next_event(&self) -> Option<Nanos> {
        None
    }

    fn ended(&mut self, _now: Nanos, _space: &S, into: &mut Vec<Block>) -> Option<Ended> {
        let (ended, block) = self.ended.pop_front()?;
        into.push(block);
        Some(ended)
    }
}
