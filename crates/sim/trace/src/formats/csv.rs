//! `csv`: columns with a header, in any order, under many common names. Columns with other names are ignored and listed
//! in a note. The separator is a comma, semicolon, tab, "|" or spaces.
//!
//! | columns | meaning |
//! | --- | --- |
//! | `offset`, `pos`, ... + `size`, `length`, `bytes`, ... | bytes; hexadecimal after 0x; another unit after the name |
//! | `lba`, `lbn` or `sector` (+ `nsect` or `size`) | sectors of 512 bytes |
//! | `block` or `id` (+ `size`) | an object's number: no address; sizes in bytes, 4096 without the column |
//! | `time`, `timestamp`, ... | issue time in s; with `_ms`, `_us`, `_ns` in those; a date and time; since 1970 in any unit |
//! | `dur`, `latency`, ...; `think` | service time, think time after the request; units as for `time` |
//! | `op`, `rw`, `type`, ... | R, W, read, write, pread64, ...; open, close, fsync, ... are skipped and counted |
//! | `pid`, `tid`; `comm`; `file`, `path`, `dev`, ... | a number; a process's name; a number or a name |
//!
//! All names: docs/your-own-trace.md. Without a size column, requests have the size given by the user. If the column
//! `file` has numbers, a table `NAME.files.csv` next to the trace is read too, compressed or not. Requests of 0 bytes,
//! as at the end of a file, are skipped and counted.

use super::columns::Columns;
use super::files::table_beside;
use super::header::HEADER_ALLOWED;
use super::{is_remark, lacks_sectors};
use crate::lines::{LineParser, LineReader, Lines};
use crate::{Carries, ErrorPosition, Evidence, FileEntry, Format, Record, RecordReader, Source, TraceError};

/// Lines of data that are inspected before reading.
const LOOKED_AT: usize = 16;

pub(crate) const FORMAT: Format = Format {
    name: "csv",
    summary:
        "columns with a header: offset, lba, block or id; time, op, pid, file, size, latency, think, by many names",
    source: "headstart",
    carries: Carries {
        time: true,
        duration: true,
        think: true,
        processes: true,
        files: true,
        writes: true,
        addresses: true,
        objects: true,
    },
    detect,
    open: |source| open(source, |_| Ok(())),
};

fn detect(head: &[u8]) -> Option<Evidence> {
    Evidence::mark(header_at(head).is_some(), "a header names an address column")
}

/// The line index of the header: the first line, or one below comments and a tracer's preamble. A sentence that
/// contains a column's name is not a header, because the line below it has other fields.
fn header_at(head: &[u8]) -> Option<usize> {
    if lacks_sectors(head) {
        return None;
    }
    let lines = || head.split(|&byte| byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line)).enumerate();
    for (at, line) in lines() {
        if line.trim_ascii().is_empty() {
            continue;
        }
        let below =
            lines().skip(at + 1).map(|(_, line)| line).find(|line| !line.trim_ascii().is_empty() && !is_remark(line));
        // Whether there are sizes, or the user gives one, is checked when reading.
        let columns = Columns::from_header(line, None).or_else(|_| Columns::from_header(line, Some(1)));
        if columns.is_ok_and(|columns| below.is_none_or(|below| columns.heads(below))) {
            return Some(at);
        }
        if !is_remark(line) {
            return None;
        }
    }
    None
}

/// Reads a header that `accept` accepts, the file table if there is one, and then records.
pub(super) fn open(
    source: Source,
    accept: fn(&[u8]) -> Result<(), String>,
) -> Result<Box<dyn RecordReader>, TraceError> {
    let above = header_at(source.head()).unwrap_or(0);
    // The first lines tell the size of an object and what the columns hold; errors in them are reported when reading.
    let data = source.head().split(|&byte| byte == b'\n').skip(above + 1);
    let data = data.filter(|line| !line.trim_ascii().is_empty() && !is_remark(line)).take(LOOKED_AT);
    let data: Vec<Vec<u8>> = data.map(<[u8]>::to_vec).collect();
    let request_bytes = source.request_bytes();
    let path = source.path().map(ToOwned::to_owned);
    let empty = source.bad(ErrorPosition::File, format!("there is no header; allowed: {HEADER_ALLOWED}"));
    let mut lines = Lines::new(source);
    for _ in 0..above {
        lines.next()?;
    }
    let Some(header) = lines.next()? else { return Err(empty) };
    let columns = accept(header).and_then(|()| Columns::from_header(header, request_bytes));
    let columns = columns.and_then(|columns| columns.looked_at(&data));
    let mut columns = columns.map_err(|problem| lines.bad(problem))?;
    let first = data.first().and_then(|line| columns.record(line).ok().flatten());
    let columns = columns.started();
    let unit_bytes = columns.unit_bytes(first.as_ref());
    let files = match path {
        Some(path) if columns.carries().files && !columns.names_files() => table_beside(&path)?,
        _ => Vec::new(),
    };
    Ok(Box::new(LineReader::new(lines, Csv { columns, files, unit_bytes })))
}

struct Csv {
    columns: Columns,
    files: Vec<FileEntry>,
    unit_bytes: u64,
}

impl LineParser for Csv {
    fn carries(&self) -> Carries {
        self.columns.carries()
    }

    fn unit_bytes(&self) -> u64 {
        self.unit_bytes
    }

    fn sizes_vary(&self) -> bool {
        self.columns.gives_object_sizes()
    }

    fn files(&self) -> &[FileEntry] {
        if self.columns.names_files() {
            return self.columns.files();
        }
        &self.files
    }

    fn process(&self) -> Option<&[u8]> {
        self.columns.process()
    }

    fn note(&self) -> Option<String> {
        self.columns.guessed().map(str::to_owned)
    }

    fn skipped(&self) -> u64 {
        self.columns.skipped()
    }

    fn ignored(&self) -> Vec<&str> {
        self.columns.ignored().collect()
    }

    fn parse(&mut self, line: &[u8]) -> Result<Option<Record>, String> {
        self.columns.record(line)
    }
}
