//! Columns: which is what, by the names of a header or as a format lays down, and how a line becomes a record.
//!
//! Comma-separated fields may be quoted; a quoted field may not hold a line end. Columns of unknown names are not
//! read.

use std::borrow::Cow;

use headstart_types::Nanos;

use super::scsi;
use crate::number::{nanos, shown, whole, whole_u32};
use crate::{Carries, Record};

/// Most columns in a header.
const COLUMNS_MAX: usize = 64;
/// Size of an object where there is no size column.
const OBJECT_BYTES_NOMINAL: u64 = 4096;
/// Size of a sector, in every format that counts in sectors.
pub(super) const SECTOR_BYTES: u64 = 512;

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// Issue time, in units of so many nanoseconds.
    Time(u64),
    Duration(u64),
    Think(u64),
    /// R, W, read or write; under a header also the code of a SCSI command in hexadecimal.
    Op {
        scsi: bool,
    },
    /// 0 or 1; this one is a read.
    OpDigit(u8),
    /// Flags in hexadecimal, of which bit 0 says that it is a read.
    Flags,
    Process,
    File,
    /// Address, in units of so many bytes.
    Address(u64),
    Object,
    /// Size, in units of so many bytes.
    Size(u64),
    Ignored,
}

/// Names of columns and what they hold. Times without a unit are seconds, durations and think times too.
const ROLES: &[(&str, Role)] = &[
    ("time", Role::Time(1_000_000_000)),
    ("timestamp", Role::Time(1_000_000_000)),
    ("dur", Role::Duration(1_000_000_000)),
    ("duration", Role::Duration(1_000_000_000)),
    ("service", Role::Duration(1_000_000_000)),
    ("think", Role::Think(1_000_000_000)),
    ("op", Role::Op { scsi: true }),
    ("pid", Role::Process),
    ("file", Role::File),
    ("dev", Role::File),
    ("device", Role::File),
    ("offset", Role::Address(1)),
    ("lba", Role::Address(SECTOR_BYTES)),
    ("lbn", Role::Address(SECTOR_BYTES)),
    ("sector", Role::Address(SECTOR_BYTES)),
    ("block", Role::Object),
    ("id", Role::Object),
    ("size", Role::Size(1)),
    ("nsect", Role::Size(SECTOR_BYTES)),
];

/// What the header must have, for error texts.
pub(crate) const HEADER_ALLOWED: &str = "one of offset, lba, lbn, sector, block, id; optional: time or timestamp, \
    dur, duration or service, think (each in s, or with _s, _ms, _us, _ns), op, pid, file, dev or device, size, nsect";

impl Role {
    fn of(name: &str) -> Self {
        let find = |name: &str| ROLES.iter().find(|(known, _)| *known == name).map(|(_, role)| *role);
        if let Some(role) = find(name) {
            return role;
        }
        let with_unit = |suffix: &str, unit_ns: u64| {
            Some(match find(name.strip_suffix(suffix)?)? {
                Role::Time(_) => Role::Time(unit_ns),
                Role::Duration(_) => Role::Duration(unit_ns),
                Role::Think(_) => Role::Think(unit_ns),
                _ => return None,
            })
        };
        let units = [("_ns", 1), ("_us", 1_000), ("_ms", 1_000_000), ("_s", 1_000_000_000)];
        units.iter().find_map(|(suffix, unit_ns)| with_unit(suffix, *unit_ns)).unwrap_or(Role::Ignored)
    }

    /// Whether a field looks like one of this kind.
    fn resembles(self, field: &[u8]) -> bool {
        match self {
            Role::Op { scsi } => is_write(field, "", scsi).is_ok(),
            Role::OpDigit(read) => is_write_digit(field, "", read).is_ok(),
            Role::Flags => hexadecimal(field, "").is_ok(),
            Role::Ignored => !field.is_empty(),
            Role::Duration(_) if field.is_empty() => true,
            _ => field.iter().any(u8::is_ascii_digit) && field.iter().all(|byte| b"0123456789.-+eE".contains(byte)),
        }
    }

    /// Reads a field of the column `name` into `record`.
    #[inline]
    fn set(self, record: &mut Record, name: &str, field: &[u8]) -> Result<(), String> {
        match self {
            Role::Time(unit_ns) => record.time = Nanos(nanos(field, name, unit_ns)?),
            Role::Duration(unit_ns) => record.duration = Nanos(nanos(field, name, unit_ns)?),
            Role::Think(unit_ns) => record.think = Nanos(nanos(field, name, unit_ns)?),
            Role::Op { scsi } => record.write = is_write(field, name, scsi)?,
            Role::OpDigit(read) => record.write = is_write_digit(field, name, read)?,
            Role::Flags => record.write = hexadecimal(field, name)? & 1 == 0,
            Role::Process => record.pid = whole_u32(field, name)?,
            Role::File => record.file = whole_u32(field, name)?,
            Role::Address(unit) => record.offset = scaled(field, name, unit)?,
            Role::Object => record.offset = whole(field, name)?,
            Role::Size(unit) => record.size = scaled(field, name, unit)?,
            Role::Ignored => {}
        }
        Ok(())
    }

