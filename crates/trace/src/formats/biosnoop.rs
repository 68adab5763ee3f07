//! `biosnoop`: the table that bcc's biosnoop prints, "TIME(s) COMM PID DISK T SECTOR BYTES LAT(ms)", with -Q also QUE(ms).
//!
//! Source: the manual page of bcc's tool and its examples; libbpf-tools' biosnoop prints the same columns. A line is printed when a
//! request completes: it was issued LAT, and with -Q another QUE, before. Sectors are of 512 bytes. T is R or W, or the
//! flags of blktrace, of which those with D are discards. Requests without sectors or bytes (flushes) and discards are left out and
//! counted. The disk is the file; the command may hold spaces.
//!
//! biosnoop.bt of bpftrace prints neither sectors nor sizes: no trace can be made of it.

use headstart_types::Nanos;

use super::columns::spaced;
use super::fields::{scaled, SECTOR_BYTES};
use super::names::NamedFiles;
use crate::checks::EMPTY;
use crate::lines::{LineParser, LineReader, Lines};
use crate::number::{nanos, shown, whole, whole_u32};
use crate::{Carries, Evidence, FileEntry, Format, Place, Record, RecordReader, Source, TraceError};

const SECOND_NS: u64 = 1_000_000_000;
const MILLISECOND_NS: u64 = 1_000_000;
/// Added to all times: the first request was issued before the first completion, which is at 0.
const BEFORE_FIRST_NS: u64 = 3_600 * SECOND_NS;

const CARRIES: Carries = Carries {
    time: true,
    duration: true,
    think: false,
    processes: true,
    files: true,
    writes: true,
    addresses: true,
    objects: false,
};

pub(crate) const FORMAT: Format = Format {
    name: "biosnoop",
    summary: "the table of bcc's biosnoop, best with -Q; the disk is the file, 512-byte sectors",
    source: "biosnoop(8) of bcc",
    carries: CARRIES,
    detect: |head| {
        Evidence::mark(header(head).is_some_and(|columns| has(&columns, "SECTOR")), "the header is biosnoop's")
    },
    open,
};

/// The columns of the first line, if it is biosnoop's.
fn header(head: &[u8]) -> Option<Vec<String>> {
    let first = head.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii).find(|line| !line.is_empty())?;
    let names: Vec<String> = spaced(first).map(|name| String::from_utf8_lossy(name).into_owned()).collect();
    let is_biosnoop = names.first().is_some_and(|name| name.starts_with("TIME(")) && has(&names, "LAT(ms)");
    is_biosnoop.then_some(names)
}

fn has(columns: &[String], name: &str) -> bool {
    columns.iter().any(|column| column == name)
}

/// Whether the text is of bpftrace's biosnoop.bt, which prints no sectors.
pub(crate) fn lacks_sectors(head: &[u8]) -> bool {
    header(head).is_some_and(|columns| !has(&columns, "SECTOR"))
}

fn open(source: Source) -> Result<Box<dyn RecordReader>, TraceError> {
    if source.head().is_empty() {
        return Err(source.bad(Place::File, EMPTY.to_owned()));
    }
    let allowed = "TIME(s) COMM PID DISK T SECTOR BYTES LAT(ms), with QUE(ms) before LAT(ms) or not";
    let mut lines = Lines::new(source);
    let columns = loop {
        match lines.next()? {
            None => return Err(lines.bad(EMPTY.to_owned())),
            Some(line) if line.trim_ascii().is_empty() => {}
            Some(line) => {
                let wrong = format!("the header {} is not biosnoop's; allowed: {allowed}", shown(line));
                let needed = ["COMM", "PID", "DISK", "T", "SECTOR", "BYTES"];
                let columns = header(line).filter(|columns| needed.iter().all(|name| has(columns, name)));
                break columns.ok_or_else(|| lines.bad(wrong))?;
            }
        }
    };
    Ok(Box::new(LineReader::new(lines, Biosnoop { columns, disks: NamedFiles::default(), skipped: 0 })))
}

struct Biosnoop {
    columns: Vec<String>,
    disks: NamedFiles,
    skipped: u64,
}

impl LineParser for Biosnoop {
    fn carries(&self) -> Carries {
        CARRIES
    }

    fn unit_bytes(&self) -> u64 {
        SECTOR_BYTES
    }

    fn files(&self) -> &[FileEntry] {
        self.disks.entries()
    }

    fn skipped(&self) -> u64 {
        self.skipped
    }

    fn parse(&mut self, line: &[u8]) -> Result<Option<Record>, String> {
        let fields: Vec<&[u8]> = spaced(line).collect();
        if fields.is_empty() {
            return Ok(None);
        }
        // A command of several words makes more fields than columns.
        let Some(more) = fields.len().checked_sub(self.columns.len()) else {
            let count = self.columns.len();
            return Err(format!("{} has {} columns; allowed: {count}", shown(line), fields.len()));
        };
        let command = self.columns.iter().position(|name| name == "COMM").unwrap_or_default();
        let field = |name: &str| {
            let at = self.columns.iter().position(|column| column == name)?;
            Some(fields[if at > command { at + more } else { at }])
        };
        let required = |name: &str| field(name).unwrap_or_default();
        let ms = |name: &str| field(name).map_or(Ok(0), |field| nanos(field, name, MILLISECOND_NS));
        let kind = required("T");
        let write = kind.contains(&b'W');
        let moves = (write || kind.contains(&b'R')) && !kind.contains(&b'D') && required("SECTOR") != b"-1";
        if !moves || whole(required("BYTES"), "BYTES")? == 0 {
            self.skipped += 1;
            return Ok(None);
        }
        let duration = ms("LAT(ms)")?.saturating_add(ms("QUE(ms)")?);
        let ended = nanos(fields[0], "TIME(s)", SECOND_NS)?.saturating_add(BEFORE_FIRST_NS);
        let record = Record {
            time: Nanos(ended.saturating_sub(duration)),
            duration: Nanos(duration),
            offset: scaled(required("SECTOR"), "SECTOR", SECTOR_BYTES)?,
            size: whole(required("BYTES"), "BYTES")?,
            pid: whole_u32(required("PID"), "PID")?,
            file: self.disks.number(required("DISK"))?,
            write,
            ..Record::default()
        };
        self.disks.reaches(&record);
        Ok(Some(record))
    }
}
