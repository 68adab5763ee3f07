//! `msr`: "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime" per line, as in the traces of MSR Cambridge.
//!
//! Source: Narayanan, Donnelly, Rowstron, "Write off-loading: practical power management for enterprise storage", FAST
//! 2008, and the description of its traces (SNIA IOTTA). Timestamp and response time are in Windows "file time", units
//! of 100 ns; Read or Write; offset and size in bytes. A disk of a host is a file; files are numbered in order of first
//! appearance. The traces have no header; one with these names is skipped.

use super::columns::Separator;
use super::fields::Role;
use super::fixed::{Fixed, Layout};
use super::names::Names;
use crate::lines::{LineParser, LineReader, Lines};
use crate::{Carries, Format, Record};

/// The unit of Windows file time.
const TICK_NS: u64 = 100;

static LAYOUT: Layout = Layout {
    columns: &[
        ("Timestamp", Role::Time(TICK_NS)),
        ("Hostname", Role::Ignored),
        ("DiskNumber", Role::File),
        ("Type", Role::Op { scsi: false }),
        ("Offset", Role::Address(1)),
        ("Size", Role::Size(1)),
        ("ResponseTime", Role::Duration(TICK_NS)),
    ],
    separator: Separator::COMMA,
    more: false,
};

pub(crate) const FORMAT: Format = Format {
    name: "msr",
    summary: "CSV Timestamp, Hostname, DiskNumber, Type, Offset, Size, ResponseTime; 100 ns, bytes; a disk is a file",
    source: "Narayanan et al., MSR Cambridge traces, FAST 2008",
    carries: Carries { duration: true, files: true, ..Carries::BLOCKS },
    detect: |head| LAYOUT.detect(head, "seven columns, the fourth Read or Write, as in the traces of MSR Cambridge"),
    open: |source| {
        let parser = Msr { fixed: LAYOUT.parser(), disks: Names::default() };
        Ok(Box::new(LineReader::new(Lines::new(source), parser)))
    },
};

struct Msr {
    fixed: Fixed,
    disks: Names,
}

/// "host,disk" of a line.
fn disk_of(line: &[u8]) -> &[u8] {
    let mut commas = memchr::memchr_iter(b',', line);
    match (commas.next(), commas.nth(1)) {
        (Some(first), Some(third)) => &line[first + 1..third],
        _ => &[],
    }
}

impl LineParser for Msr {
    fn carries(&self) -> Carries {
        self.fixed.carries()
    }

    fn unit_bytes(&self) -> u64 {
        self.fixed.unit_bytes()
    }

    fn skipped(&self) -> u64 {
        self.fixed.skipped()
    }

    #[inline]
    fn parse(&mut self, line: &[u8]) -> Result<Option<Record>, String> {
        let Some(record) = self.fixed.parse(line)? else { return Ok(None) };
        Ok(Some(Record { file: self.disks.number(disk_of(line))?, ..record }))
    }
}
