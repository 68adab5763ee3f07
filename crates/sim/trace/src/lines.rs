//! Text formats: finds lines in one large buffer without copying, and turns a parser of single lines into a
//! [`RecordReader`]. A new text format only needs to implement [`LineParser`].
//!
//! Cost: one `memchr` per line. Memory: one buffer of 256 KiB, which grows up to the maximum line length.

use crate::checks::{Admission, EMPTY};
use crate::formats::{is_remark, Processes};
use crate::{Carries, ErrorPosition, FileEntry, ProcessEntry, Record, RecordReader, Source, TraceError, BATCH};

/// Bytes read at a time.
const BUFFER_BYTES: usize = 256 * 1024;
/// Maximum line length. No trace has longer lines; without a limit, a binary file taken as text would fill the memory.
const LINE_BYTES_MAX: usize = 1024 * 1024;

/// The lines of a source, without line terminators ("\n" or "\r\n").
pub(crate) struct Lines {
    source: Source,
    buffer: Vec<u8>,
    /// The part of the buffer that was read but not yet returned.
    start: usize,
    end: usize,
    /// Number of the last line returned, from 1.
    number: u64,
}

impl Lines {
    pub(crate) fn new(source: Source) -> Self {
        Self { source, buffer: vec![0; BUFFER_BYTES], start: 0, end: 0, number: 0 }
    }

    /// The next line, or `None` at the end.
    #[inline]
    pub(crate) fn next(&mut self) -> Result<Option<&[u8]>, TraceError> {
        let mut searched = self.start;
        loop {
            if let Some(at) = memchr::memchr(b'\n', &self.buffer[searched..self.end]) {
                let line = self.start..searched + at;
                self.start = line.end + 1;
                self.number += 1;
                return Ok(Some(without_return(&self.buffer[line])));
            }
            let waiting = self.end - self.start;
            if !self.refill()? {
                if waiting == 0 {
                    return Ok(None);
                }
                let line = self.start..self.end;
                self.start = self.end;
                self.number += 1;
                return Ok(Some(without_return(&self.buffer[line])));
            }
            searched = self.start + waiting;
        }
    }

    /// Reads more data after the unreturned part; false at the end of the source.
    fn refill(&mut self) -> Result<bool, TraceError> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        if self.end > LINE_BYTES_MAX {
            self.number += 1;
            return Err(self.bad(format!("the line is too long; allowed: up to {LINE_BYTES_MAX} bytes")));
        }
        if self.end == self.buffer.len() {
            self.buffer.resize(2 * self.end, 0);
        }
        let read = self.source.read(&mut self.buffer[self.end..])?;
        self.end += read;
        Ok(read > 0)
    }

    /// As [`RecordReader::progress`].
    pub(crate) fn progress(&self) -> (u64, u64) {
        self.source.progress()
    }

    /// Number of the last line returned, from 1, saturating at the maximum of 32 bits.
    #[inline]
    pub(crate) fn number(&self) -> u32 {
        u32::try_from(self.number).unwrap_or(u32::MAX)
    }

    /// An error in an earlier line.
    #[cold]
    pub(crate) fn bad_at(&self, number: u32, problem: String) -> TraceError {
        self.source.bad(ErrorPosition::Line(number.into()), problem)
    }

    /// An error in the last line returned.
    #[cold]
    pub(crate) fn bad(&self, problem: String) -> TraceError {
        self.source.bad(ErrorPosition::Line(self.number), problem)
    }
}

fn without_return(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// Turns one line of a text format into a record.
pub(crate) trait LineParser: Send {
    /// As [`RecordReader::carries`].
    fn carries(&self) -> Carries;
    /// As [`RecordReader::unit_bytes`].
    fn unit_bytes(&self) -> u64 {
        1
    }
    /// As [`RecordReader::sizes_vary`].
    fn sizes_vary(&self) -> bool {
        false
    }
    /// As [`RecordReader::files`].
    fn files(&self) -> &[FileEntry] {
        &[]
    }
    /// The name of the process that issued the last record.
    fn process(&self) -> Option<&[u8]> {
        None
    }
    /// As [`RecordReader::note`].
    fn note(&self) -> Option<String> {
        None
    }
    /// As [`RecordReader::skipped`].
    fn skipped(&self) -> u64 {
        0
    }
    /// Whether records may be in any order. The whole trace is then held in memory: some 60 bytes per record.
    fn any_order(&self) -> bool {
        false
    }
    /// Another record of the last line; at the end of the input, a record that was held back until then.
    fn further(&mut self, _ended: bool) -> Option<Record> {
        None
    }
    /// The error text for a trace without records.
    fn empty(&self) -> &'static str {
        EMPTY
    }
    /// The names of the columns that are ignored.
    fn ignored(&self) -> Vec<&str> {
        Vec::new()
    }
    /// Parses a line. The record's time is as recorded; the caller makes it relative to the first record and does the
    /// checks common to all formats. Returns `None` for a line that holds no record by the format's rules, or the
    /// problem in words. The caller skips and counts records of 0 bytes and remarks of the tool that are not lines of
    /// the format.
    fn parse(&mut self, line: &[u8]) -> Result<Option<Record>, String>;
}

pub(crate) struct LineReader<P> {
    lines: Lines,
    parser: P,
    admission: Admission,
    /// Lines in which the tool reports lost events.
    lost: u64,
    processes: Processes,
}

