//! Clients: closed-loop processes that wait for each request, and open-loop arrivals.

use headstart_policy::readahead::Asked;
use headstart_policy::BlockMap;
use headstart_types::{Block, Nanos, Position, NEVER};

use super::process::{Process, TIME_MAX};
use super::supply::{Cursor, Supply};
use crate::level::LookupCounts;
use crate::parallel::Draws;

/// The references of a client.
pub enum Reads<R> {
    /// Its own references, in order.
    Own(Cursor<R>),
    /// References that it takes from a string of its program, one at a time.
    Taken {
        /// The reference taken last.
        block: Block,
        /// Think time after each reference.
        think: Draws,
    },
}

impl<R> Reads<R> {
    /// References from a program's strings, none of which has been taken.
    #[must_use]
    pub fn taking(think: Draws) -> Self {
        Self::Taken { block: Block(u32::MAX), think }
    }
}

/// How a client's references were found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReferenceCounts {
    /// Resident.
    pub hits_ready: u64,
    /// In flight.
    pub hits_unready: u64,
    /// Neither resident nor in flight.
    pub misses: u64,
}

impl ReferenceCounts {
    /// Adds the lookup of a request.
    pub fn add(&mut self, looked: &LookupCounts) {
        self.hits_ready += u64::from(looked.hits_ready);
        self.hits_unready += u64::from(looked.hits_unready);
        self.misses += u64::from(looked.misses);
    }
}

/// A process and its references.
pub struct Client<R> {
    /// Its state and its times.
    pub process: Process,
    /// The level that it uses.
    pub tier: usize,
    /// Whether that level's policy asks for whole requests.
    pub(super) takes_requests: bool,
    /// Its references.
    pub reads: Reads<R>,
    /// With shared hints: the position of each of its references; empty if it gives no hints.
    pub positions: Option<Vec<Position>>,
    /// Number of blocks in the current request.
    pub count: u32,
    /// Number of completed requests.
    pub requests: u64,
    /// Number of references served.
    pub references: u64,
    /// How they were found.
    pub found: ReferenceCounts,
    /// Whether it acts at this instant.
    pub is_due: bool,
    /// Whether it has started a read without a lookup so far.
    pub has_begun: bool,
    /// [`Process::charged`] before this instant's decisions: later charges overlap a wait.
    pub charged_before: Nanos,
}

impl<R> Client<R> {
    /// A process that uses level `tier`.
    #[must_use]
    pub fn new(process: Process, tier: usize, reads: Reads<R>) -> Self {
        Self {
            process,
            tier,
            takes_requests: false,
            reads,
            positions: None,
            count: 0,
            requests: 0,
            references: 0,
            found: ReferenceCounts::default(),
            is_due: false,
            has_begun: false,
            charged_before: Nanos::ZERO,
        }
    }

    /// Reads the next chunk if the current one is used up; returns false at the end. For references taken from strings
    /// always true.
    ///
    /// # Errors
    /// The trace has an error there.
    pub fn has_more<S>(&mut self, space: &S) -> Result<bool, R::Error>
    where
        R: Supply<S>,
    {
        match &mut self.reads {
            Reads::Own(cursor) => cursor.has_more(space),
            Reads::Taken { .. } => Ok(true),
        }
    }

    /// Whether the next block is in the current chunk.
    #[inline]
    #[must_use]
    pub fn has_at_hand(&self) -> bool {
        matches!(&self.reads, Reads::Own(cursor) if cursor.at < cursor.chunk.blocks.len())
    }

    /// The next `count` blocks.
    #[inline(always)]
    #[must_use]
    pub fn blocks(&self, count: u32) -> &[Block] {
        match &self.reads {
            Reads::Own(cursor) => &cursor.chunk.blocks[cursor.at..cursor.at + count as usize],
            Reads::Taken { block, .. } => std::slice::from_ref(block),
        }
    }

    /// The next `count` blocks, each with its number of requested bytes; `None`: all.
    #[must_use]
    pub fn parts(&self, count: u32) -> Vec<(Block, Option<u32>)> {
        let bytes = |at| match &self.reads {
            Reads::Own(cursor) => cursor.chunk.bytes_of(cursor.at + at),
            Reads::Taken { .. } => None,
        };
        self.blocks(count).iter().enumerate().map(|(at, block)| (*block, bytes(at))).collect()
    }

    /// The next block.
    #[inline]
    #[must_use]
    pub fn block(&self) -> Block {
        self.blocks(1)[0]
    }

    /// The position of the next reference; `NEVER` without hints.
    #[inline]
    #[must_use]
    pub fn position(&self) -> Position {
        match &self.positions {
            Some(positions) if positions.is_empty() => NEVER,
            Some(positions) => positions[self.references as usize],
            None => self.process.position,
        }
    }

    /// The next request: one block, or with `whole` the rest of its request.
    #[must_use]
    pub fn asked(&self, space: &impl BlockMap, whole: bool, client: u32) -> Asked {
        let (file, first) = space.place(self.block());
        let (mut count, mut ends_inside) = (1, false);
        if let Reads::Own(cursor) = &self.reads {
            while whole && !cursor.chunk.ends_request(cursor.at + count as usize - 1) {
                count += 1;
            }
            ends_inside = cursor.chunk.ends_inside(cursor.at + count as usize - 1);
        }
        Asked { file, first, count, client, ends_inside }
    }

    /// Whether the next reference is a write.
    #[inline]
    #[must_use]
    pub fn writes(&self) -> bool {
        matches!(&self.reads, Reads::Own(cursor) if cursor.chunk.is_write(cursor.at))
    }

    /// The arrival time of the next open-loop request.
    #[must_use]
    pub fn arrival(&self) -> Nanos {
        match &self.reads {
            Reads::Own(cursor) => cursor.chunk.times[cursor.at],
            Reads::Taken { .. } => Nanos::ZERO,
        }
    }

    /// Skips `count` blocks of an open-loop request, without time of a process.
    pub fn pass(&mut self, count: u32) {
        if let Reads::Own(cursor) = &mut self.reads {
            cursor.at += count as usize;
        }
        self.process.position += count;
        self.references += u64::from(count);
        self.requests += 1;
    }

    /// Serves the `count` blocks that were requested together: pays, thinks, continues. Returns the response time of
    /// the request that this ends, if it ends one.
    // One copy, as `System::decide`.
    #[inline(never)]
    pub fn served(&mut self, now: Nanos, count: u32) -> Option<Nanos> {
        let mut response = self.served_one(now);
        let mut think = self.process.last_think;
        for _ in 1..count {
            response = self.served_one(now);
            think += self.process.last_think;
        }
        // The think time before the next request is the sum over all blocks of this one.
        self.process.last_think = think;
        response
    }

    #[inline(always)]
    fn served_one(&mut self, now: Nanos) -> Option<Nanos> {
        let (think, ends, bytes) = match &mut self.reads {
            Reads::Own(cursor) => {
                let at = cursor.at;
                cursor.at += 1;
                (cursor.chunk.think.after(at), cursor.chunk.ends_request(at), cursor.chunk.bytes_of(at))
            }
            Reads::Taken { think, .. } => (think(), true, None),
        };
        self.requests += u64::from(ends && bytes != Some(0));
        self.references += 1;
        self.process.served(now, think.min(TIME_MAX), ends, bytes)
    }

    /// The progress as (done, total), in units of its input.
    #[must_use]
    pub fn progress<S>(&self) -> (u64, u64)
    where
        R: Supply<S>,
    {
        match &self.reads {
            Reads::Own(cursor) => cursor.progress(),
            Reads::Taken { .. } => (0, 0),
        }
    }
}
