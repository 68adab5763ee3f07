//! What the strings of a parallel program are going to read and is not there: the next such block of each string.
//!
//! Each string is gone through once; strings that are alike (`lw`) are one *course*, gone through once for all. A
//! position whose block is there (resident or on its way) is *passed*, and comes *back* only if the block is evicted; so
//! each position of a course costs a constant, and once more for each eviction after it was passed. Strings with nothing
//! left to fetch are closed, and looked at again only once something has come back to their course, or once a new
//! portion has begun where portions are irregular.
//! Cost: amortised constant per event, a few words for a search. Memory: a few words a string, 1 bit a reference, 4
//! bytes a block.

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
    /// The next reference that nobody has taken.
    cursor: Position,
    /// Nothing from here on may be prefetched yet.
    limit: Position,
    /// Index of the portion that ends at the limit, or that is about to begin.
    portion: usize,
    /// Whether its course has it among the closed.
    listed: bool,
}

/// What strings that are alike read, in the positions of the first of them.
#[derive(Debug)]
struct Course {
    begin: Position,
    /// Strings that read this.
    strings: u32,
    /// The first position that has never been looked at.
    next: Position,
    /// Its strings that have been closed since something last came back; some may have been opened again.
    closed: Vec<u32>,
}

/// The next block of each string that could be prefetched.
#[derive(Debug)]
pub(super) struct Ahead {
    program: Arc<Program>,
    /// References from a string's cursor to the first that may be prefetched.
    min_lead: Position,
    strands: Vec<Strand>,
    courses: Vec<Course>,
    /// Strings that may have something to fetch.
    open: IndexSet,
    /// By block: a position passed over while it is there, or [`NEVER`].
    passed: Vec<Position>,
    /// The others, of blocks that are read more than once meanwhile.
    others_passed: HashMap<Block, Vec<Position>, FxBuildHasher>,
    /// Positions that have been looked at and whose blocks were absent then, or have left since.
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

    /// The next block that is `absent` of the string of `process`; if there is none and `others`, that of the next
    /// string after it that has one, and from the last string on to the first.
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
            // A string without any is closed, so that each step is either the last or ends with fewer open ones.
            let string = self.open.next(own + 1).or_else(|| self.open.next(0))?;
            if let Some((_, block)) = self.next_of(string, &absent) {
                return Some(block);
            }
        }
    }

    /// The next absent block of the string that has most references from there to its next meeting; of `process` or the next
    /// string after its own where several have as many. `None` where all that is read before the meetings is there.
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

    /// The next absent block of `string` and its position there. The string is closed if there is none.
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
                // Too near for this string, but perhaps not for one that is behind it.
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

/// Notes that `position`, of the block that is there, is passed over.
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
