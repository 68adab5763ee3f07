//! `csv`: columns under a header, in any order, with the names that people give them; columns of other names are passed
//! over. Commas, semicolons, tabulators, "|" or spaces separate them.
//!
//! | columns | meaning |
//! | --- | --- |
//! | `offset`, `pos`, ... + `size`, `length`, `bytes`, ... | bytes; hexadecimal behind 0x; another unit behind the name |
//! | `lba`, `lbn` or `sector` (+ `nsect` or `size`) | sectors of 512 bytes |
//! | `block` or `id` (+ `size`) | an object's number: no address; sizes in bytes, 4096 without the column |
//! | `time`, `timestamp`, ... | issue time in s; with `_ms`, `_us`, `_ns` in those; a date and clock; since 1970 in any unit |
//! | `dur`, `latency`, ...; `think` | service time, think time after the request; units as for `time` |
//! | `op`, `rw`, `type`, ... | R, W, read, write, pread64, ...; open, close, fsync, ... are left out and counted |
//! | `pid`, `tid`; `file`, `path`, `dev`, ... | a number; a number or a name |
//!
//! All names: docs/your-own-trace.md. Without a column of sizes, requests have the size that the user gives. Where the
//! column `file` has numbers, a table `NAME.files.csv` beside the trace is read too, compressed or not. Calls that
//! read or write 0 bytes, at the end of a file, are left out and counted.

use super::columns::Columns;
use super::files::table_beside;
use super::header::HEADER_ALLOWED;
use crate::lines::{LineParser, LineReader, Lines};
use crate::{Carries, FileEntry, Fit, Format, Place, Record, RecordReader, Source, TraceError};

pub(crate) const FORMAT: Format = Format {
    name: "csv",
    summary:
        "columns under a header: offset, lba, block or id; time, op, pid, file, size, latency, think, by many names",
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
    // Whether there are sizes, or a user gives one, reading will tell.
    let columns = Columns::from_header(header, None).or_else(|_| Columns::from_header(header, Some(1)));
    match (columns, name.ends_with(".csv")) {
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
    let data = source.head().split(|&byte| byte == b'\n').skip(1).find(|line| !line.trim_ascii().is_empty());
    let first_line = data.map(<[u8]>::to_vec);
    let request_bytes = source.request_bytes();
    let path = source.path().map(ToOwned::to_owned);
    let empty = source.bad(Place::File, format!("there is no header; allowed: {HEADER_ALLOWED}"));
    let mut lines = Lines::new(source);
    let Some(header) = lines.next()? else { return Err(empty) };
    let columns = accept(header).and_then(|()| Columns::from_header(header, request_bytes));
    let mut columns = columns.map_err(|problem| lines.bad(problem))?;
    first_line.iter().for_each(|line| columns.look_at(line));
    let first = first_line.and_then(|line| columns.record(&line).ok().flatten());
    let unit_bytes = columns.unit_bytes(first.as_ref());
    let files = match path {
        Some(path) if columns.carries().files && !columns.names_files() => table_beside(&path)?,
        _ => Vec::new(),
    };
    Ok(Box::new(LineReader::new(lines, Csv { columns, files, unit_bytes, skipped: 0 })))
}

struct Csv {
    columns: Columns,
    files: Vec<FileEntry>,
    unit_bytes: u64,
    skipped: u64,
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

    fn note(&self) -> Option<String> {
        self.columns.guessed().map(str::to_owned)
    }

    fn skipped(&self) -> u64 {
        self.skipped
    }

    fn parse(&mut self, line: &[u8]) -> Result<Option<Record>, String> {
        match self.columns.record(line) {
            Ok(Some(record)) if record.size == 0 && self.columns.is_call(line) => {}
            Err(_) if self.columns.moves_nothing(line) => {}
            Err(_) if line.trim_ascii_start().starts_with(b"#") => return Ok(None),
            parsed => return parsed,
        }
        self.skipped += 1;
        Ok(None)
    }
}
