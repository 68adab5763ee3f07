//! Those who ask: processes that wait for each request, and open arrivals that wait for nobody.

use headstart_policy::readahead::Asked;
use headstart_policy::Space;
use headstart_types::{Block, Nanos};

use crate::process::Process;
use crate::run::Cursor;
use crate::workload::Places;
use crate::Error;

/// A process and what it asks for.
pub struct Client {
    /// Its time line.
    pub process: Process,
    /// The level that it asks.
    pub tier: usize,
    /// What it will ask for.
    pub cursor: Cursor,
    /// Blocks of the request that is under way.
    pub count: u32,
    /// Requests done.
    pub requests: u64,
    /// References served.
    pub references: u64,
    /// Whether it acts at this instant.
    pub is_due: bool,
    /// Its driver work before this instant's decisions: what comes since overlaps a wait.
    pub driver_before: Nanos,
    /// Blocks whose writes it waits for.
    pub writing: Vec<Block>,
}

/// No block: what a process waits for that has asked for a request as a whole.
pub const NOBODY: Block = Block(u32::MAX);

impl Client {
    /// A process that asks level `tier`.
    #[must_use]
    pub fn new(process: Process, tier: usize, cursor: Cursor) -> Self {
        Self {
            process,
            tier,
            cursor,
            count: 0,
            requests: 0,
            references: 0,
            is_due: false,
            driver_before: Nanos::ZERO,
            writing: Vec::new(),
        }
    }

    /// Reads on where the chunk is used up; false at the end.
    ///
    /// # Errors
    /// The trace is wrong there.
    pub fn has_more(&mut self) -> Result<bool, Error> {
        if self.cursor.at < self.cursor.chunk.blocks.len() {
            return Ok(true);
        }
        let Some(supply) = &mut self.cursor.supply else { return Ok(false) };
        self.cursor.at = 0;
        supply.next(&mut self.cursor.chunk)
    }

    /// The block that comes next.
    #[must_use]
    pub fn block(&self) -> Block {
        self.cursor.chunk.blocks[self.cursor.at]
    }

    /// What is asked for next: a block, or all that is left of its request.
    #[must_use]
    pub fn asked(&self, places: &Places, whole: bool, client: u32) -> Asked {
        let chunk = &self.cursor.chunk;
        let (file, first) = places.place(chunk.blocks[self.cursor.at]);
        let mut count = 1;
        if whole {
            while !chunk.ends_request(self.cursor.at + count as usize - 1) {
                count += 1;
            }
        }
        Asked { file, first, count, client }
    }

    /// Whether what comes next is a write.
    #[must_use]
    pub fn writes(&self) -> bool {
        self.cursor.chunk.is_write(self.cursor.at)
    }

    /// One of the blocks whose writes it waits for is on its disk.
    pub fn written(&mut self, now: Nanos, block: Block) {
        if let Some(at) = self.writing.iter().position(|other| *other == block) {
            self.writing.swap_remove(at);
            if self.writing.is_empty() {
                self.process.arrived(now, NOBODY, true);
            }
        }
    }

    /// When the next request arrives, of open arrivals.
    #[must_use]
    pub fn arrival(&self) -> Nanos {
        self.cursor.chunk.times[self.cursor.at]
    }

    /// Goes past `count` blocks without a process's time: of open arrivals.
    pub fn pass(&mut self, count: u32) {
        self.cursor.at += count as usize;
        self.process.position += count;
        self.references += u64::from(count);
        self.requests += 1;
    }

    /// The `count` blocks that were asked for together have been served: pays, thinks, goes on. Returns the response
    /// time of the request that this ends, if it ends one.
    pub fn served(&mut self, now: Nanos, count: u32) -> Option<Nanos> {
        let mut response = None;
        for _ in 0..count {
            let at = self.cursor.at;
            let think = self.cursor.chunk.think.after(at).min(crate::run::TIME_MAX);
            let ends = self.cursor.chunk.ends_request(at);
            response = self.process.served(now, think, ends);
            self.requests += u64::from(ends);
            self.references += 1;
            self.cursor.at += 1;
        }
        response
    }
}
