//! `vscsi`: binary records of commands to a virtual SCSI disk, little endian, 32 or 40 bytes each.
//!
//! Source: CloudPhysics' traces (Waldspurger, Park, Garthwaite, Ahmad: "Efficient MRC construction with SHARDS", FAST
//! 2015), with the layout of libCacheSim's reader:
//!
//! | version | fields |
//! | --- | --- |
//! | 1 | u32 serial, u32 bytes, u32 segments, u16 command, u16 version, u64 sector, u64 us |
//! | 2 | u16 command, u16 version, u32 serial, u32 bytes, u32 segments, u64 sector, u64 us, u64 response us |
//!
//! The version is the upper byte of its field, in every record; the first record decides. Sectors have 512 bytes.
//! Commands that neither read nor write, and those of 0 bytes, are skipped and counted. One file is one virtual disk.

use headstart_types::Nanos;

use super::bytes::{u16_at, u32_at, u64_at};
use super::fields::SECTOR_BYTES;
use super::operation::{scsi, Operation};
use crate::packed::{PackedReader, RecordParser};
use crate::{Carries, Evidence, Format, Record};

const TIME_UNIT_NS: u64 = 1_000;

/// The positions of a version's fields.
struct FieldOffsets {
    version: u16,
    record_bytes: usize,
    command: usize,
    bytes: usize,
    sector: usize,
    response: Option<usize>,
}

const V1: FieldOffsets =
    FieldOffsets { version: 1, record_bytes: 32, command: 12, bytes: 4, sector: 16, response: None };
const V2: FieldOffsets =
    FieldOffsets { version: 2, record_bytes: 40, command: 0, bytes: 8, sector: 16, response: Some(32) };

/// The fields that a version carries.
const fn carries(duration: bool) -> Carries {
    Carries { duration, ..Carries::BLOCKS }
}

pub(crate) const FORMAT: Format = Format {
    name: "vscsi",
    summary: "binary, 32 bytes per record, or 40 with the response time: command, bytes, 512-byte sector, us",
    source: "CloudPhysics; Waldspurger et al., SHARDS, FAST 2015",
    carries: carries(true),
    detect,
    open: |source| {
        if V2.fits(source.head()) && !V1.fits(source.head()) {
            return Ok(Box::new(PackedReader::new(source, Version2)));
        }
        Ok(Box::new(PackedReader::new(source, Version1)))
    },
};

fn detect(head: &[u8]) -> Option<Evidence> {
    Evidence::form(
        V1.fits(head) || V2.fits(head),
        "binary records of 32 or 40 bytes, each with the version of vscsi traces",
    )
}

impl FieldOffsets {
    /// The version follows the command.
    fn version_of(&self, record: &[u8]) -> u16 {
        u16_at(record, self.command + 2) >> 8
    }

    /// Whether all records of `head` are of this version.
    fn fits(&self, head: &[u8]) -> bool {
        let mut records = head.chunks_exact(self.record_bytes).peekable();
        records.peek().is_some() && records.all(|record| self.version_of(record) == self.version)
    }

    #[inline]
    fn parse(&self, record: &[u8]) -> Result<Option<Record>, String> {
        let found = self.version_of(record);
        if found != self.version {
            return Err(format!("the version is {found}; allowed: {}", self.version));
        }
        let size = u64::from(u32_at(record, self.bytes));
        let write = match scsi(u16_at(record, self.command)) {
            Some(Operation::Read) => false,
            Some(Operation::Write) => true,
            _ => return Ok(None),
        };
        let sector = u64_at(record, self.sector);
        let offset = sector.checked_mul(SECTOR_BYTES);
        let offset =
            offset.ok_or_else(|| format!("sector {sector} is too large; allowed: 0 to {}", u64::MAX / SECTOR_BYTES))?;
        let time = nanos(u64_at(record, self.sector + 8), "time")?;
        let duration = self.response.map_or(Ok(Nanos::ZERO), |at| nanos(u64_at(record, at), "response time"))?;
        Ok(Some(Record { time, duration, offset, size, write, ..Record::default() }))
    }
}

#[inline]
fn nanos(us: u64, field: &str) -> Result<Nanos, String> {
    let too_large = || format!("the {field} of {us} us is too large; allowed: up to 584 years");
    us.checked_mul(TIME_UNIT_NS).map(Nanos).ok_or_else(too_large)
}

struct Version1;

impl RecordParser for Version1 {
    const RECORD_BYTES: usize = V1.record_bytes;

    fn carries(&self) -> Carries {
        carries(false)
    }

    fn unit_bytes(&self) -> u64 {
        SECTOR_BYTES
    }

    #[inline]
    fn parse(&mut self, bytes: &[u8]) -> Result<Option<Record>, String> {
        V1.parse(bytes)
    }
}

struct Version2;

impl RecordParser for Version2 {
    const RECORD_BYTES: usize = V2.record_bytes;

    fn carries(&self) -> Carries {
        carries(true)
    }

    fn unit_bytes(&self) -> u64 {
        SECTOR_BYTES
    }

    #[inline]
    fn parse(&mut self, bytes: &[u8]) -> Result<Option<Record>, String> {
        V2.parse(bytes)
    }
}
