//! What a predictor names, kept until an idle processor fetches it.
//!
//! The predictor hears of every request, as beside a replacement. What it names at a process's request waits in that process's queue:
//! an idle processor takes the first absent block of its own process's queue, or of the next one's. A block that has been asked for in
//! the meantime is not fetched any more. A queue holds the last [`NAMED_MAX`] blocks that were named.
//! Cost: the predictor's, and constant per block named. Memory: 256 bytes a process, 1 byte a block.

use std::collections::VecDeque;

use headstart_types::{Block, Disk, IndexSet, Nanos};

use crate::asking::CachedIn;
use crate::readahead::{Asked, Run};
use crate::{ReadAhead, Space, View};

/// Blocks that wait for each process at most. A guess: more than any processor gets to fetch in an idle period.
const NAMED_MAX: usize = 64;

/// A predictor, and what it has named.
pub(super) struct Predicted {
    predictor: Box<dyn ReadAhead>,
    frames: u32,
    /// By process: what was named at its requests, the first at the front.
    queues: Vec<VecDeque<Block>>,
    /// Processes that have something in their queues.
    open: IndexSet,
    /// By block: named, and neither fetched nor asked for since.
    wanted: Vec<bool>,
    runs: Vec<Run>,
}

impl Predicted {
    pub fn new(predictor: Box<dyn ReadAhead>, processes: usize, frames: u32) -> Self {
        let (queues, open) = (vec![VecDeque::new(); processes], IndexSet::new(processes));
        Self { predictor, frames, queues, open, wanted: Vec::new(), runs: Vec::new() }
    }

    /// Processes of the program.
    pub fn processes(&self) -> usize {
        self.queues.len()
    }

    /// Whether something may be left to fetch of what was named at requests of `process`, or of any.
    #[inline]
    pub fn may_have(&self, process: Option<u32>) -> bool {
        process.map_or(!self.open.is_empty(), |process| self.open.contains(process))
    }

    /// A request has been looked up: the predictor names what comes next.
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

    /// `block` needs no fetch any more.
    pub fn forget(&mut self, block: Block) {
        if let Some(wanted) = self.wanted.get_mut(block.index()) {
            *wanted = false;
        }
    }

    /// A disk has fetched `block`.
    pub fn fetched(&mut self, now: Nanos, disk: Disk, block: Block, space: &dyn Space) {
        self.predictor.fetched(now, disk, block, space);
    }

    /// A block has been evicted.
    pub fn evicted(&mut self, (file, index): (u32, u64), unused: bool) {
        self.predictor.evicted(file, index, unused);
    }

    /// The next block that is `absent` of what was named at requests of `process`; if there is none and `others`, of the next process
    /// after it that has one, and from the last process on to the first.
    pub fn next(&mut self, process: u32, others: bool, absent: impl Fn(Block) -> bool) -> Option<Block> {
        if let Some(block) = self.next_of(process, &absent) {
            return Some(block);
        }
        if !others {
            return None;
        }
        // A queue without any is closed, so that each step is either the last or ends with fewer open ones.
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
