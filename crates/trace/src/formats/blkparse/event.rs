//! One line of blkparse's default format: "major,minor cpu sequence seconds pid action type sector + sectors".

use headstart_types::Nanos;

use crate::clock::DAY_NS;
use crate::formats::columns::spaced;
use crate::formats::fields::{scaled, SECTOR_BYTES};
use crate::formats::operation::{operation, Operation};
use crate::number::{nanos, shown, whole, whole_u32};
use crate::Record;

/// The actions that matter here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::formats) enum Action {
    Queued,
    Issued,
    Completed,
}

/// A line that matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::formats) struct Event {
    pub action: Action,
    pub time: Nanos,
    /// major * 2^20 + minor.
    pub device: u32,
    pub pid: u32,
    pub write: bool,
    /// In bytes, both; the size is zero where no data is moved.
    pub offset: u64,
    pub size: u64,
}

impl Event {
    /// The request that begins here, with its process or without.
    pub fn record(&self, process: bool) -> Record {
        Record {
            time: self.time,
            offset: self.offset,
            size: self.size,
            pid: if process { self.pid } else { 0 },
            file: self.device,
            write: self.write,
            ..Record::default()
        }
    }
}

/// Whether a line looks like one of blkparse: "major,minor cpu sequence seconds.ns pid action", whatever it is of.
pub(super) fn resembles(line: &[u8]) -> bool {
    let digits = |field: &[u8]| !field.is_empty() && field.iter().all(u8::is_ascii_digit);
    let mut fields = spaced(line);
    fields.next().is_some_and(|field| device(field).is_ok())
        && fields.by_ref().take(2).all(digits)
        && fields.next().is_some_and(|field| field.split(|&byte| byte == b'.').all(digits))
        && fields.next().is_some_and(digits)
        && fields.next().is_some_and(|action| action.len() <= 2 && action.iter().all(u8::is_ascii_alphabetic))
}

/// The event of a line; `None` where it is of something else.
pub(super) fn parse(line: &[u8]) -> Result<Option<Event>, String> {
    let mut fields = spaced(line);
    // The summary begins its lines with words.
    let Some(first) = fields.next().filter(|first| first[0].is_ascii_digit()) else { return Ok(None) };
    let mut columns = [&b""[..]; 6];
    for column in &mut columns {
        *column = fields.next().unwrap_or_default();
    }
    let [_cpu, _sequence, seconds, pid, action, kind] = columns;
    let action = match action {
        b"Q" => Action::Queued,
        b"D" => Action::Issued,
        b"C" => Action::Completed,
        b"" => return Err(format!("{} has no action; allowed: {LINE}", shown(line))),
        _ => return Ok(None),
    };
    let operation = operation(kind, "type", false)?;
    // What has no "+" is no request for blocks: a flush, or a command that was passed through.
    let (offset, size) = match (fields.next(), fields.next(), fields.next()) {
        (Some(sector), Some(b"+"), Some(sectors)) if operation != Operation::Other => {
            (scaled(sector, "sector", SECTOR_BYTES)?, scaled(sectors, "sectors", SECTOR_BYTES)?)
        }
        _ => (0, 0),
    };
    Ok(Some(Event {
        action,
        time: time(seconds)?,
        device: device(first)?,
        pid: whole_u32(pid, "pid")?,
        write: operation == Operation::Write,
        offset,
        size,
    }))
}

/// Added to all times: some lie before the start that blkparse counts from.
const BEFORE_START_NS: u64 = DAY_NS;

/// A time since a day before blkparse's start. blkparse prints a time before its start as the unsigned number that the
/// difference is in 64 bits, its seconds cut to 32 bits or not: what is less than a day below such an end is before the start.
/// No trace is 40 years long.
fn time(seconds: &[u8]) -> Result<Nanos, String> {
    /// 2^64 ns with the seconds modulo 2^32.
    const END_CUT_NS: u64 = 1_266_874_889_709_551_616;
    let ns = nanos(seconds, "time", 1_000_000_000)?;
    let before = match END_CUT_NS.checked_sub(ns) {
        Some(before) => before,
        None => u64::MAX - ns + 1,
    };
    if before <= BEFORE_START_NS {
        return Ok(Nanos(BEFORE_START_NS - before));
    }
    let too_large = || format!("{} in column time is too large; allowed: up to 584 years", shown(seconds));
    ns.checked_add(BEFORE_START_NS).map(Nanos).ok_or_else(too_large)
}

/// What a line must be, for error texts.
const LINE: &str = "\"major,minor cpu sequence seconds pid action type sector + sectors\"";

/// "major,minor" as Linux numbers devices within.
pub(in crate::formats) fn device(field: &[u8]) -> Result<u32, String> {
    let comma = memchr::memchr(b',', field).unwrap_or(field.len());
    let number = device_number(&field[..comma], field.get(comma + 1..).unwrap_or_default());
    number.map_err(|_| format!("{} in column device is no device; allowed: major,minor", shown(field)))
}

/// The number of a device: 12 bits of major, 20 of minor.
pub(in crate::formats) fn device_number(major: &[u8], minor: &[u8]) -> Result<u32, String> {
    match (whole(major, "major")?, whole(minor, "minor")?) {
        (major @ ..0x1000, minor @ ..0x10_0000) => Ok((major << 20 | minor) as u32),
        _ => Err(format!("the device {},{} is too large; allowed: up to 4095,1048575", shown(major), shown(minor))),
    }
}