    /// Two columns of one kind are ambiguous.
    fn same_kind(self, other: Role) -> bool {
        let is_place = |role| matches!(role, Role::Address(_) | Role::Object);
        self != Role::Ignored
            && (std::mem::discriminant(&self) == std::mem::discriminant(&other) || is_place(self) && is_place(other))
    }
}

/// The separator of fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Separator {
    Comma,
    /// One or more spaces or tabulators.
    Space,
}

/// The columns of a trace, understood.
#[derive(Debug)]
pub(crate) struct Columns {
    names: Vec<Cow<'static, str>>,
    roles: Vec<Role>,
    separator: Separator,
    /// Whether a line may have further columns, which are not read.
    more: bool,
    /// Size of a record where there is no size column.
    size_default: u64,
}

impl Columns {
    /// Reads a header line, or returns what is wrong with it.
    pub(crate) fn from_header(line: &[u8]) -> Result<Self, String> {
        let text = std::str::from_utf8(line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line));
        let wrong = |what: &str| format!("the header {} {what}; allowed: {HEADER_ALLOWED}", shown(line));
        let text = text.map_err(|_| wrong("is not UTF-8"))?;
        let names: Vec<Cow<str>> =
            text.split(',').map(|name| name.trim().trim_matches('"').to_ascii_lowercase().into()).collect();
        if names.len() > COLUMNS_MAX {
            return Err(wrong(&format!("has more than {COLUMNS_MAX} columns")));
        }
        let roles: Vec<Role> = names.iter().map(|name| Role::of(name)).collect();
        for (index, role) in roles.iter().enumerate() {
            if let Some(first) = roles[..index].iter().position(|earlier| earlier.same_kind(*role)) {
                return Err(wrong(&format!("has both {} and {}", names[first], names[index])));
            }
        }
        let place = roles.iter().find(|role| matches!(role, Role::Address(_) | Role::Object));
        let has_size = roles.iter().any(|role| matches!(role, Role::Size(_)));
        let size_default = match place {
            None => return Err(wrong("has no column that says where")),
            Some(Role::Address(1)) if !has_size => return Err(wrong("has an offset and no size")),
            Some(Role::Address(unit)) => *unit,
            Some(_) => OBJECT_BYTES_NOMINAL,
        };
        Ok(Self { names, roles, separator: Separator::Comma, more: false, size_default })
    }

    /// The columns that a format lays down. The caller guarantees a place and a size among them.
    pub(super) fn fixed(columns: &[(&'static str, Role)], separator: Separator, more: bool) -> Self {
        let (names, roles) = columns.iter().map(|(name, role)| (Cow::Borrowed(*name), *role)).unzip();
        Self { names, roles, separator, more, size_default: 0 }
    }

    fn has(&self, wanted: impl Fn(&Role) -> bool) -> bool {
        self.roles.iter().any(wanted)
    }

    /// What a trace with these columns carries.
    pub(crate) fn carries(&self) -> Carries {
        Carries {
            time: self.has(|role| matches!(role, Role::Time(_))),
            duration: self.has(|role| matches!(role, Role::Duration(_))),
            think: self.has(|role| matches!(role, Role::Think(_))),
            processes: self.has(|role| *role == Role::Process),
            files: self.has(|role| *role == Role::File),
            writes: self.has(|role| matches!(role, Role::Op { .. } | Role::OpDigit(_) | Role::Flags)),
            addresses: self.has(|role| matches!(role, Role::Address(_))),
            objects: self.has(|role| *role == Role::Object),
        }
    }

    /// Whether each object has its size beside it.
    pub(crate) fn gives_object_sizes(&self) -> bool {
        self.has(|role| *role == Role::Object) && self.has(|role| matches!(role, Role::Size(_)))
    }

    /// Bytes of an address's unit; of an object the size of `first`, the trace's first record.
    pub(crate) fn unit_bytes(&self, first: Option<&Record>) -> u64 {
        match self.roles.iter().find(|role| matches!(role, Role::Address(_))) {
            Some(Role::Address(unit)) => *unit,
            _ => first.map_or(self.size_default, |record| record.size).max(1),
        }
    }

    /// The record of a line; `None` for a blank line.
    pub(crate) fn record(&self, line: &[u8]) -> Result<Option<Record>, String> {
        if line.trim_ascii().is_empty() {
            return Ok(None);
        }
        match self.separator {
            Separator::Space => self.fill(line, spaced(line)),
            Separator::Comma if memchr::memchr(b'"', line).is_some() => self.fill(line, unquoted(line)?.iter()),
            Separator::Comma => self.fill(line, line.split(|&byte| byte == b',')),
        }
        .map(Some)
    }

    /// Whether a line looks like one of these, whatever its numbers are: as many fields, each of its kind. What is
    /// wrong with a number is then reported by reading, not by "the format is not recognised".
    pub(super) fn resembles(&self, line: &[u8]) -> bool {
        let fields: Vec<&[u8]> = match self.separator {
            Separator::Space => spaced(line).collect(),
            Separator::Comma => line.split(|&byte| byte == b',').map(<[u8]>::trim_ascii).collect(),
        };
        let count = self.roles.len();
        (fields.len() == count || self.more && fields.len() > count)
            && self.roles.iter().zip(fields).all(|(role, field)| role.resembles(field))
    }

    #[inline]
    fn fill<'a>(&self, line: &[u8], fields: impl Iterator<Item = &'a [u8]>) -> Result<Record, String> {
        let mut record = Record { size: self.size_default, ..Record::default() };
        let mut columns = self.roles.iter().zip(&self.names);
        for field in fields {
            match columns.next() {
                Some((role, name)) => role.set(&mut record, name, field)?,
                None if self.more => break,
                None => {
                    let count = self.roles.len();
                    return Err(format!("{} has more than {count} columns; allowed: {count}", shown(line)));
                }
            }
        }
        match columns.len() {
            0 => Ok(record),
            missing => {
                let count = self.roles.len();
                Err(format!("{} has {} columns; allowed: {count}", shown(line), count - missing))
            }
        }
    }
}

