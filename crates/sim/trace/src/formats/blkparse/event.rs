//! One line of blkparse's default format: "major,minor cpu sequence seconds pid action type sector + sectors".

use headstart_types::Nanos;

use crate::clock::DAY_NS;
use crate::formats::columns::spaced;
use crate::formats::fields::{scaled, SECTOR_BYTES};
use crate::formats::operation::{operation, Operation};
use crate::number::{nanos, shown, whole, whole_u32};
use crate::Record;

/// The actions used here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::formats) enum Action {
    Queued,
    Issued,
    Completed,
}

/// A queue, issue or completion event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::formats) struct Event {
    pub action: Action,
    pub time: Nanos,
    /// major * 2^20 + minor.
    pub device: u32,
    pub pid: u32,
    pub write: bool,
    /// Offset and size in bytes; the size is zero if no data is moved.
    pub offset: u64,
    pub size: u64,
    pub process: ProcessName,
}

/// The name of a process as the kernel keeps it: up to 15 bytes, then zeros.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::formats) struct ProcessName([u8; 15]);

impl ProcessName {
    /// The name in brackets behind "sector + sectors"; empty if there is none.
    pub fn behind_sectors(line: &[u8]) -> Self {
        let find =
            |text: &[u8], from: usize| memchr::memmem::find(&line[from..], text).map(|at| from + at + text.len());
        let start = find(b" + ", 0).and_then(|sectors| find(b" [", sectors));
        let name = start.and_then(|start| line[start..].trim_ascii_end().strip_suffix(b"]")).unwrap_or_default();
        let mut kept = [0; 15];
        for (to, from) in kept.iter_mut().zip(name) {
            *to = *from;
        }
        Self(kept)
    }

    pub fn as_bytes(&self) -> &[u8] {
        let end = self.0.iter().position(|&byte| byte == 0).unwrap_or(self.0.len());
        &self.0[..end]
    }
}

impl Event {
    /// The request that begins with this event, with or without its process.
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

/// Whether a line looks like blkparse's output of any action: "major,minor cpu sequence seconds.ns pid action".
pub(super) fn resembles(line: &[u8]) -> bool {
    let digits = |field: &[u8]| !field.is_empty() && field.iter().all(u8::is_ascii_digit);
    let mut fields = spaced(line);
    fields.next().is_some_and(|field| device(field).is_ok())
        && fields.by_ref().take(2).all(digits)
        && fields.next().is_some_and(|field| field.split(|&byte| byte == b'.').all(digits))
        && fields.next().is_some_and(digits)
        && fields.next().is_some_and(|action| action.len() <= 2 && action.iter().all(u8::is_ascii_alphabetic))
}

/// Parses the event of a line; `None` for lines of other actions.
pub(super) fn parse(line: &[u8]) -> Result<Option<Event>, String> {
    let mut fields = spaced(line);
    // Lines of the summary begin with words.
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
    // Without "+" it is not a request for blocks: a flush, or a passed-through command.
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
        process: ProcessName::behind_sectors(line),
    }))
}

/// Added to all times, because some precede blkparse's time zero.
const BEFORE_START_NS: u64 = DAY_NS;

/// Parses a time, relative to a day before blkparse's time zero. blkparse prints a time before its time zero as an
/// unsigned 64-bit difference, with the seconds possibly cut to 32 bits. A value less than a day below either limit is
/// therefore negative. No trace is 40 years long.
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

/// The form of a line, for error texts.
const LINE: &str = "\"major,minor cpu sequence seconds pid action type sector + sectors\"";

/// Parses "major,minor", numbered as in Linux.
pub(in crate::formats) fn device(field: &[u8]) -> Result<u32, String> {
    let comma = memchr::memchr(b',', field).unwrap_or(field.len());
    let number = device_number(&field[..comma], field.get(comma + 1..).unwrap_or_default());
    number.map_err(|_| format!("{} in column device is not a device; allowed: major,minor", shown(field)))
}

/// The number of a device: 12 bits of major, 20 of minor.
pub(in crate::formats) fn device_number(major: &[u8], minor: &[u8]) -> Result<u32, String> {
    match (whole(major, "major")?, whole(minor, "minor")?) {
        (major @ ..0x1000, minor @ ..0x10_0000) => Ok((major << 20 | minor) as u32),
        _ => Err(format!("the device {},{} is too large; allowed: up to 4095,1048575", shown(major), shown(minor))),
    }
}
