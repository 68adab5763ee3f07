//! Comma-separated columns with a header: which column is what, by name, and how a line becomes a record.
//!
//! Fields may be quoted; a quoted field may not hold a line end. Columns of unknown names are not read.

use headstart_types::Nanos;

use crate::number::{nanos, shown, whole, whole_u32};
use crate::{Carries, Record};

/// Most columns in a header.
const COLUMNS_MAX: usize = 64;
/// Size of an object where there is no size column.
const OBJECT_BYTES_NOMINAL: u64 = 4096;
const SECTOR_BYTES: u64 = 512;

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    /// Issue time, in units of so many nanoseconds.
    Time(u64),
    Duration(u64),
    Think(u64),
    Op,
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
    ("op", Role::Op),
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

    /// Two columns of one kind are ambiguous.
    fn same_kind(self, other: Role) -> bool {
        let is_place = |role| matches!(role, Role::Address(_) | Role::Object);
        self != Role::Ignored
            && (std::mem::discriminant(&self) == std::mem::discriminant(&other) || is_place(self) && is_place(other))
    }
}

/// A header, understood.
#[derive(Debug)]
pub(crate) struct Columns {
    names: Vec<String>,
    roles: Vec<Role>,
    /// Size of a record where there is no size column.
    size_default: u64,
}

impl Columns {
    /// Reads a header line, or says what is wrong with it.
    pub(crate) fn from_header(line: &[u8]) -> Result<Self, String> {
        let text = std::str::from_utf8(line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line));
        let wrong = |what: &str| format!("the header {} {what}; allowed: {HEADER_ALLOWED}", shown(line));
        let text = text.map_err(|_| wrong("is not UTF-8"))?;
        let names: Vec<String> =
            text.split(',').map(|name| name.trim().trim_matches('"').to_ascii_lowercase()).collect();
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
        Ok(Self { names, roles, size_default })
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
            writes: self.has(|role| *role == Role::Op),
            addresses: self.has(|role| matches!(role, Role::Address(_))),
            objects: self.has(|role| *role == Role::Object),
        }
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
        let mut record = Record { size: self.size_default, ..Record::default() };
        let mut count = 0;
        if memchr::memchr(b'"', line).is_some() {
            for field in &unquoted(line)? {
                self.set(&mut record, count, field)?;
                count += 1;
            }
        } else {
            for field in line.split(|&byte| byte == b',') {
                self.set(&mut record, count, field)?;
                count += 1;
            }
        }
        if count < self.roles.len() {
            return Err(format!("{} has {count} columns; allowed: {}", shown(line), self.roles.len()));
        }
        Ok(Some(record))
    }

    #[inline]
    fn set(&self, record: &mut Record, index: usize, field: &[u8]) -> Result<(), String> {
        let Some(role) = self.roles.get(index) else {
            return Err(format!("there are more columns than in the header; allowed: {}", self.roles.len()));
        };
        let name = self.names[index].as_str();
        match role {
            Role::Time(unit_ns) => record.time = Nanos(nanos(field, name, *unit_ns)?),
            Role::Duration(unit_ns) => record.duration = Nanos(nanos(field, name, *unit_ns)?),
            Role::Think(unit_ns) => record.think = Nanos(nanos(field, name, *unit_ns)?),
            Role::Op => record.write = is_write(field, name)?,
            Role::Process => record.pid = whole_u32(field, name)?,
            Role::File => record.file = whole_u32(field, name)?,
            Role::Address(unit) => record.offset = scaled(field, name, *unit)?,
            Role::Object => record.offset = whole(field, name)?,
            Role::Size(unit) => record.size = scaled(field, name, *unit)?,
            Role::Ignored => {}
        }
        Ok(())
    }
}

#[inline]
fn scaled(field: &[u8], column: &str, unit: u64) -> Result<u64, String> {
    let value = whole(field, column)?;
    let too_large = || format!("{} in column {column} is too large; allowed: 0 to {}", shown(field), u64::MAX / unit);
    value.checked_mul(unit).ok_or_else(too_large)
}

#[inline]
fn is_write(field: &[u8], column: &str) -> Result<bool, String> {
    let op = field.trim_ascii();
    match op {
        b"R" | b"r" => Ok(false),
        b"W" | b"w" => Ok(true),
        _ if op.eq_ignore_ascii_case(b"read") => Ok(false),
        _ if op.eq_ignore_ascii_case(b"write") => Ok(true),
        _ => Err(format!("{} in column {column} is no operation; allowed: R, W, read, write", shown(field))),
    }
}

/// The fields of a line with quotes in it.
fn unquoted(line: &[u8]) -> Result<csv::ByteRecord, String> {
    let mut fields = csv::ByteRecord::new();
    let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(line);
    reader.read_byte_record(&mut fields).map_err(|error| format!("{} is not CSV: {error}", shown(line)))?;
    Ok(fields)
}
