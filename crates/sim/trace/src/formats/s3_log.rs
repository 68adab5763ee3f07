//! `s3-log`: server access logs of Amazon S3.
//!
//! Source: the S3 user guide, "Amazon S3 server access log format". Fields are separated by spaces; the time is in
//! brackets, others are quoted: owner bucket [time] address requester id operation key "URI" status error bytes-sent
//! object-size total-ms turn-around-ms "referer" "agent" version ... . `...GET.OBJECT` reads the bytes that were sent,
//! and `...PUT.OBJECT` writes the object; HEAD, lists, deletes, copies, parts of uploads and errors move no data to be
//! cached. The file is bucket/key. The time is that of the arrival; the duration is the total time.
//!
//! The log does not tell which part of an object a request with status 206 read. We place the parts of one object one
//! after another, wrapping to its start at its end; addresses are then not carried. The first [`SURVEY`] lines decide
//! this. Logs are not written in order: the whole trace is held and sorted.

use headstart_types::Nanos;

use super::names::NamedFiles;
use super::{lines_of, unescaped};
use crate::checks::EMPTY;
use crate::clock::dated;
use crate::lines::{LineParser, LineReader, Lines};
use crate::number::{nanos, shown, whole};
use crate::{Carries, ErrorPosition, Evidence, FileEntry, Format, Record, RecordReader, Source, TraceError};

/// Number of lines searched for requests for parts.
const SURVEY: usize = 65_536;
const MILLISECOND_NS: u64 = 1_000_000;
const PARTS: &str =
    "S3 does not log which part of an object a request with status 206 read: parts are placed one after another";

const CARRIES: Carries = Carries { duration: true, files: true, ..Carries::BLOCKS };

pub(crate) const FORMAT: Format = Format {
    name: "s3-log",
    summary: "server access logs of Amazon S3; the object is the file",
    source: "Amazon S3 user guide, server access log format",
    carries: CARRIES,
    detect: |head| {
        let of_s3 =
            |line: &[u8]| Fields::of(line).is_some_and(|fields| is_operation(fields.0[6]) && fields.time().is_ok());
        Evidence::mark(lines_of(head).next().is_some_and(of_s3), "the lines are those of S3's server access log")
    },
    open,
};

fn is_operation(field: &[u8]) -> bool {
    [&b"REST."[..], b"SOAP.", b"WEBSITE.", b"BATCH.", b"S3."].iter().any(|start| field.starts_with(start))
}

fn open(source: Source) -> Result<Box<dyn RecordReader>, TraceError> {
    if source.head().is_empty() {
        return Err(source.bad(ErrorPosition::File, EMPTY.to_owned()));
    }
    let part = |line: &[u8]| Fields::of(line).is_some_and(|fields| fields.0[9] == b"206");
    let mut parts = lines_of(source.head()).any(part);
    if let Some(path) = source.path().filter(|_| !parts) {
        let mut lines = Lines::new(Source::open(path)?);
        for _ in 0..SURVEY {
            let Some(line) = lines.next()? else { break };
            parts |= part(line);
        }
    }
    let parser = S3Log { parts, ..S3Log::default() };
    Ok(Box::new(LineReader::new(Lines::new(source), parser)))
}

/// The first fields of a line, up to the turn-around time.
struct Fields<'a>([&'a [u8]; 14]);

impl<'a> Fields<'a> {
    fn of(line: &'a [u8]) -> Option<Self> {
        let mut rest = line.trim_ascii();
        let mut fields: [&[u8]; 14] = [b""; 14];
        for field in &mut fields {
            let close = match rest.first()? {
                b'"' => Some(b'"'),
                b'[' => Some(b']'),
                _ => None,
            };
            let (from, length) = match close {
                Some(close) => (1, memchr::memchr(close, rest.get(1..)?)?),
                None => (0, memchr::memchr(b' ', rest).unwrap_or(rest.len())),
            };
            *field = &rest[from..from + length];
            rest = rest[(from + length + from).min(rest.len())..].trim_ascii_start();
        }
        Some(Self(fields))
    }

    /// Parses "06/Feb/2019:00:00:38 +0000".
    fn time(&self) -> Result<u64, String> {
        dated(self.0[2], "time")
    }
}

#[derive(Default)]
struct S3Log {
    objects: NamedFiles,
    /// Where the next part of each object begins.
    next: Vec<u64>,
    parts: bool,
    /// Whether a request for a part was read.
    read_part: bool,
}

impl LineParser for S3Log {
    fn carries(&self) -> Carries {
        Carries { addresses: !self.parts, ..CARRIES }
    }

    fn files(&self) -> &[FileEntry] {
        self.objects.entries()
    }

    fn note(&self) -> Option<String> {
        self.read_part.then(|| PARTS.to_owned())
    }

    fn any_order(&self) -> bool {
        true
    }

    fn parse(&mut self, line: &[u8]) -> Result<Option<Record>, String> {
        if line.trim_ascii().is_empty() {
            return Ok(None);
        }
        let Some(fields) = Fields::of(line) else {
            return Err(format!("{} has too few fields; allowed: lines of S3's server access log", shown(line)));
        };
        let time = Nanos(fields.time()?);
        let [_, bucket, _, _, _, _, operation, key, _, status, _, sent, size, total] = fields.0;
        if !is_operation(operation) {
            return Err(format!("{} in column operation is unknown; allowed: REST.GET.OBJECT, ...", shown(operation)));
        }
        let (read, write) = (operation.ends_with(b".GET.OBJECT"), operation.ends_with(b".PUT.OBJECT"));
        let or_0 = |field: &[u8], column| if field == b"-" { Ok(0) } else { whole(field, column) };
        let (sent, object_bytes) = (or_0(sent, "bytes sent")?, or_0(size, "object size")?);
        let bytes = if read { sent } else { object_bytes };
        if !(read || write) || !status.starts_with(b"2") || bytes == 0 {
            return Ok(Some(Record { time, ..Record::default() }));
        }
        let file = self.objects.number(&[bucket, b"/", &unescaped(key)[..]].concat())?;
        self.objects.has_size(file, object_bytes);
        self.next.resize(self.next.len().max(file as usize + 1), 0);
        let mut offset = 0;
        if read && status == b"206" {
            self.read_part = true;
            let next = &mut self.next[file as usize];
            if next.saturating_add(bytes) <= object_bytes {
                offset = *next;
            }
            *next = offset.saturating_add(bytes);
        }
        let duration = if total == b"-" { 0 } else { nanos(total, "total time", MILLISECOND_NS)? };
        Ok(Some(Record { time, duration: Nanos(duration), offset, size: bytes, file, write, ..Record::default() }))
    }
}
