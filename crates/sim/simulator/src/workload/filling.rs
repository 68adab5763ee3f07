//! From records to a chunk of references: blocks, think times, arrival times, write marks and request ends.

use headstart_layout::{Placing, Universe, METADATA};
use headstart_scenario::TIME_MAX;
use headstart_trace::Record;
use headstart_types::{Chunk, Nanos};

use super::cutting::{Cut, Cutter};
use super::records::Records;
use crate::Error;

/// The data kept of references besides their blocks.
#[derive(Debug, Clone, Copy, Default)]
pub struct Marks {
    /// Whether writes are distinguished.
    pub writes: bool,
    /// Whether arrival times are kept, multiplied by this.
    pub time_scale: Option<f64>,
    /// Whether the requested size within a block matters.
    pub bytes: bool,
    /// Whether files are opened during the run.
    pub opens: bool,
    /// Whether records have think times.
    pub thinks: bool,
}

/// References under construction.
pub struct Filling<'a> {
    /// Converts requests to blocks.
    pub cutter: &'a Cutter,
    /// The placing rule.
    pub placing: &'a Placing,
    /// Blocks seen so far.
    pub universe: &'a mut Universe,
    /// The chunk being filled.
    pub chunk: &'a mut Chunk,
    /// Set if think times are as recorded: all after the last block of a request.
    pub thinks: Option<&'a mut Vec<Nanos>>,
    /// The data kept besides their blocks.
    pub marks: Marks,
    /// The metadata that a file system read last.
    pub trail: &'a mut Trail,
    /// Whether only the blocks and the think time of a request are kept.
    pub plain: bool,
}

/// Distance in records between prefetching a table entry into the processor's cache and using it.
const AHEAD: usize = 16;

/// The metadata used by the previous references, which are read only once in a row.
#[derive(Debug, Clone, Copy, Default)]
pub struct Trail {
    file: Option<u32>,
    leaf: Option<u64>,
}

