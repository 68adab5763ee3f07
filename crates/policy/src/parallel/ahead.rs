//! What the strings of a parallel program are going to read and is not there: the next such block of each string.
//!
//! Each string is gone through once. A position whose block is there (resident or on its way) is *passed*, and comes
//! back only if the block is evicted before the string has got there; so each position costs a constant, and once more
//! for each such eviction. Strings with nothing left to fetch are *closed*, and looked at again only once something has
//! come back, or once a new portion has begun where portions are irregular.
//! Cost: amortised constant, and O(log n) for what comes back. Memory: a few words a string and 4 bytes a passed
//! position of the blocks that are there.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use hashbrown::HashMap;
use headstart_types::{Block, IndexSet, Position, Program};
use rustc_hash::FxBuildHasher;

/// One string.
#[derive(Debug)]
struct Strand {
    /// The next reference that nobody has taken.
    cursor: Position,
    /// Nothing from here on may be prefetched yet.
    limit: Position,
    /// Index of the portion that ends at the limit, or that is about to begin.
    portion: usize,
    /// The first position that has never been looked at.
    next: Position,
    /// Passed positions whose blocks have left, the first on top.
    back: BinaryHeap<Reverse<Position>>,
}

/// The next block of each string that could be prefetched.
#[derive(Debug)]
pub(super) struct Ahead {
    program: Arc<Program>,
    /// References from a string's cursor to the first that may be prefetched.
    min_lead: Position,
    strands: Vec<Strand>,
    /// Strings that may have something to fetch.
    open: IndexSet,
    /// By block that is there: the positions passed over.
    passed: HashMap<Block, Vec<Position>, FxBuildHasher>,
}

impl Ahead {
    pub fn new(program: Arc<Program>, min_lead: Position) -> Self {
        let count = program.string_ends.len();
        let mut open = IndexSet::new(count);
        let strand = |string| {
            let positions = program.string(string);
            let portion = program.portion_ends.partition_point(|end| *end <= positions.start);
            let limit = if program.regular { positions.end } else { positions.start };
            if positions.start < limit {
                open.insert(string);
            }
            Strand { cursor: positions.start, limit, portion, next: positions.start, back: BinaryHeap::new() }
        };
        let strands = (0..count as u32).map(strand).collect();
        Self { program, min_lead, strands, open, passed: HashMap::default() }
    }

    /// Processes of the program.
    pub fn processes(&self) -> usize {
        self.program.string_of.len()
    }

    /// Whether a string may have something to fetch: that of `process`, or any.
    #[inline]
    pub fn may_have(&self, process: Option<u32>) -> bool {
        match process {
            None => !self.open.is_empty(),
            Some(process) => self.open.contains(self.program.string_of[process as usize]),
        }
    }

    /// The references from `position` on, `count` of them, have been taken.
    pub fn taken(&mut self, position: Position, count: u32) {
        if position as usize >= self.program.blocks.len() {
            return;
        }
        let string = self.program.string_at(position);
        let strand = &mut self.strands[string as usize];
        strand.cursor = strand.cursor.max(position.saturating_add(count));
        if self.program.regular {
            return;
        }
        while self.program.portion_ends[strand.portion] < strand.cursor {
            strand.portion += 1;
        }
        let limit = self.program.portion_ends[strand.portion];
        if limit > strand.limit {
            strand.limit = limit;
            self.open.insert(string);
        }
    }

    /// `block` has been evicted.
    pub fn evicted(&mut self, block: Block) {
        let Some(passed) = self.passed.remove(&block) else { return };
        for position in passed {
            let string = self.program.string_at(position);
            let strand = &mut self.strands[string as usize];
            if position >= strand.cursor.saturating_add(self.min_lead) {
                strand.back.push(Reverse(position));
                self.open.insert(string);
            }
        }
    }

    /// The next block that is `absent` of the string of `process`; if there is none and `others`, that of the next
    /// string after it that has one, and from the last string on to the first.
    pub fn next(&mut self, process: u32, others: bool, absent: impl Fn(Block) -> bool) -> Option<Block> {
        let own = self.program.string_of[process as usize];
        if self.open.contains(own) {
            if let Some(block) = self.next_of(own, &absent) {
                return Some(block);
            }
        }
        if !others {
            return None;
        }
        loop {
            // A string without any is closed, so that each step is either the last or ends with fewer open ones.
            let string = self.open.next(own + 1).or_else(|| self.open.next(0))?;
            if let Some(block) = self.next_of(string, &absent) {
                return Some(block);
            }
        }
    }

    /// The next absent block of `string`, which is closed if there is none.
    fn next_of(&mut self, string: u32, absent: impl Fn(Block) -> bool) -> Option<Block> {
        let strand = &mut self.strands[string as usize];
        let first = strand.cursor.saturating_add(self.min_lead);
        while let Some(Reverse(position)) = strand.back.peek().copied() {
            let block = self.program.blocks[position as usize];
            if position >= first {
                if absent(block) {
                    return Some(block);
                }
                self.passed.entry(block).or_default().push(position);
            }
            strand.back.pop();
        }
        strand.next = strand.next.max(first);
        while strand.next < strand.limit {
            let block = self.program.blocks[strand.next as usize];
            if absent(block) {
                return Some(block);
            }
            self.passed.entry(block).or_default().push(strand.next);
            strand.next += 1;
        }
        self.open.remove(string);
        None
    }
}
