//! `procmon`: the CSV that Process Monitor of Windows saves, "Time of Day","Process Name","PID","Operation","Path", ...
//! .
//!
//! Source: Sysinternals' Process Monitor; the user chooses its columns and their order. Operation, Path and Detail, and
//! Time of Day or Relative Time are required; Duration (seconds) and PID are optional. `ReadFile` and `WriteFile` with
//! a Result of SUCCESS are requests, with offset and length in the Detail; all other operations move no data. Reads and
//! writes marked "Paging I/O" are caused by the cache on behalf of other lines and are skipped, so that no read counts
//! twice; this also skips the reads of mapped files.

use headstart_types::Nanos;

use super::columns::Separator;
use super::fields::{Known, SECOND_NS};
use super::table::{Repeated, Table};
use crate::clock::clock;
use crate::number::{nanos, shown, whole, whole_u32};
use crate::{Carries, Format, Record};

static TABLE: Table<8> = Table {
    names: ["operation", "path", "detail", "time of day", "relative time", "pid", "duration", "result"],
    needed: 3,
    separator: Separator::COMMA,
    orders: &[],
    carries: |has| Carries { time: has[3] || has[4], processes: has[5], duration: has[6], ..CARRIES },
    unit_bytes: 1,
    record,
};

const CARRIES: Carries = Carries { duration: true, processes: true, files: true, ..Carries::BLOCKS };

pub(crate) const FORMAT: Format = Format {
    name: "procmon",
    summary: "CSV of Windows' Process Monitor: ReadFile and WriteFile, by process and path",
    source: "Sysinternals Process Monitor",
    carries: CARRIES,
    detect: |head| TABLE.detect(head, "the header has Operation, Path and Detail, as Process Monitor's"),
    open: |source| TABLE.open(source),
};

fn record(fields: &[&[u8]; 8], known: &mut Known) -> Result<Repeated, String> {
    let [operation, path, detail, time_of_day, relative, pid, duration, result] = *fields;
    let time = time(time_of_day, relative, known)?;
    let nothing = Record { time, ..Record::default() };
    let write = operation == b"WriteFile";
    let paging = memchr::memmem::find(detail, b"Paging I/O").is_some();
    if !(write || operation == b"ReadFile") || paging || !(result.is_empty() || result == b"SUCCESS") {
        return Ok(nothing.into());
    }
    let (offset, length) = (value(detail, b"Offset: "), value(detail, b"Length: "));
    let (Some(offset), Some(length)) = (offset, length) else {
        // Pipes and sockets have no offset.
        return Ok(nothing.into());
    };
    let file = known.files.number(path)?;
    Ok(Record {
        time,
        duration: Nanos(if duration.is_empty() { 0 } else { nanos(&with_point(duration), "Duration", SECOND_NS)? }),
        // "-1" appends.
        offset: if offset == b"-1" { known.files.size_of(file) } else { whole(&offset, "Offset")? },
        size: whole(&length, "Length")?,
        pid: if pid.is_empty() { 0 } else { whole_u32(pid, "PID")? },
        file,
        write,
        ..Record::default()
    }
    .into())
}

/// The number after `name` in a detail, without thousands separators: "Offset: 1,024, Length: 4,096, ...".
fn value(detail: &[u8], name: &[u8]) -> Option<Vec<u8>> {
    let from = memchr::memmem::find(detail, name)? + name.len();
    let rest = &detail[from..];
    let mut digits = Vec::new();
    for (at, &byte) in rest.iter().enumerate() {
        let next = rest.get(at + 1).copied().unwrap_or(b' ');
        match byte {
            b'0'..=b'9' => digits.push(byte),
            b'-' if at == 0 => digits.push(byte),
            // Comma, point, apostrophe or non-breaking space, depending on the locale.
            b',' | b'.' | b'\'' | 0xa0 | 0xaf if next.is_ascii_digit() => {}
            0xc2 | 0xe2 | 0x80 => {}
            _ => break,
        }
    }
    Some(digits)
}

/// A decimal number with a point, regardless of the locale.
fn with_point(field: &[u8]) -> Vec<u8> {
    field.iter().map(|&byte| if byte == b',' { b'.' } else { byte }).collect()
}

/// Parses "3:04:05.1234567 PM" or "15:04:05,1234567": since midnight, or since the start.
fn time(time_of_day: &[u8], relative: &[u8], known: &mut Known) -> Result<Nanos, String> {
    let (field, column) =
        if time_of_day.is_empty() { (relative, "Relative Time") } else { (time_of_day, "Time of Day") };
    if field.is_empty() {
        return Ok(Nanos::ZERO);
    }
    let end = field.iter().position(|byte| !(byte.is_ascii_digit() || b":.,".contains(byte))).unwrap_or(field.len());
    let (digits, half) = field.split_at(end);
    let half = String::from_utf8_lossy(half).replace(['\u{a0}', '\u{202f}'], " ").trim().to_ascii_uppercase();
    let padded = if digits.get(1) == Some(&b':') { [b"0", digits].concat() } else { digits.to_vec() };
    let ns = clock(&padded, column).map_err(|problem| match half.is_empty() {
        true => problem,
        false => {
            format!(
                "{} in column {column} is not a time; allowed: HH:MM:SS.fraction, optionally with AM or PM",
                shown(field)
            )
        }
    })?;
    const HALF_DAY_NS: u64 = 12 * 3_600 * SECOND_NS;
    Ok(Nanos(known.days.since_first(match &half[..] {
        "AM" if ns >= HALF_DAY_NS => ns - HALF_DAY_NS,
        "PM" if ns < HALF_DAY_NS => ns + HALF_DAY_NS,
        _ => ns,
    })))
}