impl Filling<'_> {
    #[inline(always)]
    fn push(&mut self, record: &Record, next: Option<&Record>, records: &Records) -> Result<(), Error> {
        let cut = self.cutter.cut(record, records)?;
        let known = self.universe.len();
        if self.plain && cut.blocks == 1 && self.chunk.request_ends.is_empty() {
            self.chunk.blocks.push(self.universe.number(cut.file, cut.first, self.placing)?);
            self.mark_end(record);
            if let Some(thinks) = &mut self.thinks {
                thinks.push(self.cutter.think(record, next));
            }
        } else {
            self.push_any(&cut, record, next)?;
        }
        if self.universe.len() != known {
            records.check_distinct(self.universe.len(), record)?;
        }
        Ok(())
    }

    fn push_any(&mut self, cut: &Cut, record: &Record, next: Option<&Record>) -> Result<(), Error> {
        let Cut { file, first, blocks } = *cut;
        let files = self.placing.ffs().is_some();
        if files {
            self.open(file)?;
        }
        let before = self.chunk.blocks.len();
        for at in first..first + blocks {
            if files {
                self.look_up(file, at)?;
            }
            self.chunk.blocks.push(self.universe.number(file, at, self.placing)?);
            self.mark_bytes(record, at, files);
            self.mark_write(record.write);
        }
        self.mark_end(record);
        let count = self.chunk.blocks.len();
        if let Some(thinks) = &mut self.thinks {
            thinks.resize(count - 1, Nanos::ZERO);
            thinks.push(self.cutter.think(record, next));
        }
        if let Some(scale) = self.marks.time_scale {
            let time = Nanos::rounded(record.time.0 as f64 * scale).min(TIME_MAX);
            self.chunk.times.resize(count, time);
        }
        if count - before > 1 || !self.chunk.request_ends.is_empty() {
            // Single-block requests need no marks; from the first larger one on, all are marked.
            self.chunk.request_ends.resize(before, true);
            self.chunk.request_ends.resize(count - 1, false);
            self.chunk.request_ends.push(true);
        }
        Ok(())
    }

    /// A request for a block of `file`: if files are opened during the run and this is another file than before, its
    /// inode is read first, as a separate reference.
    fn open(&mut self, file: u32) -> Result<(), Error> {
        if self.trail.file == Some(file) {
            return Ok(());
        }
        *self.trail = Trail { file: Some(file), leaf: None };
        if let (true, Some(inode)) = (self.marks.opens, self.placing.ffs().and_then(|ffs| ffs.inode(file))) {
            self.push_metadata(inode)?;
            let count = self.chunk.blocks.len();
            if !self.chunk.request_ends.is_empty() {
                self.chunk.request_ends.resize(count, true);
            }
        }
        Ok(())
    }

    /// Block `at` of `file` is about to be read: the indirect blocks that lead to it are read first, unless the
    /// previous block used the same ones.
    fn look_up(&mut self, file: u32, at: u64) -> Result<(), Error> {
        let placing = self.placing;
        let Some(ffs) = placing.ffs() else { return Ok(()) };
        let leaf = ffs.mapped_by(file, at);
        if leaf != self.trail.leaf {
            self.trail.leaf = leaf;
            for block in ffs.indirect(file, at) {
                self.push_metadata(block)?;
            }
        }
        Ok(())
    }

    fn push_metadata(&mut self, address: u64) -> Result<(), Error> {
        self.chunk.blocks.push(self.universe.number(METADATA, address, self.placing)?);
        self.chunk.bytes.resize(self.chunk.blocks.len() - 1, self.cutter.block_bytes() as u32);
        self.chunk.bytes.push(0);
        Ok(())
    }

    /// Records how much of block `at`, which was just pushed, `record` reads: from the first partial block on, and
    /// always for files.
    #[inline]
    fn mark_bytes(&mut self, record: &Record, at: u64, files: bool) {
        if !self.marks.bytes && !files {
            return;
        }
        let (size, asked) = (self.cutter.block_bytes(), self.cutter.asked(record, at));
        if asked < size || files || !self.chunk.bytes.is_empty() {
            self.chunk.bytes.resize(self.chunk.blocks.len() - 1, size as u32);
            self.chunk.bytes.push(asked as u32);
        }
    }

    /// Marks a request whose last block was just pushed, and which ends within it.
    #[inline]
    fn mark_end(&mut self, record: &Record) {
        if self.cutter.ends_inside(record) {
            self.chunk.ends_inside.resize(self.chunk.blocks.len() - 1, false);
            self.chunk.ends_inside.push(true);
        }
    }

    /// Records whether the block just pushed is written. If all references read there are no marks; from the first
    /// write on, all are marked. Metadata before it are read.
    #[inline]
    fn mark_write(&mut self, write: bool) {
        if self.marks.writes && (write || !self.chunk.writes.is_empty()) {
            self.chunk.writes.resize(self.chunk.blocks.len() - 1, false);
            self.chunk.writes.push(write);
        }
    }

    /// Processes one batch. A request's think time is known once the next request is: the last record is held back.
    ///
    /// # Errors
    /// An error of the trace, or a block without a place.
    pub fn pull(&mut self, records: &mut Records, held: &mut Option<Record>) -> Result<(), Error> {
        while self.chunk.blocks.is_empty() {
            records.advance()?;
            let batch = records.batch();
            if let Some(record) = held.take() {
                self.push(&record, batch.first(), records)?;
            }
            if self.plain && self.thinks.is_none() && self.cutter.objects {
                // Nothing to hold back, and one block each.
                for (at, record) in batch.iter().enumerate() {
                    let file = self.cutter.file(record);
                    if let Some(ahead) = batch.get(at + AHEAD) {
                        self.universe.prefetch(ahead.offset);
                    }
                    self.chunk.blocks.push(self.universe.number(file, record.offset, self.placing)?);
                }
                if let Some(last) = batch.last() {
                    records.check_distinct(self.universe.len(), last)?;
                }
                return Ok(());
            }
            for pair in batch.windows(2) {
                self.push(&pair[0], Some(&pair[1]), records)?;
            }
            *held = batch.last().copied();
            if batch.is_empty() {
                return Ok(());
            }
        }
        Ok(())
    }
}
