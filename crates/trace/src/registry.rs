//! The trace formats: one row each. The command's help, the docs, detection and the tests all iterate this table.

use std::path::Path;

use headstart_types::KeyError;

use crate::formats::{
    alibaba, biosnoop, blkparse, csv, dbench, disksim, fio, headstart, hints, lirs, lis, measured, msr, offsets,
    oracle_general, replayer, spc,
    syscalls::{perf, strace},
    systor, tencent, u32_blocks, vscsi,
};
use crate::nearest::nearest;
use crate::source::other_compression;
use crate::{Carries, Place, RecordReader, Source, TraceError};

/// How well a file fits a format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fit {
    /// Not at all.
    No,
    /// By its name only; reading it will tell what is wrong with the content.
    Name,
    /// By its first lines or records.
    Content,
}

impl Fit {
    /// The fit of a file whose content does or does not look right, and whose name does or does not.
    #[must_use]
    pub fn of(content: bool, name: bool) -> Self {
        match (content, name) {
            (true, _) => Fit::Content,
            (false, true) => Fit::Name,
            (false, false) => Fit::No,
        }
    }
}

/// A trace format.
pub struct Format {
    /// The name in a scenario.
    pub name: &'static str,
    /// What it is, in a few words.
    pub summary: &'static str,
    /// Who defined it.
    pub source: &'static str,
    /// What its traces carry; in formats with optional columns, at most.
    pub carries: Carries,
    /// How well a file fits, by its name (without compression suffix) and the first bytes of its content.
    pub detect: fn(name: &str, head: &[u8]) -> Fit,
    /// Starts reading. Wrong headers are found here, everything else in reading.
    pub open: fn(Source) -> Result<Box<dyn RecordReader>, TraceError>,
}

/// All formats. Where several fit a file equally well, the first is taken: CSV formats with a header of their own
/// stand before `csv`.
pub static FORMATS: &[Format] = &[
    headstart::FORMAT,
    hints::FORMAT,
    msr::FORMAT,
    alibaba::FORMAT,
    tencent::FORMAT,
    systor::FORMAT,
    dbench::FORMAT,
    biosnoop::FORMAT,
    csv::FORMAT,
    strace::FORMAT,
    perf::FORMAT,
    fio::FORMAT,
    blkparse::FORMAT,
    spc::FORMAT,
    disksim::FORMAT,
    replayer::FORMAT,
    measured::FORMAT,
    lis::FORMAT,
    lirs::FORMAT,
    offsets::FORMAT,
    vscsi::FORMAT,
    oracle_general::FORMAT,
    u32_blocks::FORMAT,
];

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
    let row = match named {
        Some(row) => row,
        None if source.head().is_empty() => return Err(source.bad(Place::File, crate::checks::EMPTY.to_owned())),
        None => detect(&source).ok_or_else(|| match other_compression(source.head()) {
            Some(packed) => {
                let allowed = "plain, or compressed by gzip, bzip2, xz or zstd";
                source.bad(Place::File, format!("is compressed by {packed}; allowed: {allowed}"))
            }
            None => {
                let problem = match nearest(source.head()) {
                    Some(advice) => format!("the format is not recognised; {advice}; or name the format"),
                    None => "the format is not recognised; name it".to_owned(),
                };
                unknown(KeyError::new("format", problem, names().skip(1).collect::<Vec<_>>().join(", ")))
            }
        })?,
    };
    if request_bytes.is_some() && !SIZED_BY_USER.contains(&row.name) {
        let problem = format!("the trace is of format {}, which has sizes", row.name);
        let allowed = format!("no request_size, or one of the formats {}", SIZED_BY_USER.join(", "));
        return Err(KeyError::new("request_size", problem, allowed).into());
    }
    (row.open)(source)
}

/// Formats whose traces may lack sizes.
const SIZED_BY_USER: [&str; 2] = [offsets::FORMAT.name, csv::FORMAT.name];

/// The format that fits best, if any fits.
fn detect(source: &Source) -> Option<&'static Format> {
    if source.request_bytes().is_some() && offsets::may_be(source.head()) {
        return Some(&offsets::FORMAT);
    }
    let name = source.plain_name();
    let fits = FORMATS.iter().map(|row| ((row.detect)(&name, source.head()), row));
    // `max_by_key` takes the last of equals, and the first is wanted.
    fits.rev().max_by_key(|(fit, _)| *fit).filter(|(fit, _)| *fit > Fit::No).map(|(_, row)| row)
}
