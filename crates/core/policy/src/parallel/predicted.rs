//! Blocks named by a predictor, kept until an idle processor fetches them.
//!
//! The predictor sees every request, as it does beside a replacement. Blocks that it names at a process's request wait
//! in that process's queue. An idle processor takes the first absent block of its own process's queue, or else of the
//! next process's queue. A block that has been requested in the meantime is no longer fetched. A queue holds the last
//! [`NAMED_MAX`] named blocks.
//!
//! Cost: that of the predictor, and constant per named block. Memory: 256 bytes per process, 1 byte per block.

use std::collections::VecDeque;

use headstart_types::{Block, Disk, IndexSet, Nanos};

use crate::readahead::{Asked, Run};
use crate::request_policy::CachedIn;
use crate::{BlockMap, ReadAhead, View};

/// Maximum queue length per process. A guess: more than any processor fetches in an idle period.
const NAMED_MAX: usize = 64;

/// A predictor and the blocks that it has named.
pub(super) struct Predicted {
    predictor: Box<dyn ReadAhead>,
    frames: u32,
    /// For each process: blocks named at its requests, oldest first.
    queues: Vec<VecDeque<Block>>,
    /// Processes whose queues are not empty.
    open: IndexSet,
    /// For each block: whether it was named, and neither fetched nor requested since.
    wanted: Vec<bool>,
    runs: Vec<Run>,
}

impl Predicted {
    pub fn new(predictor: Box<dyn ReadAhead>, processes: usize, frames: u32) -> Self {
        let (queues, open) = (vec![VecDeque::new(); processes], IndexSet::new(processes));
        Self { predictor, frames, queues, open, wanted: Vec::new(), runs: Vec::new() }
    }

    /// Number of processes of the program.
    pub fn processes(&self) -> usize {
        self.queues.len()
    }

    /// Whether blocks named at requests of `process`, or of any process, may remain to be fetched.
    #[inline]
    pub fn may_have(&self, process: Option<u32>) -> bool {
        process.map_or(!self.open.is_empty(), |process| self.open.contains(process))
    }

    /// Called when a request has been looked up: queues what the predictor names.
    pub fn asked(&mut self, now: Nanos, asked: &Asked, view: &View<'_>) {
        view.asked.iter().for_each(|block| self.forget(*block));
        self.runs.clear();
        let cached = CachedIn { view, frames: self.frames };
        self.predictor.asked(now, asked, view.found, &cached, &mut self.runs);
        let Some(queue) = self.queues.get_mut(asked.client as usize) else { return };
        let places = self.runs.iter().flat_map(|run| (run.first..run.end()).map(|index| (run.file, index)));
        for (file, index) in places.take(NAMED_MAX) {
            let Some(block) = view.space.block(file, index) else { continue };
            if block.index() >= self.wanted.len() {
                self.wanted.resize(block.index() + 1, false);
            }
            if !view.state(block).is_absent() || std::mem::replace(&mut self.wanted[block.index()], true) {
                continue;
            }
            queue.push_back(block);
            if queue.len() > NAMED_MAX {
                let first = queue.pop_front().expect("it is longer than that");
                self.wanted[first.index()] = false;
            }
        }
        if !queue.is_empty() {
            self.open.insert(asked.client);
        }
    }

    /// Notes that `block` needs no fetch any more.
    pub fn forget(&mut self, block: Block) {
        if let Some(wanted) = self.wanted.get_mut(block.index()) {
            *wanted = false;
        }
    }

    /// Called when `disk` has fetched `block`.
    pub fn fetched(&mut self, now: Nanos, disk: Disk, block: Block, space: &dyn BlockMap) {
        self.predictor.fetched(now, disk, block, space);
    }

    /// Called when a block has been evicted.
    pub fn evicted(&mut self, (file, index): (u32, u64), unused: bool) {
        self.predictor.evicted(file, index, unused);
    }

    /// The next `absent` block named at requests of `process`. If there is none and `others` is set, that of the next
    /// process after it that has one, wrapping around.
    pub fn next(&mut self, process: u32, others: bool, absent: impl Fn(Block) -> bool) -> Option<Block> {
        if let Some(block) = self.next_of(process, &absent) {
            return Some(block);
        }
        if !others {
            return None;
        }
        // A queue without any is closed, so each step either returns or reduces the number of open queues.
        loop {
            let other = self.open.next(process + 1).or_else(|| self.open.next(0))?;
            if let Some(block) = self.next_of(other, &absent) {
                return Some(block);
            }
        }
    }

    fn next_of(&mut self, process: u32, absent: impl Fn(Block) -> bool) -> Option<Block> {
        let queue = &mut self.queues[process as usize];
        while let Some(block) = queue.front().copied() {
            if self.wanted[block.index()] && absent(block) {
                return Some(block);
            }
            queue.pop_front();
            self.wanted[block.index()] = false;
        }
        self.open.remove(process);
        None
    }
}
