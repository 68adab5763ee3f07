//! Those who ask: processes that wait for each request, and open arrivals that wait for nobody.

use headstart_policy::readahead::Asked;
use headstart_policy::Space;
use headstart_types::{Block, Nanos, Position, NEVER};

use super::process::{Process, TIME_MAX};
use super::supply::{Cursor, Supply};
use crate::level::Looked;
use crate::parallel::Draws;

/// What a process reads.
pub enum Reads<R> {
    /// References of its own, in order.
    Own(Cursor<R>),
    /// What it takes from a string of its program, one reference at a time.
    Taken {
        /// The reference that it has taken.
        block: Block,
        /// Think time after each.
        think: Draws,
    },
}

impl<R> Reads<R> {
    /// References of a program's strings, none of which has been taken yet.
    #[must_use]
    pub fn taking(think: Draws) -> Self {
        Self::Taken { block: Block(u32::MAX), think }
    }
}

/// How its references were found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Found {
    /// Resident.
    pub hits_ready: u64,
    /// On their way.
    pub hits_unready: u64,
    /// Neither.
    pub misses: u64,
}

impl Found {
    /// Adds a request's.
    pub fn add(&mut self, looked: &Looked) {
        self.hits_ready += u64::from(looked.hits_ready);
        self.hits_unready += u64::from(looked.hits_unready);
        self.misses += u64::from(looked.misses);
    }
}

/// A process and what it asks for.
pub struct Client<R> {
    /// Its time line.
    pub process: Process,
    /// The level that it asks.
    pub tier: usize,
    /// Whether that level's policy is asked about requests.
    pub(super) asks: bool,
    /// What it will ask for.
    pub reads: Reads<R>,
    /// Of processes that share hints: the position of each of its references; empty of one that gives none.
    pub positions: Option<Vec<Position>>,
    /// Blocks of the request that is under way.
    pub count: u32,
    /// Requests done.
    pub requests: u64,
    /// References served.
    pub references: u64,
    /// How they were found.
    pub found: Found,
    /// Whether it acts at this instant.
    pub is_due: bool,
    /// It has begun a read, and has not looked it up.
    pub has_begun: bool,
    /// [`Process::charged`] before this instant's decisions: what comes since overlaps a wait.
    pub charged_before: Nanos,
}

impl<R> Client<R> {
    /// A process that asks level `tier`.
    #[must_use]
    pub fn new(process: Process, tier: usize, reads: Reads<R>) -> Self {
        Self {
            process,
            tier,
            asks: false,
            reads,
            positions: None,
            count: 0,
            requests: 0,
            references: 0,
            found: Found::default(),
            is_due: false,
            has_begun: false,
            charged_before: Nanos::ZERO,
        }
    }

    /// Reads on where the chunk is used up; false at the end. Whether a string has more is the program's business.
    ///
    /// # Errors
    /// The trace is wrong there.
    pub fn has_more<S>(&mut self, space: &S) -> Result<bool, R::Error>
    where
        R: Supply<S>,
    {
        match &mut self.reads {
            Reads::Own(cursor) => cursor.has_more(space),
            Reads::Taken { .. } => Ok(true),
        }
    }

    /// Whether there is a next block, as far as it has read.
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

    /// The same, each with how many of its bytes are asked for; `None`: all.
    #[must_use]
    pub fn parts(&self, count: u32) -> Vec<(Block, Option<u32>)> {
        let bytes = |at| match &self.reads {
            Reads::Own(cursor) => cursor.chunk.bytes_of(cursor.at + at),
            Reads::Taken { .. } => None,
        };
        self.blocks(count).iter().enumerate().map(|(at, block)| (*block, bytes(at))).collect()
    }

    /// The block that comes next.
    #[inline]
    #[must_use]
    pub fn block(&self) -> Block {
        self.blocks(1)[0]
    }

    /// The position of the next reference.
    #[inline]
    #[must_use]
    pub fn position(&self) -> Position {
        match &self.positions {
            Some(positions) if positions.is_empty() => NEVER,
            Some(positions) => positions[self.references as usize],
            None => self.process.position,
        }
    }

    /// What is asked for next: a block, or all that is left of its request.
    #[must_use]
    pub fn asked(&self, space: &impl Space, whole: bool, client: u32) -> Asked {
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

    /// Whether what comes next is a write.
    #[inline]
    #[must_use]
    pub fn writes(&self) -> bool {
        matches!(&self.reads, Reads::Own(cursor) if cursor.chunk.is_write(cursor.at))
    }

    /// When the next request arrives, of open arrivals.
    #[must_use]
    pub fn arrival(&self) -> Nanos {
        match &self.reads {
            Reads::Own(cursor) => cursor.chunk.times[cursor.at],
            Reads::Taken { .. } => Nanos::ZERO,
        }
    }

    /// Goes past `count` blocks without a process's time: of open arrivals.
    pub fn pass(&mut self, count: u32) {
        if let Reads::Own(cursor) = &mut self.reads {
            cursor.at += count as usize;
        }
        self.process.position += count;
        self.references += u64::from(count);
        self.requests += 1;
    }

    /// The `count` blocks that were asked for together have been served: pays, thinks, goes on. Returns the response
    /// time of the request that this ends, if it ends one.
    // One copy, as `System::decide`.
    #[inline(never)]
    pub fn served(&mut self, now: Nanos, count: u32) -> Option<Nanos> {
        let mut response = self.served_one(now);
        let mut think = self.process.last_think;
        for _ in 1..count {
            response = self.served_one(now);
            think += self.process.last_think;
        }
        // What comes before the next request is the think time after all blocks of this one.
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

    /// How far it is: (done, total), in units of its input.
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
