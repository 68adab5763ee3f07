//! `biosnoop`: the tables of biosnoop (bcc and libbpf-tools) and of iosnoop (perf-tools): one completed request per
//! line.
//!
//! Source: the tools' manual pages, examples and source code. The header names the columns:
//!
//! | tool | columns |
//! | --- | --- |
//! | biosnoop | TIME(s) or TIMESTAMP, COMM, PID, DISK, T, SECTOR, BYTES, with -P also P, with -Q also QUE(ms), LAT(ms) |
//! | iosnoop | with -s STARTs, with -t ENDs, COMM, PID, TYPE, DEV, BLOCK, BYTES, LATms |
//!
//! Times are completion times, except STARTs; the issue time is the completion time minus LAT and QUE. Without a time
//! column the trace carries no times. Sectors and blocks have 512 bytes; the disk is the file. The command may contain
//! spaces, and the disk is missing if the tool did not see the start of a request, so columns are counted from the
//! right. Requests without sectors or bytes, and those that move no data, are skipped and counted.
//!
//! biosnoop.bt of bpftrace prints neither sectors nor sizes, so its output cannot be used as a trace.

use headstart_types::Nanos;

use super::columns::spaced;
use super::fields::{scaled, SECTOR_BYTES};
use super::lines_of;
use super::names::NamedFiles;
use super::operation::{operation, Operation};
use crate::checks::EMPTY;
use crate::clock::{clock, Days};
use crate::lines::{LineParser, LineReader, Lines};
use crate::number::{nanos, shown, whole, whole_u32};
use crate::{Carries, ErrorPosition, Evidence, FileEntry, Format, Record, RecordReader, Source, TraceError};

const SECOND_NS: u64 = 1_000_000_000;
const MILLISECOND_NS: u64 = 1_000_000;
/// Added to all times: the first request was issued before the first completion, which is at 0.
const BEFORE_FIRST_NS: u64 = 3_600 * SECOND_NS;

const CARRIES: Carries = Carries { duration: true, processes: true, files: true, ..Carries::BLOCKS };

pub(crate) const FORMAT: Format = Format {
    name: "biosnoop",
    summary:
        "the tables of biosnoop (bcc, best with -Q) and iosnoop (perf-tools); the disk is the file, 512-byte sectors",
    source: "biosnoop(8) of bcc, iosnoop(8) of perf-tools",
    carries: CARRIES,
    detect: |head| {
        let found = header(head).is_some_and(|columns| understood(&columns));
        Evidence::mark(found, "the header is that of biosnoop or iosnoop")
    },
    open,
};

/// The tools' names of the columns; the canonical name is first.
const SECTOR: [&str; 2] = ["SECTOR", "BLOCK"];
const TYPE: [&str; 2] = ["T", "TYPE"];
const DISK: [&str; 2] = ["DISK", "DEV"];
const LATENCY: [&str; 2] = ["LAT(ms)", "LATms"];
/// Names of the columns of end and start times.
const END: [&str; 3] = ["TIME(s)", "ENDs", "TIMESTAMP"];
const START: [&str; 1] = ["STARTs"];

/// The columns of the first line, if it is a header of biosnoop or iosnoop.
fn header(head: &[u8]) -> Option<Vec<String>> {
    let first = lines_of(head).next()?;
    let names: Vec<String> = spaced(first).map(|name| String::from_utf8_lossy(name).into_owned()).collect();
    let all = [&["COMM"][..], &["PID"], &LATENCY];
    all.iter().all(|names_of| place_of(&names, names_of).is_some()).then_some(names)
}

fn place_of(columns: &[String], names: &[&str]) -> Option<usize> {
    columns.iter().position(|column| names.contains(&column.as_str()))
}

/// Whether the columns give each request's address and size.
fn understood(columns: &[String]) -> bool {
    let needed = [&SECTOR[..], &TYPE, &DISK, &["BYTES"]];
    needed.iter().all(|names| place_of(columns, names).is_some())
}

/// Whether the text is the output of bpftrace's biosnoop.bt, which prints no sectors.
pub(crate) fn lacks_sectors(head: &[u8]) -> bool {
    header(head).is_some_and(|columns| place_of(&columns, &SECTOR).is_none() && columns[0].starts_with("TIME("))
}

fn open(source: Source) -> Result<Box<dyn RecordReader>, TraceError> {
    if source.head().is_empty() {
        return Err(source.bad(ErrorPosition::File, EMPTY.to_owned()));
    }
    let allowed = "TIME(s) COMM PID DISK T SECTOR BYTES LAT(ms), optionally QUE(ms) before LAT(ms); or COMM PID TYPE \
    DEV BLOCK BYTES LATms, optionally STARTs or ENDs before COMM";
    let mut lines = Lines::new(source);
    let columns = loop {
        match lines.next()? {
            None => return Err(lines.bad(EMPTY.to_owned())),
            Some(line) if lines_of(line).next().is_none() => {}
            Some(line) => {
                let wrong = format!("the header {} is not of biosnoop or iosnoop; allowed: {allowed}", shown(line));
                let columns = header(line).filter(|columns| understood(columns));
                break columns.ok_or_else(|| lines.bad(wrong))?;
            }
        }
    };
    let parser =
        Biosnoop { columns, disks: NamedFiles::default(), days: Days::default(), command: Vec::new(), skipped: 0 };
    Ok(Box::new(LineReader::new(lines, parser)))
}

