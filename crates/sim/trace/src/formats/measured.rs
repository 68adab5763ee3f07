//! `measured`: requests timed on a real drive, "R|W Hit|Miss|Doub|Trip sector sectors service next" per line.
//!
//! Source: DiskSim's format "validate", in which the traces of its validation against real drives are distributed
//! (Bucy, Schindler, Schlosser, Ganger: The DiskSim Simulation Environment, version 4.0, CMU-PDL-08-101, 2008). Sectors
//! have 512 bytes, times are in microseconds. One request is outstanding at a time: `next` is the time from the end of
//! a request to the issue of the next one, as DiskSim replays it. (It cannot start at the issue: in three of the four
//! traces that we have, some requests take longer than `next`.) We read it as the think time; the issue time of a
//! request is the sum of the service and think times before it. The second column tells whether the drive's cache was
//! assumed to hold the data, or that a write left the bus two or three times (`Doub`, `Trip`). Like DiskSim, we check
//! that it is there and do not use it.

use headstart_types::Nanos;

use super::columns::spaced;
use super::fields::{scaled, SECTOR_BYTES};
use super::first_lines;
use crate::lines::{LineParser, LineReader, Lines};
use crate::number::{nanos, shown};
use crate::{Carries, Evidence, Format, Record};

/// Times are in microseconds.
const TIME_UNIT_NS: u64 = 1_000;

const CARRIES: Carries = Carries { duration: true, think: true, ..Carries::BLOCKS };

pub(crate) const FORMAT: Format = Format {
    name: "measured",
    summary: "\"R|W Hit|Miss|Doub|Trip sector sectors service next\" per line: requests timed on a drive, 512-byte \
        sectors, us",
    source: "DiskSim, the format of its validation traces",
    carries: CARRIES,
    detect,
    open: |source| Ok(Box::new(LineReader::new(Lines::new(source), Measured { time_ns: 0 }))),
};

/// The form of a line, for error texts.
const LINE: &str = "6, \"R|W Hit|Miss|Doub|Trip sector sectors service_us next_us\"";

/// Whether a word is valid in the column cache.
fn is_cache(word: &[u8]) -> bool {
    matches!(word, b"Hit" | b"Miss" | b"Doub" | b"Trip")
}

/// Detection uses only the two words, so that an invalid number is reported as such.
fn detect(head: &[u8]) -> Option<Evidence> {
    let begins_right = |line: &[u8]| {
        let mut fields = spaced(line);
        matches!(fields.next(), Some(b"R" | b"W")) && fields.next().is_some_and(is_cache)
    };
    Evidence::mark(first_lines(head, begins_right), "the lines begin with R or W and Hit, Miss, Doub or Trip")
}

struct Measured {
    /// Issue time of the next request.
    time_ns: u64,
}

impl LineParser for Measured {
    fn carries(&self) -> Carries {
        CARRIES
    }

    fn unit_bytes(&self) -> u64 {
        SECTOR_BYTES
    }

    fn parse(&mut self, line: &[u8]) -> Result<Option<Record>, String> {
        let mut columns: [&[u8]; 6] = [b""; 6];
        let mut count = 0;
        for field in spaced(line) {
            if let Some(column) = columns.get_mut(count) {
                *column = field;
            }
            count += 1;
        }
        if count == 0 {
            return Ok(None);
        }
        if count != columns.len() {
            return Err(format!("{} has {count} columns; allowed: {LINE}", shown(line)));
        }
        let [op, cache, sector, sectors, service, next] = columns;
        let write = match op {
            b"R" => false,
            b"W" => true,
            _ => return Err(format!("{} in column op is not an operation; allowed: R, W", shown(op))),
        };
        if !is_cache(cache) {
            return Err(format!("{} in column cache is unknown; allowed: Hit, Miss, Doub, Trip", shown(cache)));
        }
        let bytes = |field, column| scaled(field, column, SECTOR_BYTES);
        let (offset, size) = (bytes(sector, "sector")?, bytes(sectors, "sectors")?);
        let (duration, think) = (nanos(service, "service", TIME_UNIT_NS)?, nanos(next, "next", TIME_UNIT_NS)?);
        let record = Record {
            time: Nanos(self.time_ns),
            duration: Nanos(duration),
            think: Nanos(think),
            offset,
            size,
            write,
            ..Record::default()
        };
        let after = self.time_ns.checked_add(duration).and_then(|time| time.checked_add(think));
        self.time_ns = after.ok_or("the times sum to more than 584 years; allowed: less")?;
        Ok(Some(record))
    }
}
