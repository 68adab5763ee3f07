//! `etw`: disk reads and writes of Windows' event tracing (ETW) as CSV, from xperf, tracerpt or Windows Performance
//! Analyzer.
//!
//! Source: xperf's dumper and the traces of Microsoft's servers that it wrote (Kavalanekar et al., IISWC 2008, SNIA
//! IOTTA); tracerpt(1) and the class DiskIo_TypeGroup1; the Analyzer's table "Disk Usage".
//!
//! | tool | a request |
//! | --- | --- |
//! | xperf | `DiskRead` or `DiskWrite`, TimeStamp (us), Process Name ( PID), ThreadID, IrpPtr, ByteOffset, IOSize, ElapsedTime (us), DiskNum, ...; the header between BeginHeader and EndHeader gives the columns |
//! | tracerpt | `DiskIo, Read` or `Write`, ..., Clock-Time (100 ns), Kernel(ms), User(ms), DiskNumber, IrpFlags, TransferSize, Reserved, ByteOffset, ... |
//! | Analyzer | a header with the columns IO Type, Size, Min Offset, Init Time (s), IO Time (us), Disk |
//!
//! An event is written when the request completes; the request began ElapsedTime earlier. tracerpt only gives the end,
//! and the process of the completion, so neither durations nor processes are carried. Flushes move no data; all other
//! events are ignored. The disk is the file.

use headstart_types::Nanos;

use super::columns::Separator;
use super::fields::{number, SECOND_NS};
use super::lines_of;
use super::table::Table;
use crate::checks::EMPTY;
use crate::lines::{LineParser, LineReader, Lines};
use crate::number::{nanos, shown, whole_u32};
use crate::{Carries, ErrorPosition, Evidence, Format, Record, RecordReader, Source, TraceError};

const MICROSECOND_NS: u64 = 1_000;
/// Added to the end times: the first request began before it ended.
const BEFORE_FIRST_NS: u64 = 3_600 * SECOND_NS;

const CARRIES: Carries = Carries { duration: true, processes: true, files: true, ..Carries::BLOCKS };

pub(crate) const FORMAT: Format = Format {
    name: "etw",
    summary: "Windows disk events as CSV of xperf, tracerpt or Windows Performance Analyzer; the disk is the file",
    source: "Windows event tracing",
    carries: CARRIES,
    detect: |head| {
        let tool = Tool::of(head);
        Evidence::mark(tool.is_some(), "events of Windows' event tracing")
            .or_else(|| ANALYZER.detect(head, "the header is that of Windows Performance Analyzer's Disk Usage"))
    },
    open,
};

static ANALYZER: Table<7> = Table {
    names: ["io type", "size", "min offset", "init time", "io time", "disk", "disk service time"],
    needed: 4,
    separator: Separator::COMMA,
    orders: &[],
    carries: |has| Carries { duration: has[4], files: has[5], processes: false, ..CARRIES },
    unit_bytes: 1,
    record: |[kind, size, offset, init, took, disk, _], _| {
        let number = |field: &[u8], column| number(&without_commas(field), column);
        let write = *kind == b"Write";
        let moves = write || *kind == b"Read";
        Ok(Record {
            time: Nanos(nanos(&without_commas(init), "Init Time", SECOND_NS)?),
            duration: Nanos(if took.is_empty() { 0 } else { nanos(&without_commas(took), "IO Time", MICROSECOND_NS)? }),
            offset: if moves { number(offset, "Min Offset")? } else { 0 },
            size: if moves { number(size, "Size")? } else { 0 },
            file: if disk.is_empty() { 0 } else { whole_u32(disk, "Disk")? },
            write,
            ..Record::default()
        }
        .into())
    },
};

fn without_commas(field: &[u8]) -> Vec<u8> {
    field.iter().copied().filter(|&byte| byte != b',').collect()
}

/// The tool that wrote the events.
#[derive(Clone, Copy, PartialEq)]
enum Tool {
    Xperf,
    Tracerpt,
}

impl Tool {
    fn of(head: &[u8]) -> Option<Self> {
        let first = lines_of(head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head)).next()?;
        let mut fields = fields(first);
        match fields.next()? {
            b"BeginHeader" | b"DiskRead" | b"DiskWrite" | b"DiskReadInit" | b"DiskWriteInit" => Some(Self::Xperf),
            b"Event Name" if fields.next() == Some(b"Type") => Some(Self::Tracerpt),
            b"EventTrace" | b"DiskIo" => Some(Self::Tracerpt),
            _ => None,
        }
    }
}

fn fields(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|&byte| byte == b',').map(<[u8]>::trim_ascii)
}

