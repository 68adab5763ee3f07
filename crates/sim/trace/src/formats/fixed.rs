//! Text formats with columns in a fixed order, with or without a header.
//!
//! Such a format is a [`Layout`], a list of columns. A first line that repeats the columns' names is skipped.

use super::columns::{Columns, Separator};
use super::fields::Role;
use super::{first_lines, lines_of};
use crate::lines::{LineParser, LineReader, Lines};
use crate::{Carries, Evidence, Record, RecordReader, Source, TraceError};

/// The columns of a format.
pub(super) struct Layout {
    /// Names and meanings, in order.
    pub columns: &'static [(&'static str, Role)],
    pub separator: Separator,
    /// Whether further columns may follow.
    pub more: bool,
}

impl Layout {
    /// Starts reading a trace that only consists of these columns.
    pub fn open(&'static self, source: Source) -> Result<Box<dyn RecordReader>, TraceError> {
        Ok(Box::new(LineReader::new(Lines::new(source), self.parser())))
    }

    /// The parser, for formats that need more than the columns of a line.
    pub fn parser(&'static self) -> Fixed {
        Fixed { layout: self, columns: self.understood(), started: false }
    }

    /// Detects the columns: the file begins with the header, or its first lines have the form `form`.
    pub fn detect(&self, head: &[u8], form: &'static str) -> Option<Evidence> {
        let names = lines_of(head).next().is_some_and(|first| self.is_header(first));
        let columns = self.understood();
        Evidence::mark(names, "the first line has the names of the columns")
            .or_else(|| Evidence::form(first_lines(head, |line| columns.resembles(line)), form))
    }

    /// The first lines of a head as records, skipping lines that do not parse.
    pub fn records<'a>(&self, head: &'a [u8]) -> impl Iterator<Item = Record> + use<'a> {
        let mut columns = self.understood();
        lines_of(head).filter_map(move |line| columns.record(line).ok().flatten())
    }

    fn understood(&self) -> Columns {
        Columns::fixed(self.columns, self.separator, self.more)
    }

    /// Whether a line holds the columns' names, ignoring case.
    fn is_header(&self, line: &[u8]) -> bool {
        let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        let names = line.split(|&byte| byte == b',').map(<[u8]>::trim_ascii);
        let expected = self.columns.iter().map(|(name, _)| name.as_bytes());
        self.separator == Separator::COMMA
            && line.iter().filter(|&&byte| byte == b',').count() + 1 == self.columns.len()
            && names.zip(expected).all(|(name, expected)| name.eq_ignore_ascii_case(expected))
    }
}

/// Parses the lines of a [`Layout`].
pub(super) struct Fixed {
    layout: &'static Layout,
    columns: Columns,
    /// Whether there was a record: a header can only precede the first.
    started: bool,
}

impl LineParser for Fixed {
    fn carries(&self) -> Carries {
        self.columns.carries()
    }

    fn unit_bytes(&self) -> u64 {
        self.columns.unit_bytes(None)
    }

    fn skipped(&self) -> u64 {
        self.columns.skipped()
    }

    #[inline]
    fn parse(&mut self, line: &[u8]) -> Result<Option<Record>, String> {
        if !self.started && self.layout.is_header(line) {
            return Ok(None);
        }
        let record = self.columns.record(line)?;
        self.started |= record.is_some();
        Ok(record)
    }
}