impl<P: LineParser> LineReader<P> {
    /// Reads the remaining `lines`.
    pub(crate) fn new(lines: Lines, parser: P) -> Self {
        let Carries { time, objects, .. } = parser.carries();
        let admission = Admission::new(time, objects);
        let admission = if parser.any_order() { admission.of_any_order() } else { admission };
        Self { lines, parser, admission, lost: 0, processes: Processes::default() }
    }

    /// Processes the next record or line; false at the end of the lines.
    #[inline]
    fn step(&mut self, into: &mut Vec<Record>) -> Result<bool, TraceError> {
        if let Some(record) = self.parser.further(false) {
            return self.admit(record, into).map(|()| true);
        }
        let Some(line) = self.lines.next()? else {
            let Some(record) = self.parser.further(true) else { return Ok(false) };
            return self.admit(record, into).map(|()| true);
        };
        let admitted = match self.parser.parse(line) {
            Ok(None) => Ok(()),
            Ok(Some(record)) => return self.admit(record, into).map(|()| true),
            Err(_) if is_remark(line) => {
                self.lost += u64::from(says_lost(line));
                Ok(())
            }
            Err(problem) => Err(problem),
        };
        admitted.map(|()| true).map_err(|problem| self.lines.bad(problem))
    }

    /// Adds a record of the last line.
    #[inline]
    fn admit(&mut self, record: Record, into: &mut Vec<Record>) -> Result<(), TraceError> {
        let record = Record { stands_at: self.lines.number(), ..record };
        if let Some(name) = self.parser.process() {
            self.processes.meet(&record, name);
        }
        self.admission.admit(record, into).map_err(|problem| self.lines.bad(problem))
    }
}

/// Whether a remark of the tool reports lost events.
fn says_lost(line: &[u8]) -> bool {
    let line = line.trim_ascii_start();
    line.starts_with(b"Lost ") || line.starts_with(b"Possibly lost ")
}

impl<P: LineParser> RecordReader for LineReader<P> {
    fn carries(&self) -> Carries {
        self.parser.carries()
    }

    fn unit_bytes(&self) -> u64 {
        self.parser.unit_bytes()
    }

    fn sizes_vary(&self) -> bool {
        self.parser.sizes_vary()
    }

    fn files(&self) -> &[FileEntry] {
        self.parser.files()
    }

    fn processes(&self) -> &[ProcessEntry] {
        self.processes.entries()
    }

    fn note(&self) -> Option<String> {
        let ignored = self.parser.ignored();
        let ignored = (!ignored.is_empty()).then(|| format!("ignored columns: {}", ignored.join(", ")));
        let lost = (self.lost > 0).then(|| "the tracer lost events: requests may be missing".to_owned());
        let notes: Vec<String> =
            [self.parser.note(), ignored, lost, self.admission.note()].into_iter().flatten().collect();
        (!notes.is_empty()).then(|| notes.join("; "))
    }

    fn skipped(&self) -> u64 {
        self.parser.skipped() + self.admission.skipped()
    }

    fn read(&mut self, into: &mut Vec<Record>) -> Result<bool, TraceError> {
        into.clear();
        while into.len() < BATCH {
            let mut has_more = true;
            for _ in into.len()..BATCH {
                has_more = self.step(into)?;
                if !has_more {
                    break;
                }
            }
            self.admission.release(into).map_err(|problem| self.lines.bad(problem))?;
            if has_more {
                continue;
            }
            self.admission.drain(into).map_err(|problem| self.lines.bad(problem))?;
            if self.admission.is_empty() {
                return Err(self.lines.source.bad(ErrorPosition::File, self.parser.empty().to_owned()));
            }
            break;
        }
        Ok(!into.is_empty())
    }

    fn bad(&self, record: &Record, problem: &str, allowed: &str) -> TraceError {
        self.lines.bad_at(record.stands_at, format!("{problem}; allowed: {allowed}"))
    }

    fn progress(&self) -> (u64, u64) {
        self.lines.progress()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all(content: &[u8]) -> Vec<Vec<u8>> {
        let mut lines = Lines::new(Source::from_bytes("t", content.to_vec()).unwrap());
        let mut out = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            out.push(line.to_vec());
        }
        out
    }

    #[test]
    fn a_line_longer_than_the_buffer_is_whole_and_one_too_long_is_refused() {
        let long = vec![b'x'; BUFFER_BYTES + 7];
        assert_eq!(all(&[b"a\n", &long[..], b"\nb"].concat()), [b"a".to_vec(), long, b"b".to_vec()]);
        let mut lines = Lines::new(Source::from_bytes("t", vec![b'x'; 4 * LINE_BYTES_MAX]).unwrap());
        let error = lines.next().unwrap_err().to_string();
        assert!(error.starts_with("t, line 1: the line is too long"), "{error}");
    }

    proptest! {
        #[test]
        fn lines_are_what_splitting_gives(mut content in proptest::collection::vec(prop_oneof![Just(b'\n'), Just(b'1'), Just(b'\r')], 0..200)) {
            content.insert(0, b'0');
            let text = content.strip_suffix(b"\n").unwrap_or(&content);
            let expected: Vec<Vec<u8>> = text.split(|&b| b == b'\n').map(|l| without_return(l).to_vec()).collect();
            prop_assert_eq!(all(&content), expected);
        }
    }
}