struct Biosnoop {
    columns: Vec<String>,
    disks: NamedFiles,
    days: Days,
    command: Vec<u8>,
    skipped: u64,
}

/// A number of milliseconds; a negative one is read as 0.
fn milliseconds(field: &[u8], name: &str) -> Result<u64, String> {
    if field.starts_with(b"-") {
        return Ok(0);
    }
    nanos(field, name, MILLISECOND_NS)
}

impl Biosnoop {
    /// The time in a field plus [`BEFORE_FIRST_NS`]; a request that ended before the first one has a negative time.
    fn time(&mut self, field: &[u8]) -> Result<u64, String> {
        if field.contains(&b':') {
            return Ok(self.days.since_first(clock(field, "time")?).saturating_add(BEFORE_FIRST_NS));
        }
        match field.strip_prefix(b"-") {
            Some(before) => Ok(BEFORE_FIRST_NS.saturating_sub(nanos(before, "time", SECOND_NS)?)),
            None => Ok(nanos(field, "time", SECOND_NS)?.saturating_add(BEFORE_FIRST_NS)),
        }
    }
}

impl LineParser for Biosnoop {
    fn carries(&self) -> Carries {
        let timed = place_of(&self.columns, &END).or(place_of(&self.columns, &START)).is_some();
        Carries { time: timed, ..CARRIES }
    }

    fn unit_bytes(&self) -> u64 {
        SECTOR_BYTES
    }

    fn files(&self) -> &[FileEntry] {
        self.disks.entries()
    }

    fn process(&self) -> Option<&[u8]> {
        (!self.command.is_empty()).then_some(&self.command)
    }

    fn skipped(&self) -> u64 {
        self.skipped
    }

    fn parse(&mut self, line: &[u8]) -> Result<Option<Record>, String> {
        let fields: Vec<&[u8]> = spaced(line).collect();
        if fields.is_empty() {
            return Ok(None);
        }
        let count = self.columns.len();
        let from_left = |names: &[&str]| place_of(&self.columns, names).map(|at| fields[at.min(fields.len() - 1)]);
        let from_right = |names: &[&str]| {
            let behind = count - place_of(&self.columns, names)?;
            fields.len().checked_sub(behind).map(|at| fields[at])
        };
        let required = |names: &[&str]| from_right(names).unwrap_or_default();
        let sector = required(&SECTOR);
        // Command and disk may be empty; a command of several words makes more fields than there are columns.
        let missing = matches!(sector, b"-1" | b"18446744073709551615");
        if fields.len() + if missing { 2 } else { 1 } < count {
            return Err(format!("{} has {} columns; allowed: {count}", shown(line), fields.len()));
        }
        let bytes = whole(required(&["BYTES"]), "BYTES");
        if missing || bytes == Ok(0) {
            self.skipped += 1;
            return Ok(None);
        }
        let operation = operation(required(&TYPE), TYPE[0], false)?;
        if operation == Operation::Other {
            self.skipped += 1;
            return Ok(None);
        }
        let (disk, pid) = match (required(&DISK), required(&["PID"])) {
            (disk, pid) if fields.len() >= count => (disk, pid),
            (pid, _) => (&b""[..], pid),
        };
        let queued = from_right(&["QUE(ms)"]).map_or(Ok(0), |field| milliseconds(field, "QUE(ms)"))?;
        let duration = milliseconds(required(&LATENCY), LATENCY[0])?.saturating_add(queued);
        let (start, end) = (from_left(&START), from_left(&END));
        let (size, offset) = (bytes?, scaled(sector, SECTOR[0], SECTOR_BYTES)?);
        let pid = whole_u32(pid, "PID")?;
        let issued = match (start, end) {
            (Some(start), _) => self.time(start)?,
            (None, Some(end)) => self.time(end)?.saturating_sub(duration),
            (None, None) => 0,
        };
        let record = Record {
            time: Nanos(issued),
            duration: Nanos(duration),
            offset,
            size,
            pid,
            file: self.disks.number(disk)?,
            write: operation == Operation::Write,
            ..Record::default()
        };
        self.disks.reaches(&record);
        self.command.clear();
        // A command of several words adds as many fields as there are more fields than columns.
        if let Some((at, more)) = place_of(&self.columns, &["COMM"]).zip(fields.len().checked_sub(count)) {
            self.command = fields[at..=at + more].join(&b' ');
        }
        Ok(Some(record))
    }
}