#[inline]
pub(super) fn scaled(field: &[u8], column: &str, unit: u64) -> Result<u64, String> {
    let value = whole(field, column)?;
    let too_large = || format!("{} in column {column} is too large; allowed: 0 to {}", shown(field), u64::MAX / unit);
    value.checked_mul(unit).ok_or_else(too_large)
}

#[inline]
fn is_write(field: &[u8], column: &str, scsi: bool) -> Result<bool, String> {
    let op = field.trim_ascii();
    match op {
        b"R" | b"r" => return Ok(false),
        b"W" | b"w" => return Ok(true),
        _ if op.eq_ignore_ascii_case(b"read") => return Ok(false),
        _ if op.eq_ignore_ascii_case(b"write") => return Ok(true),
        _ => {}
    }
    let code = std::str::from_utf8(op).ok().filter(|op| scsi && op.len() == 2);
    let code = code.and_then(|op| u16::from_str_radix(op, 16).ok());
    let more = if scsi { ", SCSI 28, 2a" } else { "" };
    let wrong = || format!("{} in column {column} is no operation; allowed: R, W, read, write{more}", shown(field));
    code.and_then(scsi::is_write).ok_or_else(wrong)
}

#[inline]
fn is_write_digit(field: &[u8], column: &str, read: u8) -> Result<bool, String> {
    match field.trim_ascii() {
        &[digit @ (b'0' | b'1')] => Ok(digit != read),
        _ => {
            let (read, write) = if read == b'0' { (0, 1) } else { (1, 0) };
            let allowed = format!("allowed: {read} for read, {write} for write");
            Err(format!("{} in column {column} is no operation; {allowed}", shown(field)))
        }
    }
}

/// A whole number of at most 64 bits in hexadecimal, "0x" before it or not.
#[inline]
pub(super) fn hexadecimal(field: &[u8], column: &str) -> Result<u64, String> {
    let text = field.trim_ascii();
    let digits = text.strip_prefix(b"0x").unwrap_or(text);
    let number = std::str::from_utf8(digits).ok().filter(|digits| !digits.starts_with('+'));
    let wrong = || format!("{} in column {column} is not hexadecimal; allowed: up to 16 digits", shown(field));
    number.and_then(|digits| u64::from_str_radix(digits, 16).ok()).ok_or_else(wrong)
}

/// The fields of a line between spaces.
#[inline]
pub(super) fn spaced(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(u8::is_ascii_whitespace).filter(|field| !field.is_empty())
}

/// The fields of a line with quotes in it.
fn unquoted(line: &[u8]) -> Result<csv::ByteRecord, String> {
    let mut fields = csv::ByteRecord::new();
    let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(line);
    reader.read_byte_record(&mut fields).map_err(|error| format!("{} is not CSV: {error}", shown(line)))?;
    Ok(fields)
}
