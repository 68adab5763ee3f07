//! From records to a chunk of references: blocks, think times, arrival times, marks of writes and of requests' ends.

use headstart_layout::{Placing, Universe, METADATA};
use headstart_scenario::TIME_MAX;
use headstart_trace::Record;
use headstart_types::{Chunk, Nanos};

use super::cutting::{Cut, Cutter};
use super::records::Records;
use crate::Error;

/// What is told of references beside their blocks.
#[derive(Debug, Clone, Copy, Default)]
pub struct Marks {
    /// Writes are told apart.
    pub writes: bool,
    /// Arrival times are kept, multiplied by this.
    pub time_scale: Option<f64>,
    /// It matters how much of a block is asked for.
    pub bytes: bool,
    /// Files are opened in the run.
    pub opens: bool,
    /// Records have think times.
    pub thinks: bool,
}

/// References under construction.
pub struct Filling<'a> {
    /// How requests become blocks.
    pub cutter: &'a Cutter,
    /// Where blocks lie.
    pub placing: &'a Placing,
    /// Blocks seen so far.
    pub universe: &'a mut Universe,
    /// What is filled.
    pub chunk: &'a mut Chunk,
    /// Kept where think times are as recorded: all after the last block of a request.
    pub thinks: Option<&'a mut Vec<Nanos>>,
    /// What is told of them beside their blocks.
    pub marks: Marks,
    /// What a file system has looked up last.
    pub trail: &'a mut Trail,
    /// Nothing is kept of a request but its blocks and its think time.
    pub plain: bool,
}

/// Records between one that is numbered and one whose entry is asked for from memory.
const AHEAD: usize = 16;

/// Which metadata the references before have led through: those are looked at once.
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

    /// A request for a block of `file`: where files are opened in the run and this is another one than before, its
    /// inode is read first, for itself.
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

    /// Block `at` of `file` is going to be read: so are the indirect blocks that lead to it, if they are not those
    /// that led to the block before.
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

    /// Marks how much of block `at`, which has just been pushed, `record` asks for: from the first that is no whole
    /// block on, and of files always.
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

    /// Marks a request whose last block has just been pushed, and which ends before that does.
    #[inline]
    fn mark_end(&mut self, record: &Record) {
        if self.cutter.ends_inside(record) {
            self.chunk.ends_inside.resize(self.chunk.blocks.len() - 1, false);
            self.chunk.ends_inside.push(true);
        }
    }

    /// Marks whether the block that has just been pushed is written. Where all read there are no marks; from the first write on,
    /// all are marked. Metadata before it are read.
    #[inline]
    fn mark_write(&mut self, write: bool) {
        if self.marks.writes && (write || !self.chunk.writes.is_empty()) {
            self.chunk.writes.resize(self.chunk.blocks.len() - 1, false);
            self.chunk.writes.push(write);
        }
    }

    /// Cuts one batch. A request's think time is known once the next one is: the last record is held back.
    ///
    /// # Errors
    /// The trace is wrong there, or a block has no place.
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
