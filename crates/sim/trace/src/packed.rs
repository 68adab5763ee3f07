//! Binary formats with fixed-size records: turns a parser of single records into a [`RecordReader`]. A new format of
//! this kind only needs to implement [`RecordParser`].
//!
//! Cost: the source is read a mebibyte at a time and parsed in place.

use crate::checks::{Admission, EMPTY};
use crate::{Carries, ErrorPosition, Record, RecordReader, Source, TraceError, BATCH};

/// Bytes read at a time.
const BUFFER_BYTES: usize = 1024 * 1024;

/// Turns one binary record into a [`Record`].
pub(crate) trait RecordParser: Send {
    /// Length of a record.
    const RECORD_BYTES: usize;
    /// As [`RecordReader::carries`].
    fn carries(&self) -> Carries;
    /// As [`RecordReader::unit_bytes`].
    fn unit_bytes(&self) -> u64;
    /// As [`RecordReader::sizes_vary`].
    fn sizes_vary(&self) -> bool {
        false
    }
    /// Parses a record, its time as recorded. Returns `None` for a record to skip and count, or the problem in words.
    /// The caller guarantees [`Self::RECORD_BYTES`] bytes.
    fn parse(&mut self, bytes: &[u8]) -> Result<Option<Record>, String>;
}

pub(crate) struct PackedReader<P> {
    source: Source,
    parser: P,
    admission: Admission,
    buffer: Vec<u8>,
    /// The part of the buffer that was read but not yet parsed.
    start: usize,
    end: usize,
    number: u64,
    skipped: u64,
}

impl<P: RecordParser> PackedReader<P> {
    pub(crate) fn new(source: Source, parser: P) -> Self {
        let Carries { time, objects, .. } = parser.carries();
        let admission = Admission::new(time, objects);
        let buffer = vec![0; BUFFER_BYTES];
        Self { source, parser, admission, buffer, start: 0, end: 0, number: 0, skipped: 0 }
    }

    /// Reads until at least one record is buffered; false at the end.
    fn refill(&mut self) -> Result<bool, TraceError> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        while self.end < P::RECORD_BYTES {
            let read = self.source.read(&mut self.buffer[self.end..])?;
            if read == 0 {
                return self.at_end().map(|()| false);
            }
            self.end += read;
        }
        Ok(true)
    }

    /// Checks that the file ends at a record boundary.
    fn at_end(&self) -> Result<(), TraceError> {
        if self.end > 0 {
            let problem = format!(
                "the trace ends inside a record: {} bytes of {}; allowed: whole records",
                self.end,
                P::RECORD_BYTES
            );
            return Err(self.source.bad(ErrorPosition::Record(self.number + 1), problem));
        }
        if self.number == 0 {
            return Err(self.source.bad(ErrorPosition::File, EMPTY.to_owned()));
        }
        Ok(())
    }

    /// Emits the held-back records once everything was read.
    fn finish(&mut self, into: &mut Vec<Record>) -> Result<bool, TraceError> {
        self.admission.drain(into).map_err(|problem| self.source.bad(ErrorPosition::Record(self.number), problem))?;
        if self.admission.is_empty() {
            let problem = format!("all {} records are empty; allowed: one or more of 1 byte or more", self.skipped());
            return Err(self.source.bad(ErrorPosition::File, problem));
        }
        Ok(!into.is_empty())
    }
}

impl<P: RecordParser> RecordReader for PackedReader<P> {
    fn carries(&self) -> Carries {
        self.parser.carries()
    }

    fn unit_bytes(&self) -> u64 {
        self.parser.unit_bytes()
    }

    fn sizes_vary(&self) -> bool {
        self.parser.sizes_vary()
    }

    fn note(&self) -> Option<String> {
        self.admission.note()
    }

    fn read(&mut self, into: &mut Vec<Record>) -> Result<bool, TraceError> {
        into.clear();
        while into.is_empty() {
            if self.end - self.start < P::RECORD_BYTES && !self.refill()? {
                return self.finish(into);
            }
            for bytes in self.buffer[self.start..self.end].chunks_exact(P::RECORD_BYTES).take(BATCH) {
                self.start += P::RECORD_BYTES;
                self.number += 1;
                let stands_at = u32::try_from(self.number).unwrap_or(u32::MAX);
                let admission = &mut self.admission;
                let admitted = self.parser.parse(bytes).and_then(|record| match record {
                    Some(record) => admission.admit(Record { stands_at, ..record }, into),
                    None => {
                        self.skipped += 1;
                        Ok(())
                    }
                });
                admitted.map_err(|problem| self.source.bad(ErrorPosition::Record(self.number), problem))?;
            }
            let released = self.admission.release(into);
            released.map_err(|problem| self.source.bad(ErrorPosition::Record(self.number), problem))?;
        }
        Ok(true)
    }

    fn skipped(&self) -> u64 {
        self.skipped + self.admission.skipped()
    }

    fn bad(&self, record: &Record, problem: &str, allowed: &str) -> TraceError {
        self.source.bad(ErrorPosition::Record(record.stands_at.into()), format!("{problem}; allowed: {allowed}"))
    }

    fn progress(&self) -> (u64, u64) {
        self.source.progress()
    }
}
