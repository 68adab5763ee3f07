//! `dbench`: the operations of a file server's clients: dbench's loadfiles, or CSV made from one.
//!
//! Source: dbench's manual and the comments in its example loadfiles (Tridgell; Sahlberg). A line is "[seconds]
//! operation arguments... status"; names are quoted; # begins a comment. Requests are
//!
//! | back end | line |
//! | --- | --- |
//! | file, socket | `ReadX handle offset size done status`; the same with `WriteX` and `Write` |
//! | | `NTCreateX "name" options disposition handle status` opens, `Close handle status` closes |
//! | SMB, NFS | `READ "name" offset size status`, `READ3`; `WRITE "name" offset size status`, `WRITE3` with `stable` before the status |
//!
//! The size of ReadX and WriteX is what was actually moved, `done`. If it is 0, at the end of a file, or if the status
//! is an error, the request is skipped and counted. All other operations move no data and are ignored. A file is a
//! name, numbered in order of first appearance; a file that is deleted and created again, or renamed, is identified by
//! its name. One loadfile is one client, which dbench runs closed loop: times, if any, are the earliest issue times.
//! Random offsets ("*") are refused, because they do not form a trace.
//!
//! The CSV is `seq,op,pid,file,offset,size`: sequence number, R or W, client, file, offset and size in bytes.

use std::collections::BTreeMap;

use headstart_types::Nanos;

use super::fields::hexadecimal;
use super::names::Names;
use super::{csv, first_lines};
use crate::lines::{LineParser, LineReader, Lines};
use crate::number::{nanos, shown, whole};
use crate::{Carries, Evidence, Format, Record, RecordReader, Source, TraceError};

/// The header of the CSV.
const HEADER: &[u8] = b"seq,op,pid,file,offset,size";
const TIME_UNIT_NS: u64 = 1_000_000_000;

pub(crate) const FORMAT: Format = Format {
    name: "dbench",
    summary: "dbench's loadfiles, or CSV seq,op,pid,file,offset,size made from them",
    source: "dbench's manual",
    carries: Carries { processes: true, files: true, ..Carries::BLOCKS },
    detect,
    open,
};

fn detect(head: &[u8]) -> Option<Evidence> {
    // The first lines of a loadfile must contain operations; a comment alone could be of any format.
    let is_operation =
        |line: &[u8]| line.starts_with(b"#") || Fields::new(line).is_some_and(|fields| fields.is_operation());
    let commented = || first_lines(head, |line| line.starts_with(b"#"));
    Evidence::mark(
        is_header(head) || first_lines(head, is_operation) && !commented(),
        "the lines are operations of dbench",
    )
}

fn is_header(head: &[u8]) -> bool {
    head.split(|&byte| byte == b'\n').next().is_some_and(|first| first.trim_ascii() == HEADER)
}

fn open(source: Source) -> Result<Box<dyn RecordReader>, TraceError> {
    if is_header(source.head()) {
        return csv::open(source, |_| Ok(()));
    }
    let lines = source.head().split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
    let first = lines.filter(|line| !line.starts_with(b"#")).find_map(Fields::new);
    let timed = first.is_some_and(|fields| fields.time.is_some());
    Ok(Box::new(LineReader::new(Lines::new(source), Loadfile { timed, ..Loadfile::default() })))
}

/// Maximum number of words of a line that are parsed.
const WORDS_MAX: usize = 8;

/// A parsed line of a loadfile.
struct Fields<'a> {
    time: Option<&'a [u8]>,
    operation: &'a [u8],
    /// The remaining words, the status last.
    rest: [&'a [u8]; WORDS_MAX],
    count: usize,
}

impl<'a> Fields<'a> {
    /// `None` for a blank line.
    fn new(line: &'a [u8]) -> Option<Self> {
        let (mut word, mut left) = next_word(line)?;
        let mut time = None;
        if word[0].is_ascii_digit() {
            time = Some(word);
            (word, left) = next_word(left)?;
        }
        let mut fields = Self { time, operation: word, rest: [b""; WORDS_MAX], count: 0 };
        while let Some((word, after)) = next_word(left) {
            if let Some(place) = fields.rest.get_mut(fields.count) {
                *place = word;
            }
            fields.count += 1;
            left = after;
        }
        Some(fields)
    }

    /// Whether the line begins like a line of a loadfile.
    fn is_operation(&self) -> bool {
        const OPERATIONS: &str = "NTCreateX Close ReadX WriteX Deltree Mkdir Rmdir Rename Unlink LockX UnlockX Flush \
            Sleep FIND_FIRST QUERY_PATH_INFORMATION QUERY_FILE_INFORMATION QUERY_FS_INFORMATION \
            SET_FILE_INFORMATION OPEN READ WRITE READ3 WRITE3 MKDIR3 LOOKUP3 CREATE3 GETATTR3";
        let mut known = OPERATIONS.split(' ');
        self.count > 0 && known.any(|known| known.as_bytes().eq_ignore_ascii_case(self.operation))
    }

