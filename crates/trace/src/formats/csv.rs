//! `csv`: comma-separated columns under a header, in any order; columns of other names are passed over.
//!
//! | columns | meaning |
//! | --- | --- |
//! | `offset` + `size` | bytes |
//! | `lba`, `lbn` or `sector` (+ `nsect` or `size`) | sectors of 512 bytes |
//! | `block` or `id` (+ `size`) | an object's number: no address; sizes in bytes, 4096 without the column |
//! | `time` or `timestamp` | issue time in s; with `_ms`, `_us`, `_ns` in those |
//! | `dur`, `duration` or `service`; `think` | service time, think time after the request; units as for `time` |
//! | `op` | R, W, read, write |
//! | `pid`; `file`, `dev` or `device` | whole numbers |
//!
//! Where there is a `file` column, a table `NAME.files.csv` beside the trace is read too, compressed or not.

use super::columns::{Columns, HEADER_ALLOWED};
use super::files::table_beside;
use crate::lines::{LineParser, LineReader, Lines};
use crate::{Carries, FileEntry, Fit, Format, Place, Record, RecordReader, Source, TraceError};

pub(crate) const FORMAT: Format = Format {
    name: "csv",
    summary: "comma-separated columns under a header: offset, lba, block or id; time, op, pid, file, size, dur, think",
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

fn detect(name: &str, head: &[u8]) -> Fit {
    let header = head.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let header = header.strip_suffix(b"\r").unwrap_or(header);
    match (Columns::from_header(header), name.ends_with(".csv")) {
        (Ok(_), _) => Fit::Content,
        (Err(_), true) => Fit::Name,
        (Err(_), false) => Fit::No,
    }
}

/// Reads a header that `accept` accepts, the file table if there is one, and then records.
pub(super) fn open(
    source: Source,
    accept: fn(&[u8]) -> Result<(), String>,
) -> Result<Box<dyn RecordReader>, TraceError> {
    // The first record tells the size of an object; where it is wrong or not within the head, the reading will tell.
    let first_line = source.head().split(|&byte| byte == b'\n').nth(1).map(<[u8]>::to_vec);
    let path = source.path().map(ToOwned::to_owned);
    let empty = source.bad(Place::File, format!("there is no header; allowed: {HEADER_ALLOWED}"));
    let mut lines = Lines::new(source);
    let Some(header) = lines.next()? else { return Err(empty) };
    let columns = accept(header).and_then(|()| Columns::from_header(header));
    let columns = columns.map_err(|problem| lines.bad(problem))?;
    let first = first_line.and_then(|line| columns.record(&line).ok().flatten());
    let unit_bytes = columns.unit_bytes(first.as_ref());
    let files = match path {
        Some(path) if columns.carries().files => table_beside(&path)?,
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
        &self.files
    }

    fn parse(&mut self, line: &[u8]) -> Result<Option<Record>, String> {
        self.columns.record(line)
    }
}