fn open(source: Source) -> Result<Box<dyn RecordReader>, TraceError> {
    if source.head().is_empty() {
        return Err(source.bad(ErrorPosition::File, EMPTY.to_owned()));
    }
    if ANALYZER.detect(source.head(), "").is_some() {
        return ANALYZER.open(source);
    }
    let tool = Tool::of(source.head()).unwrap_or(Tool::Xperf);
    // For xperf without a header: the columns of all its versions before Windows 8.
    Ok(Box::new(LineReader::new(Lines::new(source), Etw { tool, places: [1, 2, 5, 6, 7, 8] })))
}

/// The columns of xperf that are read.
const NAMES: [&[u8]; 6] = [b"TimeStamp", b"Process Name ( PID)", b"ByteOffset", b"IOSize", b"ElapsedTime", b"DiskNum"];

struct Etw {
    tool: Tool,
    /// The indices of xperf's columns.
    places: [usize; 6],
}

impl LineParser for Etw {
    fn carries(&self) -> Carries {
        let known = self.tool == Tool::Xperf;
        Carries { duration: known, processes: known, ..CARRIES }
    }

    fn empty(&self) -> &'static str {
        "no event is a disk read or write; allowed: a trace with DISK_IO (xperf -on DISK_IO)"
    }

    fn parse(&mut self, line: &[u8]) -> Result<Option<Record>, String> {
        let columns: Vec<&[u8]> = fields(line).collect();
        match self.tool {
            Tool::Xperf => self.xperf(line, &columns),
            Tool::Tracerpt => tracerpt(line, &columns),
        }
    }
}

impl Etw {
    fn xperf(&mut self, line: &[u8], columns: &[&[u8]]) -> Result<Option<Record>, String> {
        let write = columns[0] == b"DiskWrite";
        if columns[0] == b"DiskFlush" && columns.get(1) != Some(&NAMES[0]) {
            return Ok(Some(Record {
                time: Nanos(BEFORE_FIRST_NS.saturating_add(microseconds(columns, 1)?)),
                ..Record::default()
            }));
        }
        if !write && columns[0] != b"DiskRead" {
            return Ok(None);
        }
        if columns.get(1) == Some(&NAMES[0]) {
            let places = NAMES.map(|name| columns.iter().position(|column| *column == name));
            for (place, (found, name)) in self.places.iter_mut().zip(places.iter().zip(NAMES)) {
                let lacks = || format!("the header {} lacks the column {}", shown(line), shown(name));
                *place = found.ok_or_else(|| format!("{}; allowed: xperf's columns of DiskRead", lacks()))?;
            }
            return Ok(None);
        }
        let column = |at: usize| columns.get(self.places[at]).copied().unwrap_or_default();
        let duration = nanos(column(4), "ElapsedTime", MICROSECOND_NS)?;
        let ended = microseconds(columns, self.places[0])?.saturating_add(BEFORE_FIRST_NS);
        Ok(Some(Record {
            time: Nanos(ended.saturating_sub(duration)),
            duration: Nanos(duration),
            offset: number(column(2), "ByteOffset")?,
            size: number(column(3), "IOSize")?,
            pid: pid_of(column(1)),
            file: whole_u32(column(5), "DiskNum")?,
            write,
            ..Record::default()
        }))
    }
}

fn microseconds(columns: &[&[u8]], at: usize) -> Result<u64, String> {
    nanos(columns.get(at).copied().unwrap_or_default(), "TimeStamp", MICROSECOND_NS)
}

/// The number in "System (   4)"; 0 if the process is unknown, "(  -1)".
fn pid_of(process: &[u8]) -> u32 {
    let inside = process.rsplit(|&byte| byte == b'(').next().unwrap_or_default();
    whole_u32(inside.strip_suffix(b")").unwrap_or(inside), "").unwrap_or(0)
}

/// Parses a line of tracerpt: 19 columns of the event, then those of the request.
fn tracerpt(line: &[u8], columns: &[&[u8]]) -> Result<Option<Record>, String> {
    const CLOCK: usize = 16;
    const DATA: usize = 19;
    const TICK_NS: u64 = 100;
    let (write, flush) = match columns {
        [b"DiskIo", b"Read", ..] => (false, false),
        [b"DiskIo", b"Write", ..] => (true, false),
        [b"DiskIo", b"FlushBuffers", ..] => (false, true),
        _ => return Ok(None),
    };
    let column = |at: usize| columns.get(at).copied().unwrap_or_default();
    let time = Nanos(nanos(column(CLOCK), "Clock-Time", TICK_NS)?);
    if flush {
        return Ok(Some(Record { time, ..Record::default() }));
    }
    if columns.len() < DATA + 5 {
        let count = columns.len();
        return Err(format!("{} has {count} columns; allowed: {} or more, as tracerpt -of CSV", shown(line), DATA + 5));
    }
    Ok(Some(Record {
        time,
        offset: number(column(DATA + 4), "ByteOffset")?,
        size: number(column(DATA + 2), "TransferSize")?,
        file: u32::try_from(number(column(DATA), "DiskNumber")?).unwrap_or(u32::MAX),
        write,
        ..Record::default()
    }))
}