    /// The arguments, if their number is right; the status is the last word.
    fn arguments<const COUNT: usize>(&self, form: &str) -> Result<[&'a [u8]; COUNT], String> {
        let mut arguments = [&b""[..]; COUNT];
        if self.count != COUNT {
            let operation = shown(self.operation);
            return Err(format!("{operation} has {} arguments; allowed: {COUNT}, {form}", self.count));
        }
        arguments.copy_from_slice(&self.rest[..COUNT]);
        Ok(arguments)
    }

    /// Whether the operation succeeded.
    fn succeeded(&self) -> bool {
        let status = self.count.checked_sub(1).and_then(|last| self.rest.get(last)).copied().unwrap_or_default();
        matches!(status, b"NT_STATUS_OK" | b"SUCCESS" | b"*") || hexadecimal(status, "").is_ok_and(|code| code == 0)
    }
}

/// The next word of a line, without quotes, and the rest of the line.
fn next_word(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let line = line.trim_ascii_start();
    let (&first, after) = line.split_first()?;
    if first == b'"' {
        let end = memchr::memchr(b'"', after).unwrap_or(after.len());
        if end > 0 {
            return Some((&after[..end], after.get(end + 1..).unwrap_or_default()));
        }
    }
    let end = line.iter().position(u8::is_ascii_whitespace).unwrap_or(line.len());
    Some((&line[..end], &line[end..]))
}

#[derive(Default)]
struct Loadfile {
    /// Whether the first operation has a time.
    timed: bool,
    files: Names,
    /// The files of the open handles.
    handles: BTreeMap<u64, u32>,
    skipped: u64,
}

impl Loadfile {
    /// Opens and closes; handles are decimal or, after "0x", hexadecimal.
    fn create(&mut self, fields: &Fields) -> Result<(), String> {
        let form = "\"name\" options disposition handle status";
        let [name, _, _, handle, _] = fields.arguments(form)?;
        if fields.succeeded() {
            self.handles.insert(number(handle, "handle")?, self.files.number(name)?);
        }
        Ok(())
    }

    /// Parses a read or write, by handle or by name.
    fn request(&mut self, fields: &Fields, by: By, write: bool) -> Result<Option<Record>, String> {
        let (file, offset, size) = match by {
            By::Handle => {
                let [handle, offset, _, done, _] = fields.arguments("handle offset size done status")?;
                (self.opened(handle)?, offset, done)
            }
            By::Name => {
                let [name, offset, size, _] = fields.arguments("\"name\" offset size status")?;
                (self.files.number(name)?, offset, size)
            }
            By::NameStable => {
                let [name, offset, size, _, _] = fields.arguments("\"name\" offset size stable status")?;
                (self.files.number(name)?, offset, size)
            }
        };
        let (offset, size) = (number(offset, "offset")?, number(size, "size")?);
        if size == 0 || !fields.succeeded() {
            self.skipped += 1;
            return Ok(None);
        }
        let time = match fields.time {
            Some(time) if self.timed => Nanos(nanos(time, "time", TIME_UNIT_NS)?),
            None if self.timed => return Err("the line has no time; allowed: a time on every line, or none".to_owned()),
            _ => Nanos::ZERO,
        };
        Ok(Some(Record { time, offset, size, file, write, ..Record::default() }))
    }

    fn opened(&self, handle: &[u8]) -> Result<u32, String> {
        let file = self.handles.get(&number(handle, "handle")?);
        file.copied().ok_or_else(|| format!("handle {} is not open; allowed: one that NTCreateX opened", shown(handle)))
    }
}

/// How a request names its file.
enum By {
    Handle,
    Name,
    /// By name, followed by NFS's field for the stability of a write.
    NameStable,
}

/// A number in C notation: hexadecimal after "0x".
fn number(field: &[u8], column: &str) -> Result<u64, String> {
    if field.starts_with(b"0x") {
        hexadecimal(field, column)
    } else {
        whole(field, column)
    }
}

impl LineParser for Loadfile {
    fn carries(&self) -> Carries {
        Carries { time: self.timed, processes: false, ..FORMAT.carries }
    }

    fn skipped(&self) -> u64 {
        self.skipped
    }

    fn parse(&mut self, line: &[u8]) -> Result<Option<Record>, String> {
        let Some(fields) = Fields::new(line).filter(|fields| !fields.operation.starts_with(b"#")) else {
            return Ok(None);
        };
        let is = |name: &[u8]| fields.operation.eq_ignore_ascii_case(name);
        if is(b"ReadX") {
            return self.request(&fields, By::Handle, false);
        } else if is(b"WriteX") || is(b"Write") && fields.count == 5 {
            return self.request(&fields, By::Handle, true);
        } else if is(b"READ") || is(b"READ3") {
            return self.request(&fields, By::Name, false);
        } else if is(b"WRITE") {
            return self.request(&fields, By::Name, true);
        } else if is(b"WRITE3") {
            return self.request(&fields, By::NameStable, true);
        } else if is(b"NTCreateX") {
            self.create(&fields)?;
        } else if is(b"Close") {
            // With SMB, files are named by path and no handle is needed.
            if let Ok(handle) = number(fields.rest[0], "handle") {
                self.handles.remove(&handle);
            }
        } else if fields.count == 0 {
            return Err(format!("{} has no status; allowed: an operation, its arguments, a status", shown(line)));
        }
        Ok(None)
    }
}
