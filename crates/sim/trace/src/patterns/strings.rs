//! Common parts of the patterns: their input, the strings they produce, and how strings are built.

use headstart_types::{within_range, KeyError, KeyTable, Position};
use toml::Table;

/// The input of a pattern besides its keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PatternContext {
    pub processes: u32,
    /// Seed for all random draws of the pattern.
    pub seed: u64,
}

/// The references of the processes of a parallel program: strings of block numbers within one file.
///
/// Strings are stored one after another; an index into `blocks` is a *position*.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Strings {
    /// Every reference: a block of the file, below `file_blocks`.
    pub blocks: Vec<u32>,
    /// Where each string ends (exclusive), strictly ascending; the last is the number of references.
    pub string_ends: Vec<Position>,
    /// Where each sequential portion ends (exclusive), strictly ascending; the end of every string is included.
    pub portion_ends: Vec<Position>,
    /// By process: the string that it reads.
    pub string_of: Vec<u32>,
    /// Whether all processes share one string; otherwise process i reads string i alone.
    pub shared: bool,
    /// Whether portions have regular length and spacing, so that the next one is known before it begins.
    pub regular: bool,
    /// Size of the file in blocks.
    pub file_blocks: u32,
}

pub struct Pattern {
    /// The name in scenarios.
    pub name: &'static str,
    /// One line for help.
    pub summary: &'static str,
    /// The publication.
    pub source: &'static str,
    pub keys: KeyTable,
    /// Builds the strings.
    pub(super) build: Build,
}

impl Pattern {
    /// The strings of this pattern. Keys that are not given have their defaults.
    ///
    /// # Errors
    /// An unknown key, a value out of range, or zero processes.
    pub fn strings(&self, given: Table, context: &PatternContext) -> Result<Strings, KeyError> {
        if context.processes == 0 {
            return Err(KeyError::new("count", "0 is out of range", "a whole number from 1"));
        }
        (self.build)(given, context)
    }
}

type Build = fn(Table, &PatternContext) -> Result<Strings, KeyError>;

pub(super) const SOURCE: &str = "Kotz and Ellis, RAPID Transit, section 5.2";

/// Maximum number of blocks of the file.
pub(super) const BLOCKS_MAX: u32 = u32::MAX - 1;
/// Maximum number of reads; bounds the memory.
pub(super) const READS_MAX: u64 = 1 << 28;
/// What a read takes at most until it is played: itself, and its share of lists that grow.
const READ_BYTES: usize = 24;
/// Maximum length of a portion or distance between two.
pub(super) const LENGTH_MAX: u64 = 1 << 31;

/// Builds strings one after another, portion by portion.
pub(super) struct Builder {
    pub(super) strings: Strings,
    /// Total number of reads.
    pub(super) reads: u32,
    pub(super) processes: u32,
}

impl Builder {
    /// From the keys `blocks` and `reads`.
    pub(super) fn new(
        (file_blocks, reads): (u32, u32),
        context: &PatternContext,
        shared: bool,
        regular: bool,
    ) -> Result<Self, KeyError> {
        let processes = context.processes;
        // Each process must read at least once; an empty string is not possible.
        let reads_min = if shared { 1 } else { u64::from(processes) };
        within_range("reads", reads.into(), reads_min..=READS_MAX)?;
        // What cannot be allocated later would end the process without a word.
        if Vec::<[u8; READ_BYTES]>::new().try_reserve_exact(reads as usize).is_err() {
            return Err(KeyError::new("reads", format!("there is no memory for {reads}"), "fewer, or more memory"));
        }
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

    /// Builds each string from portions. `portions` starts the string with the given number; the function it returns
    /// yields, for one portion after another, the first block (modulo the file's size) and the length, above zero.
    pub(super) fn build<P: FnMut() -> (u64, u64)>(mut self, mut portions: impl FnMut(u32) -> P) -> Strings {
        let count = if self.strings.shared { 1 } else { self.processes };
        for string in 0..count {
            // If the reads cannot be divided evenly, the first strings are one read longer.
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
