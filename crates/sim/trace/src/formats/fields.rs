//! The meaning of a column, and how its fields are parsed.

use headstart_types::Nanos;

use super::names::NamedFiles;
use super::operation::{operation, Operation};
use crate::clock::{clock, Days};
use crate::number::{nanos, shown, whole, whole_u32};
use crate::Record;

/// Size of a sector in every format that counts in sectors.
pub(super) const SECTOR_BYTES: u64 = 512;

/// Nanoseconds in a second.
pub(super) const SECOND_NS: u64 = 1_000_000_000;

/// Whether a number that was read as sectors, here converted to bytes, cannot be a number of bytes: sizes and offsets
/// of requests to a block device are multiples of 512.
pub(super) fn no_count_of_bytes(scaled_bytes: u64) -> bool {
    !(scaled_bytes / SECTOR_BYTES).is_multiple_of(SECTOR_BYTES)
}

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// Issue time, in units of this many nanoseconds.
    Time(u64),
    Duration(u64),
    Think(u64),
    /// An operation as a word or letters; with a header also as a hexadecimal SCSI command code.
    Op {
        scsi: bool,
    },
    /// 0 or 1; the given digit is a read.
    OpDigit(u8),
    /// Hexadecimal flags, whose bit 0 marks a read.
    Flags,
    Process,
    ProcessName,
    File,
    FileName,
    /// Address, in units of this many bytes.
    Address(u64),
    Object,
    /// Size, in units of this many bytes.
    Size(u64),
    Ignored,
}

/// State carried over from earlier lines.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// The files of a column of names.
    pub files: NamedFiles,
    /// The name of the process that issued the last record.
    pub process: Vec<u8>,
    /// Counts the days of times without a date.
    pub days: Days,
}

impl Role {
    /// Whether a field looks like one of this kind.
    pub(super) fn resembles(self, field: &[u8]) -> bool {
        match self {
            Role::Op { scsi } => operation(field, "", scsi).is_ok(),
            Role::OpDigit(read) => is_write_digit(field, "", read).is_ok(),
            Role::Flags => hexadecimal(field, "").is_ok(),
            Role::ProcessName | Role::Ignored => !field.is_empty(),
            Role::Duration(_) if field.is_empty() => true,
            _ => field.iter().any(u8::is_ascii_digit) && field.iter().all(|byte| b"0123456789.-+eE".contains(byte)),
        }
    }

    /// Parses a field of the column `name` into `record`; false if it shows that the line is not a read or write.
    #[inline]
    pub(super) fn set(self, record: &mut Record, name: &str, field: &[u8], known: &mut Known) -> Result<bool, String> {
        match self {
            Role::Time(unit_ns) if memchr::memchr(b':', field).is_none() => {
                record.time = Nanos(nanos(field, name, unit_ns)?);
            }
            Role::Time(_) => record.time = Nanos(known.days.since_first(clock(field, name)?)),
            Role::Duration(unit_ns) => record.duration = Nanos(nanos(field, name, unit_ns)?),
            Role::Think(unit_ns) => record.think = Nanos(nanos(field, name, unit_ns)?),
            Role::Op { scsi } => match operation(field, name, scsi)? {
                Operation::Other => return Ok(false),
                other => record.write = other == Operation::Write,
            },
            Role::OpDigit(read) => record.write = is_write_digit(field, name, read)?,
            Role::Flags => record.write = hexadecimal(field, name)? & 1 == 0,
            Role::Process => record.pid = whole_u32(field, name)?,
            Role::File => record.file = whole_u32(field, name)?,
            Role::FileName => record.file = known.files.number(field.trim_ascii())?,
            Role::Address(unit) => record.offset = scaled(field, name, unit)?,
            Role::Object => record.offset = number(field, name)?,
            Role::Size(unit) => record.size = scaled(field, name, unit)?,
            Role::ProcessName => {
                known.process.clear();
                known.process.extend_from_slice(field.trim_ascii());
            }
            Role::Ignored => {}
        }
        Ok(true)
    }

    /// Whether two columns have the same meaning, which makes a header ambiguous.
    pub(super) fn same_kind(self, other: Role) -> bool {
        let is_place = |role| matches!(role, Role::Address(_) | Role::Object);
        self != Role::Ignored
            && (std::mem::discriminant(&self) == std::mem::discriminant(&other) || is_place(self) && is_place(other))
    }
}

#[inline]
pub(super) fn scaled(field: &[u8], column: &str, unit: u64) -> Result<u64, String> {
    let value = number(field, column)?;
    let too_large = || format!("{} in column {column} is too large; allowed: 0 to {}", shown(field), u64::MAX / unit);
    value.checked_mul(unit).ok_or_else(too_large)
}

/// A whole number, in hexadecimal after "0x".
#[inline]
pub(super) fn number(field: &[u8], column: &str) -> Result<u64, String> {
    match field.trim_ascii() {
        [b'0', b'x' | b'X', ..] => hexadecimal(field, column),
        _ => whole(field, column),
    }
}

#[inline]
fn is_write_digit(field: &[u8], column: &str, read: u8) -> Result<bool, String> {
    match field.trim_ascii() {
        &[digit @ (b'0' | b'1')] => Ok(digit != read),
        _ => {
            let (read, write) = if read == b'0' { (0, 1) } else { (1, 0) };
            let allowed = format!("allowed: {read} for read, {write} for write");
            Err(format!("{} in column {column} is not an operation; {allowed}", shown(field)))
        }
    }
}

/// A hexadecimal number of at most 64 bits, with or without "0x".
#[inline]
pub(super) fn hexadecimal(field: &[u8], column: &str) -> Result<u64, String> {
    let text = field.trim_ascii();
    let digits = text.strip_prefix(b"0x").or(text.strip_prefix(b"0X")).unwrap_or(text);
    let number = std::str::from_utf8(digits).ok().filter(|digits| !digits.starts_with('+'));
    let wrong = || format!("{} in column {column} is not hexadecimal; allowed: up to 16 digits", shown(field));
    number.and_then(|digits| u64::from_str_radix(digits, 16).ok()).ok_or_else(wrong)
}
