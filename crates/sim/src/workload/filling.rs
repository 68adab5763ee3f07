//! From records to a chunk of references: blocks, think times, arrival times, marks of writes and of requests' ends.

use headstart_trace::Record;
use headstart_types::{Chunk, Nanos};

use super::cutting::{Cut, Cutter};
use super::numbering::Universe;
use super::placing::Placing;
use super::records::Records;
use crate::limits::TIME_MAX;
use crate::Error;

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
    /// Writes are told apart.
    pub mark_writes: bool,
    /// Arrival times are kept, multiplied by this.
    pub time_scale: Option<f64>,
}

impl Filling<'_> {
    #[inline]
    fn push(&mut self, record: &Record, next: Option<&Record>) -> Result<(), Error> {
        let Cut { file, first, blocks } = self.cutter.cut(record)?;
        for at in first..first + blocks {
            self.chunk.blocks.push(self.universe.number(file, at, self.placing)?);
        }
        let count = self.chunk.blocks.len();
        if let Some(thinks) = &mut self.thinks {
            thinks.resize(count - 1, Nanos::ZERO);
            thinks.push(self.cutter.think(record, next));
        }
        if let Some(scale) = self.time_scale {
            let time = Nanos((record.time.0 as f64 * scale).round() as u64).min(TIME_MAX);
            self.chunk.times.resize(count, time);
        }
        if self.mark_writes && (record.write || !self.chunk.writes.is_empty()) {
            // Where all read there are no marks; from the first write on, all are marked.
            self.chunk.writes.resize(count - blocks as usize, false);
            self.chunk.writes.resize(count, record.write);
        }
        if blocks > 1 || !self.chunk.request_ends.is_empty() {
            // Single-block requests need no marks; from the first larger one on, all are marked.
            self.chunk.request_ends.resize(count - blocks as usize, true);
            self.chunk.request_ends.resize(count - 1, false);
            self.chunk.request_ends.push(true);
        }
        Ok(())
    }

    /// Cuts one batch. A request's think time is known once the next one is: the last record is held back.
    ///
    /// # Errors
    /// The trace is wrong there, or a block has no place.
    pub fn pull(&mut self, records: &mut Records, held: &mut Option<Record>) -> Result<(), Error> {
        while self.chunk.blocks.is_empty() {
            let batch = records.next_batch()?;
            if let Some(record) = held.take() {
                self.push(&record, batch.first())?;
            }
            if self.thinks.is_none() && self.cutter.objects && !self.mark_writes && self.time_scale.is_none() {
                // Nothing to hold back, and one block each.
                for record in batch {
                    let file = self.cutter.file(record);
                    self.chunk.blocks.push(self.universe.number(file, record.offset, self.placing)?);
                }
                return Ok(());
            }
            for pair in batch.windows(2) {
                self.push(&pair[0], Some(&pair[1]))?;
            }
            *held = batch.last().copied();
            if batch.is_empty() {
                return Ok(());
            }
        }
        Ok(())
    }
}
