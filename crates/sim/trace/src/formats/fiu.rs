//! `fiu`: "ns pid process lba blocks R|W major minor md5" per line, block traces of Florida International University.
//!
//! Source: Koller and Rangaswami, "I/O deduplication: utilizing content similarity to improve I/O performance", FAST
//! 2010, and the description of its traces (SNIA IOTTA). Addresses and sizes in blocks of 512 bytes. The hashes of the
//! data, one or several, are not used; other traces of FIU have none. The device is the file, as major * 2^20 + minor.

use headstart_types::Nanos;

use super::blkparse::device_number;
use super::columns::spaced;
use super::fields::{scaled, SECTOR_BYTES};
use super::first_lines;
use crate::lines::{LineParser, LineReader, Lines};
use crate::number::{nanos, shown, whole, whole_u32};
use crate::{Carries, Evidence, Format, Record};

const CARRIES: Carries = Carries { processes: true, files: true, ..Carries::BLOCKS };

pub(crate) const FORMAT: Format = Format {
    name: "fiu",
    summary: "\"ns pid process lba blocks R|W major minor md5\" per line, 512-byte blocks; the device is the file",
    source: "Koller and Rangaswami, FIU traces, FAST 2010",
    carries: CARRIES,
    detect: |head| {
        let resembles = |line: &[u8]| {
            columns(line).is_some_and(|columns| {
                columns[..6].iter().enumerate().all(|(at, field)| at == 2 || at == 5 || whole(field, "").is_ok())
            })
        };
        Evidence::mark(first_lines(head, resembles), "the lines are \"ns pid process lba blocks R|W major minor\"")
    },
    open: |source| Ok(Box::new(LineReader::new(Lines::new(source), Fiu))),
};

/// Time, process, name, address, size, operation, major and minor of a line; the name may have spaces.
fn columns(line: &[u8]) -> Option<[&[u8]; 8]> {
    let fields: Vec<&[u8]> = spaced(line).collect();
    let op = (5..fields.len().checked_sub(2)?).find(|&at| {
        matches!(fields[at], b"R" | b"W") && fields[at + 1..at + 3].iter().all(|field| whole(field, "").is_ok())
    })?;
    Some([fields[0], fields[1], fields[2], fields[op - 2], fields[op - 1], fields[op], fields[op + 1], fields[op + 2]])
}

struct Fiu;

impl LineParser for Fiu {
    fn carries(&self) -> Carries {
        CARRIES
    }

    fn unit_bytes(&self) -> u64 {
        SECTOR_BYTES
    }

    fn parse(&mut self, line: &[u8]) -> Result<Option<Record>, String> {
        if line.trim_ascii().is_empty() {
            return Ok(None);
        }
        let Some([time, pid, _, lba, blocks, op, major, minor]) = columns(line) else {
            return Err(format!(
                "{} is not a request; allowed: ns pid process lba blocks R|W major minor md5",
                shown(line)
            ));
        };
        Ok(Some(Record {
            time: Nanos(nanos(time, "time", 1)?),
            offset: scaled(lba, "lba", SECTOR_BYTES)?,
            size: scaled(blocks, "blocks", SECTOR_BYTES)?,
            pid: whole_u32(pid, "pid")?,
            file: device_number(major, minor)?,
            write: op == b"W",
            ..Record::default()
        }))
    }
}
