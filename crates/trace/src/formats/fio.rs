//! `fio`: the log that fio writes with `write_iolog` and replays with `read_iolog`, versions 2 and 3.
//!
//! Source: fio's manual, "Trace file format" (versions 2 and 3; a first line "fio version 3 iolog").
//! Version 2 has lines "file action [offset length]", version 3 the same behind a time stamp in microseconds.
//! `read` and `write` are requests, in bytes. `add`, `open`, `close`, `sync`, `datasync` and `trim` move nothing and
//! are passed over. Files are numbered in order of first appearance.
//! Version 2 has times only where it has lines "file wait us": as the manual has it, each counts from the wait before
//! it, so that the time of a request is the sum of the waits before it. (fio itself takes the number for milliseconds
//! since the start of the job; we follow the manual.) Version 3 allows no wait.

use headstart_types::Nanos;

use super::columns::spaced;
use super::names::Names;
use crate::lines::{LineParser, LineReader, Lines};
use crate::number::{nanos, shown, whole};
use crate::{Carries, Fit, Format, Place, Record, RecordReader, Source, TraceError};

const VERSION_2: &[u8] = b"fio version 2 iolog";
const VERSION_3: &[u8] = b"fio version 3 iolog";
/// Times are in microseconds.
const TIME_UNIT_NS: u64 = 1_000;

const CARRIES: Carries = Carries {
    time: true,
    duration: false,
    think: false,
    processes: false,
    files: true,
    writes: true,
    addresses: true,
    objects: false,
};

pub(crate) const FORMAT: Format = Format {
    name: "fio",
    summary: "fio's iolog, version 2 (file, action, offset, length) or 3 (with time stamps in us)",
    source: "fio's manual, trace file format",
    carries: CARRIES,
    detect: |_, head| Fit::of(head.starts_with(VERSION_2) || head.starts_with(VERSION_3), false),
    open,
};

fn open(source: Source) -> Result<Box<dyn RecordReader>, TraceError> {
    if source.head().is_empty() {
        return Err(source.bad(Place::File, crate::checks::EMPTY.to_owned()));
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
    Ok(Box::new(LineReader::new(lines, Fio { version, files: Names::default(), waited_ns: 0, skipped: 0 })))
}

struct Fio {
    version: u8,
    files: Names,
    /// Sum of the waits so far, of version 2.
    waited_ns: u64,
    skipped: u64,
}

impl Fio {
    /// "file wait us [ignored]" of version 2.
    fn wait(&mut self, field: Option<&[u8]>) -> Result<Option<Record>, String> {
        if self.version != 2 {
            return Err("the action wait is of version 2; allowed in version 3: time stamps".to_owned());
        }
        let waited_ns = nanos(field.unwrap_or_default(), "wait", TIME_UNIT_NS)?;
        self.waited_ns =
            self.waited_ns.checked_add(waited_ns).ok_or("the waits sum to more than 584 years; allowed: less")?;
        Ok(None)
    }

    /// How the lines look, for error texts.
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

    fn unit_bytes(&self) -> u64 {
        1
    }

    fn note(&self) -> Option<&'static str> {
        (self.version == 2 && self.waited_ns == 0).then_some("version 2 without waits: all requests are issued at once")
    }

    fn skipped(&self) -> u64 {
        self.skipped
    }

    fn parse(&mut self, line: &[u8]) -> Result<Option<Record>, String> {
        let mut fields = spaced(line);
        let Some(mut first) = fields.next() else { return Ok(None) };
        let mut time = Nanos(self.waited_ns);
        if self.version == 3 {
            time = Nanos(nanos(first, "time", TIME_UNIT_NS)?);
            first = fields.next().unwrap_or_default();
        }
        let Some(action) = fields.next() else {
            return Err(format!("{} has too few columns; allowed: {}", shown(line), self.allowed()));
        };
        let write = match action {
            b"read" => false,
            b"write" => true,
            b"wait" => return self.wait(fields.next()),
            b"add" | b"open" | b"close" | b"sync" | b"datasync" | b"trim" => return Ok(None),
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
            self.skipped += 1;
            return Ok(None);
        }
        Ok(Some(Record { time, offset, size, write, file: self.files.number(first)?, ..Record::default() }))
    }
}
