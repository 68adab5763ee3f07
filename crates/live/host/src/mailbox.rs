//! The mailbox between the machine and a live host: requests that the host has not taken, and completions that the
//! machine has not seen.
//!
//! A host completes orders block by block ([`Mailbox::end`]) or by request, in which case an order completes with its
//! last request ([`Mailbox::end_request`]).

use std::collections::VecDeque;

use headstart_engine::{Devices, Ended, From, IoRequest, Kind, Pieces, What};
use headstart_policy::BlockMap;
use headstart_types::{Block, Disk, Nanos};

/// A request for a disk: adjacent blocks of an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The order it belongs to, if orders complete by request.
    pub slot: usize,
    pub disk: Disk,
    pub kind: Kind,
    pub blocks: Vec<Block>,
}

#[derive(Debug, Default)]
pub struct Mailbox {
    pub requests: Vec<Request>,
    /// Prefetches of the level of a process that is only watched, in order.
    pub wanted: Vec<Block>,
    ended: VecDeque<(Ended, Block)>,
    /// Orders that complete by request.
    pieces: Option<Pieces>,
    /// Distance between adjacent blocks on a disk, in sectors.
    block_sectors: u64,
    /// The level of a process that is only watched: its demand fetches complete at once.
    watched: Option<u32>,
    /// The level whose blocks the host writes to a disk: its allocations become requests.
    spill: Option<u32>,
}

impl Mailbox {
    /// Orders complete with their last request; adjacent blocks are `block_sectors` apart.
    #[must_use]
    pub fn by_request(block_sectors: u64) -> Self {
        Self { pieces: Some(Pieces::default()), block_sectors, ..Self::default() }
    }

    /// Orders complete block by block. Allocations of level `spill` are requests, to write the blocks to its disk.
    /// Demand fetches of level `watched` complete at once, and its prefetches are [`wanted`](Self::wanted).
    #[must_use]
    pub fn of_levels(watched: Option<u32>, spill: Option<u32>) -> Self {
        Self { watched, spill, ..Self::default() }
    }

    /// Completes a block of an order of `level`.
    pub fn end(&mut self, level: u32, what: What, block: Block) {
        self.ended.push_back((Ended { level, what }, block));
    }

    /// Completes a request, which took `service`.
    pub fn end_request(&mut self, request: &Request, service: Nanos) {
        let Some(pieces) = &mut self.pieces else { return };
        if let Some(ended) = pieces.ended(request.slot, service, request.kind == Kind::Write) {
            let mut blocks = Vec::new();
            pieces.take(request.slot, &mut blocks);
            self.ended.extend(blocks.into_iter().map(|block| (ended, block)));
        }
    }

    /// Whether there are completions that the machine has not seen.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        !self.ended.is_empty()
    }
}

impl<S: BlockMap> Devices<S> for Mailbox {
    fn submit(&mut self, _now: Nanos, from: From, order: IoRequest<'_>, space: &S) -> u32 {
        let IoRequest { blocks, kind, disk } = order;
        let is_watched = self.watched == Some(from.level);
        let needs_nothing = match kind {
            Kind::Allocate => self.spill != Some(from.level),
            Kind::Prefetch => false,
            Kind::Demand | Kind::Write => is_watched,
        };
        if needs_nothing {
            blocks.iter().for_each(|block| self.end(from.level, What::Allocated, *block));
            return 0;
        }
        if is_watched {
            self.wanted.extend(blocks);
            return 1;
        }
        let slot = self.pieces.as_mut().map_or(0, |pieces| pieces.open(from.level, blocks));
        let follows = |one: &Block, next: &Block| {
            let after = space.sector(*one).map(|sector| sector + self.block_sectors);
            space.disk(*one) == space.disk(*next) && after == space.sector(*next)
        };
        let before = self.requests.len();
        for run in blocks.chunk_by(follows) {
            self.pieces.iter_mut().for_each(|pieces| pieces.add(slot));
            let disk = if self.spill.is_some() { disk } else { space.disk(run[0]) };
            self.requests.push(Request { slot, disk, kind, blocks: run.to_vec() });
        }
        (self.requests.len() - before) as u32
    }

    /// The host takes requests after the machine's turn.
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
