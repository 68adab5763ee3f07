//! The trace formats by name and by content. The command's help, the docs, format detection and the tests all iterate
//! [`FORMATS`].

use std::path::Path;

use headstart_types::KeyError;

use crate::formats::{csv, offsets, FORMATS};
use crate::nearest::nearest;
use crate::source::other_compression;
use crate::{Carries, ErrorPosition, Record, RecordReader, Source, TraceError};

/// Evidence in a file's content that it is of a format. File names are not considered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Evidence {
    /// Whether no other format looks the same: a magic number, a distinctive header, the words of a tool. Otherwise the
    /// evidence is the form of the lines or records, which other formats may share.
    pub mark: bool,
    /// What was found, for `trace info`: "the first line ...".
    pub reason: &'static str,
}

impl Evidence {
    /// A distinctive mark, if it was found.
    #[must_use]
    pub fn mark(found: bool, reason: &'static str) -> Option<Self> {
        found.then_some(Self { mark: true, reason })
    }

    /// A form, if the content has it.
    #[must_use]
    pub fn form(found: bool, reason: &'static str) -> Option<Self> {
        found.then_some(Self { mark: false, reason })
    }
}

pub struct Format {
    /// The name in a scenario.
    pub name: &'static str,
    /// A short description.
    pub summary: &'static str,
    /// The definition of the format.
    pub source: &'static str,
    /// The fields that its traces carry; for formats with optional columns, the maximum.
    pub carries: Carries,
    /// Detects the format from the first bytes of the content.
    pub detect: fn(head: &[u8]) -> Option<Evidence>,
    /// Starts reading. Header errors are found here, all other errors while reading.
    pub open: fn(Source) -> Result<Box<dyn RecordReader>, TraceError>,
}

/// Opens the trace at `path`. `format` is the name of a row of [`FORMATS`], or "auto".
///
/// # Errors
/// The file cannot be read, its format is unknown or not recognised, or its header is wrong.
pub fn open(path: &Path, format: &str) -> Result<Box<dyn RecordReader>, TraceError> {
    open_with(path, format, None)
}

/// As [`open`]; `request_bytes` is the size of requests, for traces that carry offsets without sizes.
///
/// # Errors
/// As [`open`]; also a size that is 0, or given for a trace that carries sizes.
pub fn open_with(path: &Path, format: &str, request_bytes: Option<u64>) -> Result<Box<dyn RecordReader>, TraceError> {
    let names = || std::iter::once("auto").chain(FORMATS.iter().map(|format| format.name));
    let unknown = |error: KeyError| {
        let KeyError { problem, allowed, .. } = error;
        TraceError::UnknownFormat { file: path.to_owned(), problem, allowed }
    };
    let named = FORMATS.iter().find(|row| row.name == format);
    if named.is_none() && format != "auto" {
        return Err(unknown(KeyError::unknown("format", "trace format", format, names())));
    }
    if request_bytes == Some(0) {
        return Err(KeyError::new("request_size", "is 0", "1 byte or more").into());
    }
    let source = Source::open(path)?.with_request_bytes(request_bytes);
    let (row, reason) = match named {
        Some(row) => (row, (row.detect)(source.head()).map_or("the format was named", |evidence| evidence.reason)),
        None if source.head().is_empty() => {
            return Err(source.bad(ErrorPosition::File, crate::checks::EMPTY.to_owned()))
        }
        None => detect(&source).ok_or_else(|| match other_compression(source.head()) {
            Some(packed) => {
                let allowed = "plain, or compressed by gzip, bzip2, xz or zstd";
                source.bad(ErrorPosition::File, format!("is compressed by {packed}; allowed: {allowed}"))
            }
            None => {
                let problem = match nearest(source.head()) {
                    Some(advice) => format!("the format was not recognised; {advice}; or name the format"),
                    None => "the format was not recognised; name it".to_owned(),
                };
                unknown(KeyError::new("format", problem, names().skip(1).collect::<Vec<_>>().join(", ")))
            }
        })?,
    };
    if request_bytes.is_some() && !SIZED_BY_USER.contains(&row.name) {
        let problem = format!("the trace is of format {}, which carries sizes", row.name);
        let allowed = format!("no request_size, or one of the formats {}", SIZED_BY_USER.join(", "));
        return Err(KeyError::new("request_size", problem, allowed).into());
    }
    Ok(Box::new(Chosen { reader: (row.open)(source)?, format: row.name, reason }))
}

/// A reader together with its format and the evidence for it.
struct Chosen {
    reader: Box<dyn RecordReader>,
    format: &'static str,
    reason: &'static str,
}

impl RecordReader for Chosen {
    fn inner(&self) -> Option<&dyn RecordReader> {
        Some(&*self.reader)
    }

    fn format(&self) -> Option<(&'static str, &'static str)> {
        Some((self.format, self.reason))
    }

    fn carries(&self) -> Carries {
        self.reader.carries()
    }

    fn read(&mut self, into: &mut Vec<Record>) -> Result<bool, TraceError> {
        self.reader.read(into)
    }

    fn progress(&self) -> (u64, u64) {
        self.reader.progress()
    }
}

/// Formats whose traces may lack sizes.
const SIZED_BY_USER: [&str; 2] = [offsets::FORMAT.name, csv::FORMAT.name];

/// The format with the best evidence, and that evidence.
fn detect(source: &Source) -> Option<(&'static Format, &'static str)> {
    let head = source.head();
    if source.request_bytes().is_some() && offsets::may_be(head) {
        return Some((&offsets::FORMAT, "the lines are numbers, and a request size is given"));
    }
    let found = FORMATS.iter().filter_map(|row| (row.detect)(head).map(|evidence| (row, evidence)));
    // `max_by_key` returns the last of equals, hence the reversed order.
    found.rev().max_by_key(|(_, evidence)| evidence.mark).map(|(row, evidence)| (row, evidence.reason))
}
