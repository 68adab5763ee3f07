//! Finds the next block that each string of a parallel program will read and that is absent.
//!
//! Each string is scanned once; identical strings (`lw`) form one *course*, which is scanned once for all. A position
//! whose block is there (resident or in flight) is *passed*, and comes *back* only if the block is evicted. So each
//! position of a course costs a constant, and another for each eviction after it was passed. Strings with nothing left
//! to fetch are closed, and examined again only after something has come back to their course, or, with irregular
//! portions, when a new portion has begun.
//!
//! Cost: amortised constant per event, a few words per search. Memory: a few words per string, 1 bit per reference, 4
//! bytes per block.

use std::sync::Arc;

use hashbrown::HashMap;
use headstart_types::{Block, IndexSet, Position, Program, NEVER};
use rustc_hash::FxBuildHasher;

/// One string.
#[derive(Debug)]
struct Strand {
    course: u32,
    /// Its first position.
    begin: Position,
    /// Its next reference that no process has taken.
    cursor: Position,
    /// Exclusive end of what may be prefetched now.
    limit: Position,
    /// Index of the portion that ends at the limit, or that is about to begin.
    portion: usize,
    /// Whether its course lists it as closed.
    listed: bool,
}

/// What identical strings read, in the positions of the first of them.
#[derive(Debug)]
struct Course {
    begin: Position,
    /// Number of strings that read this.
    strings: u32,
    /// The first position that has never been examined.
    next: Position,
    /// Its strings closed since something last came back; some may have been reopened.
    closed: Vec<u32>,
}

/// Finds the next block of each string that could be prefetched.
#[derive(Debug)]
pub(super) struct Ahead {
    program: Arc<Program>,
    /// Minimum number of references from a string's cursor to a prefetched one.
    min_lead: Position,
    strands: Vec<Strand>,
    courses: Vec<Course>,
    /// Strings that may have something to fetch.
    open: IndexSet,
    /// For each block: a position passed while it is there, or [`NEVER`].
    passed: Vec<Position>,
    /// Further passed positions, for blocks that are read more than once in that time.
    others_passed: HashMap<Block, Vec<Position>, FxBuildHasher>,
    /// Examined positions whose blocks were absent then, or have been evicted since.
    back: IndexSet,
}

impl Ahead {
    pub fn new(program: Arc<Program>, min_lead: Position) -> Self {
        let count = program.string_ends.len();
        let (mut courses, mut open) = (Vec::new(), IndexSet::new(count));
        let mut known: HashMap<&[Block], u32, FxBuildHasher> = HashMap::default();
        let mut strands = Vec::with_capacity(count);
        for string in 0..count as u32 {
            let positions = program.string(string);
            let begin = positions.start;
            let blocks = &program.blocks[begin as usize..positions.end as usize];
            let course = *known.entry(blocks).or_insert_with(|| {
                courses.push(Course { begin, strings: 0, next: begin, closed: Vec::new() });
                courses.len() as u32 - 1
            });
            courses[course as usize].strings += 1;
            let portion = program.portion_ends.partition_point(|end| *end <= begin);
            let limit = if program.regular { positions.end } else { begin };
            if begin < limit {
                open.insert(string);
            }
            strands.push(Strand { course, begin, cursor: begin, limit, portion, listed: false });
        }
        drop(known);
        let back = IndexSet::new(program.blocks.len());
        let blocks = program.blocks.iter().map(|block| block.index() + 1).max();
        let (passed, others_passed) = (vec![NEVER; blocks.unwrap_or(0)], HashMap::default());
        Self { program, min_lead, strands, courses, open, passed, others_passed, back }
    }

    /// Number of processes of the program.
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

    /// Notes that the `count` references from `position` on have been taken.
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

