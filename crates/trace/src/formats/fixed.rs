//! Text formats whose columns stand in an order that the format lays down, under a header or without one.
//!
//! Such a format is a [`Layout`]: a list of columns. A first line that repeats the columns' names is passed over.
//! Requests of size 0 are left out and counted: they move nothing, and long traces of real servers hold some.

use super::columns::{Columns, Separator};
use super::fields::Role;
use super::first_lines;
use crate::lines::{LineParser, LineReader, Lines};
use crate::{Carries, Fit, Record, RecordReader, Source, TraceError};

/// What a format lays down.
pub(super) struct Layout {
    /// Names and meanings, in order.
    pub columns: &'static [(&'static str, Role)],
    pub separator: Separator,
    /// Whether further columns may follow.
    pub more: bool,
    /// Whether records may be a little out of order.
    pub reorder: bool,
}

impl Layout {
    /// Starts reading a trace that is nothing but its columns.
    pub fn open(&'static self, source: Source) -> Result<Box<dyn RecordReader>, TraceError> {
        Ok(Box::new(LineReader::new(Lines::new(source), self.parser())))
    }

    /// The parser, for formats that do more with a line than read its columns.
    pub fn parser(&'static self) -> Fixed {
        Fixed { layout: self, columns: self.understood(), started: false, skipped: 0 }
    }

    /// How well a file fits: it begins with the header, its first lines have these columns, or, where there is a
    /// suffix, its name ends in it.
    pub fn detect(&self, name: &str, head: &[u8], suffix: Option<&str>) -> Fit {
        let first = head.split(|&byte| byte == b'\n').next().unwrap_or_default();
        let columns = self.understood();
        let content = self.is_header(first.trim_ascii()) || first_lines(head, |line| columns.resembles(line));
        Fit::of(content, suffix.is_some_and(|suffix| name.ends_with(suffix)))
    }

    fn understood(&self) -> Columns {
        Columns::fixed(self.columns, self.separator, self.more)
    }

    /// Whether a line holds the columns' names, in any case.
    fn is_header(&self, line: &[u8]) -> bool {
        let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        let names = line.split(|&byte| byte == b',').map(<[u8]>::trim_ascii);
        let expected = self.columns.iter().map(|(name, _)| name.as_bytes());
        self.separator == Separator::COMMA
            && line.iter().filter(|&&byte| byte == b',').count() + 1 == self.columns.len()
            && names.zip(expected).all(|(name, expected)| name.eq_ignore_ascii_case(expected))
    }
}

/// Reads the lines of a [`Layout`].
pub(super) struct Fixed {
    layout: &'static Layout,
    columns: Columns,
    /// Whether the first line is behind us.
    started: bool,
    skipped: u64,
}

impl Fixed {
    /// Counts a request that is left out.
    pub fn skip(&mut self) {
        self.skipped += 1;
    }
}

impl LineParser for Fixed {
    fn carries(&self) -> Carries {
        self.columns.carries()
    }

    fn unit_bytes(&self) -> u64 {
        self.columns.unit_bytes(None)
    }

    fn skipped(&self) -> u64 {
        self.skipped
    }

    fn reorders(&self) -> bool {
        self.layout.reorder
    }

    #[inline]
    fn parse(&mut self, line: &[u8]) -> Result<Option<Record>, String> {
        if !std::mem::replace(&mut self.started, true) && self.layout.is_header(line) {
            return Ok(None);
        }
        match self.columns.record(line)? {
            Some(record) if record.size == 0 => {
                self.skip();
                Ok(None)
            }
            record => Ok(record),
        }
    }
}
