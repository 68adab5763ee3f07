//! `fio`: the log that fio writes with `write_iolog` and replays with `read_iolog`, versions 2 and 3.
//!
//! Source: fio's manual, "Trace file format" (versions 2 and 3; a first line "fio version 3 iolog"). Version 2 has
//! lines "file action [offset length]"; version 3 precedes them with a timestamp in microseconds. `read` and `write`
//! are requests, in bytes. `sync`, `datasync` and `trim` move no data that a cache could hold; they are skipped and
//! counted, and so are requests of 0 bytes. `add`, `open` and `close` are not requests and are ignored. Files are
//! numbered in order of first appearance.
//!
//! Jobs with the same log file append to it in the order in which they end, each with its own first line and times
//! relative to its start. They are read as one after another, because the log does not tell which jobs ran
//! concurrently.
//!
//! Version 2 only has times if it has lines "file wait ms ignored". They are read as fio's reader reads them
//! (`read_iolog` and `read_iolog_get` in `iolog.c` of fio 3.x), which differs from the manual (microseconds since the
//! previous wait): the number is the time in milliseconds since the start of the run before which no later request is
//! issued; a wait until a time that has passed has no effect. Lines that fio's reader rejects with a message and skips
//! are skipped and counted: a `wait` that does not have four columns, and every `wait` of version 3.

use headstart_types::Nanos;

use super::columns::spaced;
use super::names::Names;
use crate::lines::{LineParser, LineReader, Lines};
use crate::number::{nanos, shown, whole};
use crate::{Carries, ErrorPosition, Evidence, Format, Record, RecordReader, Source, TraceError};

const VERSION_2: &[u8] = b"fio version 2 iolog";
const VERSION_3: &[u8] = b"fio version 3 iolog";
/// Timestamps of version 3 are in microseconds.
const TIME_UNIT_NS: u64 = 1_000;
/// Waits of version 2 are in milliseconds.
const WAIT_UNIT_NS: u64 = 1_000_000;

const CARRIES: Carries = Carries { files: true, ..Carries::BLOCKS };

pub(crate) const FORMAT: Format = Format {
    name: "fio",
    summary: "fio's iolog, version 2 (file, action, offset, length) or 3 (with time stamps in us)",
    source: "fio's manual, trace file format",
    carries: CARRIES,
    detect: |head| {
        Evidence::mark(
            head.starts_with(VERSION_2) || head.starts_with(VERSION_3),
            "the first line is \"fio version ... iolog\"",
        )
    },
    open,
};

fn open(source: Source) -> Result<Box<dyn RecordReader>, TraceError> {
    if source.head().is_empty() {
        return Err(source.bad(ErrorPosition::File, crate::checks::EMPTY.to_owned()));
    }
    let mut lines = Lines::new(source);
    let version = match lines.next()?.unwrap_or_default() {
        first if first.starts_with(VERSION_2) => 2,
        first if first.starts_with(VERSION_3) => 3,
        first => {
            let allowed = "fio version 2 iolog, fio version 3 iolog";
            let problem = format!("the first line {} is wrong; allowed: {allowed}", shown(first));
            return Err(lines.bad(problem));
        }
    };
    Ok(Box::new(LineReader::new(lines, Fio { version, files: Names::default(), began_ns: 0, time_ns: 0, skipped: 0 })))
}

struct Fio {
    version: u8,
    files: Names,
    /// When the job began: at the end of the previous one.
    began_ns: u64,
    /// The time of the last request; in version 2, the end of the last wait.
    time_ns: u64,
    skipped: u64,
}

impl Fio {
    /// "file wait ms ignored" of version 2.
    fn wait(&mut self, until: Option<&[u8]>, ignored: Option<&[u8]>) -> Result<Option<Record>, String> {
        let (2, Some(until), Some(_)) = (self.version, until, ignored) else { return Ok(self.skip()) };
        self.time_ns = self.time_ns.max(self.since_start(nanos(until, "wait", WAIT_UNIT_NS)?));
        Ok(None)
    }

    /// Converts a time of the current job to a time of the log.
    fn since_start(&self, time_ns: u64) -> u64 {
        self.began_ns.saturating_add(time_ns)
    }

    /// Counts a skipped line.
    fn skip(&mut self) -> Option<Record> {
        self.skipped += 1;
        None
    }

    /// The form of the lines, for error texts.
    fn allowed(&self) -> &'static str {
        match self.version {
            2 => "\"file action\" or \"file action offset length\"",
            _ => "\"us file action\" or \"us file action offset length\"",
        }
    }
}

impl LineParser for Fio {
    fn carries(&self) -> Carries {
        CARRIES
    }

    fn note(&self) -> Option<String> {
        let at_once = "version 2 without waits: all requests are issued at once";
        (self.version == 2 && self.time_ns == 0).then(|| at_once.to_owned())
    }

    fn skipped(&self) -> u64 {
        self.skipped
    }

    fn parse(&mut self, line: &[u8]) -> Result<Option<Record>, String> {
        if line.starts_with(if self.version == 2 { VERSION_2 } else { VERSION_3 }) {
            self.began_ns = self.time_ns;
            return Ok(None);
        }
        let mut fields = spaced(line);
        let Some(mut first) = fields.next() else { return Ok(None) };
        if self.version == 3 {
            self.time_ns = self.since_start(nanos(first, "time", TIME_UNIT_NS)?);
            first = fields.next().unwrap_or_default();
        }
        let Some(action) = fields.next() else {
            return Err(format!("{} has too few columns; allowed: {}", shown(line), self.allowed()));
        };
        let write = match action {
            b"read" => false,
            b"write" => true,
            b"wait" => return self.wait(fields.next(), fields.next()),
            b"sync" | b"datasync" | b"trim" => return Ok(self.skip()),
            b"add" | b"open" | b"close" => return Ok(None),
            _ => {
                let allowed = "read, write, add, open, close, sync, datasync, trim, wait";
                return Err(format!("{} in column action is unknown; allowed: {allowed}", shown(action)));
            }
        };
        let (Some(offset), Some(length), None) = (fields.next(), fields.next(), fields.next()) else {
            let columns = spaced(line).count();
            return Err(format!("{} has {columns} columns; allowed: {}", shown(line), self.allowed()));
        };
        let (offset, size) = (whole(offset, "offset")?, whole(length, "length")?);
        if size == 0 {
            return Ok(self.skip());
        }
        Ok(Some(Record {
            time: Nanos(self.time_ns),
            offset,
            size,
            write,
            file: self.files.number(first)?,
            ..Record::default()
        }))
    }
}
