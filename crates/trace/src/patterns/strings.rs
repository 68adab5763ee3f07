//! What the patterns share: what one needs, the strings that it makes, and how they are put together.

use headstart_types::{within_range, KeyError, KeyTable, Position};
use toml::Table;

/// What a pattern needs beside its keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PatternContext {
    /// Processes, at least 1.
    pub processes: u32,
    /// Seed of everything random in the pattern.
    pub seed: u64,
}

/// What the processes of a parallel program read: strings of block numbers within one file.
///
/// Strings stand one after another; an index into `blocks` is a *position*.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Strings {
    /// Every reference: a block of the file, below `file_blocks`.
    pub blocks: Vec<u32>,
    /// Where each string ends (exclusive), strictly ascending; the last is the number of references.
    pub string_ends: Vec<Position>,
    /// Where each sequential portion ends (exclusive), strictly ascending; the end of every string is one.
    pub portion_ends: Vec<Position>,
    /// By process: the string that it reads.
    pub string_of: Vec<u32>,
    /// The processes share one string; otherwise process i reads string i, alone.
    pub shared: bool,
    /// Portions are of regular length and spacing: the next one is known before it has begun.
    pub regular: bool,
    /// Size of the file in blocks.
    pub file_blocks: u32,
}

/// A pattern's row.
pub struct Pattern {
    /// The name in scenarios.
    pub name: &'static str,
    /// One line for help.
    pub summary: &'static str,
    /// Where it comes from.
    pub source: &'static str,
    /// Its keys.
    pub keys: KeyTable,
    /// Makes the strings.
    pub(super) build: Build,
}

impl Pattern {
    /// The strings of this pattern. Keys that are not given have their defaults.
    ///
    /// # Errors
    /// An unknown key, a value out of range, or no process.
    pub fn strings(&self, given: Table, context: &PatternContext) -> Result<Strings, KeyError> {
        if context.processes == 0 {
            return Err(KeyError::new("count", "0 is out of range", "a whole number from 1"));
        }
        (self.build)(given, context)
    }
}

type Build = fn(Table, &PatternContext) -> Result<Strings, KeyError>;

pub(super) const SOURCE: &str = "Kotz and Ellis, RAPID Transit, section 5.2";

/// The most blocks of the file.
pub(super) const BLOCKS_MAX: u32 = u32::MAX - 1;
/// The most reads: bounds the memory.
pub(super) const READS_MAX: u64 = 1 << 28;
/// The greatest length of a portion or distance between two.
pub(super) const LENGTH_MAX: u64 = 1 << 31;

/// Strings under construction: one after another, portion after portion.
pub(super) struct Builder {
    pub(super) strings: Strings,
    /// How many reads the strings have in all.
    pub(super) reads: u32,
    pub(super) processes: u32,
}

impl Builder {
    /// Of the keys `blocks` and `reads`.
    pub(super) fn new(
        (file_blocks, reads): (u32, u32),
        context: &PatternContext,
        shared: bool,
        regular: bool,
    ) -> Result<Self, KeyError> {
        let processes = context.processes;
        // A process that reads nothing has no string.
        let reads_min = if shared { 1 } else { u64::from(processes) };
        within_range("reads", reads.into(), reads_min..=READS_MAX)?;
        let string_of = if shared { vec![0; processes as usize] } else { (0..processes).collect() };
        let strings = Strings {
            blocks: Vec::with_capacity(reads as usize),
            string_ends: Vec::new(),
            portion_ends: Vec::new(),
            string_of,
            shared,
            regular,
            file_blocks,
        };
        Ok(Self { strings, reads, processes })
    }

    /// Builds each string of portions. `portions` starts a string: given its number, it returns what gives the first
    /// block (anywhere beyond the file's beginning) and the length, above zero, of one portion after another.
    pub(super) fn build<P: FnMut() -> (u64, u64)>(mut self, mut portions: impl FnMut(u32) -> P) -> Strings {
        let count = if self.strings.shared { 1 } else { self.processes };
        for string in 0..count {
            // The first strings are one read longer where the reads cannot be shared out evenly.
            let reads = self.reads / count + u32::from(string < self.reads % count);
            let end = self.strings.blocks.len() + reads as usize;
            let mut next = portions(string);
            while self.strings.blocks.len() < end {
                let (first, length) = next();
                let left = (end - self.strings.blocks.len()) as u64;
                self.portion(first, length.min(left));
            }
            self.strings.string_ends.push(end as Position);
        }
        self.strings
    }

    fn portion(&mut self, first: u64, length: u64) {
        let file_blocks = u64::from(self.strings.file_blocks);
        let mut block = first % file_blocks;
        for _ in 0..length {
            self.strings.blocks.push(block as u32);
            block = if block + 1 == file_blocks { 0 } else { block + 1 };
        }
        self.strings.portion_ends.push(self.strings.blocks.len() as Position);
    }
}