    /// Notes that `block` has been evicted.
    pub fn evicted(&mut self, block: Block) {
        let Some(first) = self.passed.get_mut(block.index()).filter(|first| **first != NEVER) else { return };
        let first = std::mem::replace(first, NEVER);
        let others = if self.others_passed.is_empty() { None } else { self.others_passed.remove(&block) };
        for position in others.into_iter().flatten().chain([first]) {
            let strand = &self.strands[self.program.string_at(position) as usize];
            let course = &mut self.courses[strand.course as usize];
            if course.strings == 1 && position < strand.cursor {
                continue;
            }
            self.back.insert(position);
            for string in course.closed.drain(..) {
                self.strands[string as usize].listed = false;
                self.open.insert(string);
            }
        }
    }

    /// The next `absent` block of the string of `process`. If there is none and `others` is set, that of the next
    /// string after it that has one, wrapping around.
    pub fn next(&mut self, process: u32, others: bool, absent: impl Fn(Block) -> bool) -> Option<Block> {
        let own = self.program.string_of[process as usize];
        if self.open.contains(own) {
            if let Some((_, block)) = self.next_of(own, &absent) {
                return Some(block);
            }
        }
        if !others {
            return None;
        }
        loop {
            // A string without any is closed, so each step either returns or reduces the number of open strings.
            let string = self.open.next(own + 1).or_else(|| self.open.next(0))?;
            if let Some((_, block)) = self.next_of(string, &absent) {
                return Some(block);
            }
        }
    }

    /// The next absent block of the string with the most references from there to its next synchronisation. Ties go to
    /// the string of `process`, then to the next one after it. `None` if all blocks needed before the synchronisations
    /// are there.
    ///
    /// Cost: constant per open string.
    pub fn most_behind(&mut self, process: u32, absent: impl Fn(Block) -> bool) -> Option<Block> {
        let own = self.program.string_of.get(process as usize).copied().unwrap_or(0);
        let count = self.strands.len() as u32;
        let mut best: Option<(Position, Block)> = None;
        for string in (own..count).chain(0..own) {
            if !self.open.contains(string) {
                continue;
            }
            let Some((position, block)) = self.next_of(string, &absent) else { continue };
            let meeting = self.program.meeting(string, self.strands[string as usize].cursor);
            let left = meeting.saturating_sub(position);
            if left > best.map_or(0, |(most, _)| most) {
                best = Some((left, block));
            }
        }
        best.map(|(_, block)| block)
    }

    /// The next absent block of `string` and its position. Closes the string if there is none.
    fn next_of(&mut self, string: u32, absent: impl Fn(Block) -> bool) -> Option<(Position, Block)> {
        let strand = &mut self.strands[string as usize];
        let course = &mut self.courses[strand.course as usize];
        let first = strand.cursor.saturating_add(self.min_lead) - strand.begin + course.begin;
        let limit = strand.limit - strand.begin + course.begin;
        let mut at = first;
        while let Some(position) = self.back.next(at).filter(|position| *position < limit.min(course.next)) {
            let block = self.program.blocks[position as usize];
            if absent(block) {
                return Some((position - course.begin + strand.begin, block));
            }
            self.back.remove(position);
            pass(&mut self.passed, &mut self.others_passed, block, position);
            at = position + 1;
        }
        while course.next < limit {
            let (position, block) = (course.next, self.program.blocks[course.next as usize]);
            if !absent(block) {
                pass(&mut self.passed, &mut self.others_passed, block, position);
            } else if position >= first {
                return Some((position - course.begin + strand.begin, block));
            } else {
                // Too near for this string, but perhaps not for one whose cursor is behind.
                self.back.insert(position);
            }
            course.next += 1;
        }
        self.open.remove(string);
        if !std::mem::replace(&mut strand.listed, true) {
            course.closed.push(string);
        }
        None
    }
}

/// Notes that `position`, whose block is there, is passed.
fn pass(
    passed: &mut [Position],
    others: &mut HashMap<Block, Vec<Position>, FxBuildHasher>,
    block: Block,
    position: Position,
) {
    let first = &mut passed[block.index()];
    if *first == NEVER {
        *first = position;
    } else {
        others.entry(block).or_default().push(position);
    }
}
