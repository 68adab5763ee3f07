//! Columns: which is what, by the names of a header or as a format lays down, and how a line becomes a record.
//!
//! Comma-separated fields may be quoted; a quoted field may not hold a line end. Columns of unknown names are not
//! read.

use std::borrow::Cow;

use headstart_types::Nanos;

use super::header::{roles, Known, HEADER_ALLOWED};
use super::names::NamedFiles;
use super::scsi;
use crate::clock::clock;
use crate::number::{nanos, shown, whole, whole_u32};
use crate::{Carries, FileEntry, Record};

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
    /// A file's number.
    File,
    /// A file's name.
    FileName,
    /// Address, in units of so many bytes.
    Address(u64),
    Object,
    /// Size, in units of so many bytes.
    Size(u64),
    Ignored,
}

impl Role {
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
    fn set(self, record: &mut Record, name: &str, field: &[u8], files: &mut NamedFiles) -> Result<(), String> {
        match self {
            Role::Time(unit_ns) if memchr::memchr(b':', field).is_none() => {
                record.time = Nanos(nanos(field, name, unit_ns)?);
            }
            Role::Time(_) => record.time = Nanos(clock(field, name)?),
            Role::Duration(unit_ns) => record.duration = Nanos(nanos(field, name, unit_ns)?),
            Role::Think(unit_ns) => record.think = Nanos(nanos(field, name, unit_ns)?),
            Role::Op { scsi } => record.write = is_write(field, name, scsi)?,
            Role::OpDigit(read) => record.write = is_write_digit(field, name, read)?,
            Role::Flags => record.write = hexadecimal(field, name)? & 1 == 0,
            Role::Process => record.pid = whole_u32(field, name)?,
            Role::File => record.file = whole_u32(field, name)?,
            Role::FileName => record.file = files.number(field.trim_ascii())?,
            Role::Address(unit) => record.offset = scaled(field, name, unit)?,
            Role::Object => record.offset = number(field, name)?,
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
    /// A comma, or another byte.
    Byte(u8),
    /// One or more spaces or tabulators.
    Space,
}

impl Separator {
    pub(super) const COMMA: Self = Separator::Byte(b',');

    /// The one of a header: the first of these that is in it.
    fn of(header: &str) -> Self {
        let found = [b',', b';', b'\t', b'|'].into_iter().find(|byte| header.as_bytes().contains(byte));
        match found {
            Some(byte) => Separator::Byte(byte),
            None if header.trim().contains(' ') => Separator::Space,
            None => Self::COMMA,
        }
    }
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
    /// The files of a column of names.
    files: NamedFiles,
    /// The name of a column of times that are taken for other than seconds, and what for.
    guessed: Option<&'static str>,
    /// Whether the column of times has a unit.
    time_has_unit: bool,
}

impl Columns {
    /// Reads a header line, or returns what is wrong with it. `request_bytes` is the size of requests in a trace without
    /// a column of sizes.
    pub(crate) fn from_header(line: &[u8], request_bytes: Option<u64>) -> Result<Self, String> {
        let text = std::str::from_utf8(line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line));
        let wrong = |what: &str| format!("the header {} {what}; allowed: {HEADER_ALLOWED}", shown(line));
        let text = text.map_err(|_| wrong("is not UTF-8"))?;
        let text = text.trim_start_matches(['#', ' ']);
        let separator = Separator::of(text);
        let name = |name: &str| Cow::Owned(name.trim().trim_matches('"').to_ascii_lowercase());
        let names: Vec<Cow<str>> = match separator {
            Separator::Byte(byte) => text.split(char::from(byte)).map(name).collect(),
            Separator::Space => text.split_ascii_whitespace().map(name).collect(),
        };
        if names.len() > COLUMNS_MAX {
            return Err(wrong(&format!("has more than {COLUMNS_MAX} columns")));
        }
        let known = roles(names.iter().map(Cow::as_ref));
        let roles: Vec<Role> = known.iter().map(|known| known.role).collect();
        for (index, role) in roles.iter().enumerate() {
            if let Some(first) = roles[..index].iter().position(|earlier| earlier.same_kind(*role)) {
                return Err(wrong(&format!("has both {} and {}", names[first], names[index])));
            }
        }
        let place = roles.iter().find(|role| matches!(role, Role::Address(_) | Role::Object));
        let has_size = roles.iter().any(|role| matches!(role, Role::Size(_)));
        if has_size && request_bytes.is_some() {
            return Err(format!("the header {} has sizes; allowed: no request size beside them", shown(line)));
        }
        let size_default = match (place, request_bytes) {
            (None, _) => return Err(wrong("has no column that says where")),
            (_, Some(bytes)) => bytes,
            (Some(Role::Address(unit)), None) if *unit != SECTOR_BYTES && !has_size => {
                return Err(wrong("has an offset and no size, and no request size is given"));
            }
            (Some(Role::Address(unit)), None) => *unit,
            (Some(_), None) => OBJECT_BYTES_NOMINAL,
        };
        let time_has_unit = known.iter().any(|Known { role, unit }| *unit && matches!(role, Role::Time(_)));
        let files = NamedFiles::default();
        Ok(Self { names, roles, separator, more: false, size_default, files, guessed: None, time_has_unit })
    }

    /// Looks at a line of data: files may have names, and times without a unit may be too large for seconds.
    pub(crate) fn look_at(&mut self, line: &[u8]) {
        let Ok(fields) = unquoted(line, self.separator) else { return };
        for (role, field) in self.roles.iter_mut().zip(fields.iter()) {
            match role {
                Role::File if whole_u32(field, "").is_err() => *role = Role::FileName,
                Role::Time(_) if !self.time_has_unit => {
                    // As seconds these would be of the year 5138 or later.
                    let whole_part = field.trim_ascii().split(|&byte| byte == b'.').next().unwrap_or_default();
                    let (unit_ns, guessed) = match whole(whole_part, "").unwrap_or(0) {
                        0..100_000_000_000 => continue,
                        100_000_000_000..100_000_000_000_000 => (1_000_000, "the times are taken for milliseconds"),
                        100_000_000_000_000..100_000_000_000_000_000 => (1_000, "the times are taken for microseconds"),
                        _ => (1, "the times are taken for nanoseconds"),
                    };
                    (*role, self.guessed) = (Role::Time(unit_ns), Some(guessed));
                }
                _ => {}
            }
        }
    }

    /// What a user must know of what was guessed.
    pub(crate) fn guessed(&self) -> Option<&'static str> {
        self.guessed
    }

    /// The files that have names.
    pub(crate) fn files(&self) -> &[FileEntry] {
        self.files.entries()
    }

    /// Whether files have names.
    pub(crate) fn names_files(&self) -> bool {
        self.has(|role| *role == Role::FileName)
    }

    /// Whether the operation of a line moves no data.
    pub(crate) fn moves_nothing(&self, line: &[u8]) -> bool {
        self.op(line).is_some_and(|op| MOVE_NOTHING.iter().any(|name| name.as_bytes() == op))
    }

    /// Whether the operation of a line is named as a system call, whose size may be 0.
    pub(crate) fn is_call(&self, line: &[u8]) -> bool {
        self.op(line).is_some_and(|op| op.len() > 2)
    }

    /// The operation of a line, in lower case.
    fn op(&self, line: &[u8]) -> Option<Vec<u8>> {
        let at = self.roles.iter().position(|role| matches!(role, Role::Op { .. }))?;
        let fields = unquoted(line, self.separator).ok()?;
        fields.get(at).map(|op| op.trim_ascii().to_ascii_lowercase())
    }

    /// The columns that a format lays down. The caller guarantees a place and a size among them.
    pub(super) fn fixed(columns: &[(&'static str, Role)], separator: Separator, more: bool) -> Self {
        let (names, roles) = columns.iter().map(|(name, role)| (Cow::Borrowed(*name), *role)).unzip();
        let files = NamedFiles::default();
        Self { names, roles, separator, more, size_default: 0, files, guessed: None, time_has_unit: true }
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
            files: self.has(|role| matches!(role, Role::File | Role::FileName)),
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
    pub(crate) fn record(&mut self, line: &[u8]) -> Result<Option<Record>, String> {
        if line.trim_ascii().is_empty() {
            return Ok(None);
        }
        match self.separator {
            Separator::Space => self.fill(line, spaced(line)),
            _ if memchr::memchr(b'"', line).is_some() => self.fill(line, unquoted(line, self.separator)?.iter()),
            Separator::Byte(separator) => self.fill(line, line.split(|&byte| byte == separator)),
        }
        .map(Some)
    }

    /// Whether a line looks like one of these, whatever its numbers are: as many fields, each of its kind. What is
    /// wrong with a number is then reported by reading, not by "the format is not recognised".
    pub(super) fn resembles(&self, line: &[u8]) -> bool {
        let fields: Vec<&[u8]> = match self.separator {
            Separator::Space => spaced(line).collect(),
            Separator::Byte(separator) => line.split(|&byte| byte == separator).map(<[u8]>::trim_ascii).collect(),
        };
        let count = self.roles.len();
        (fields.len() == count || self.more && fields.len() > count)
            && self.roles.iter().zip(fields).all(|(role, field)| role.resembles(field))
    }

    #[inline]
    fn fill<'a>(&mut self, line: &[u8], fields: impl Iterator<Item = &'a [u8]>) -> Result<Record, String> {
        let mut record = Record { size: self.size_default, ..Record::default() };
        let mut columns = self.roles.iter().zip(&self.names);
        for field in fields {
            match columns.next() {
                Some((role, name)) => role.set(&mut record, name, field, &mut self.files)?,
                None if self.more => break,
                None => {
                    let count = self.roles.len();
                    return Err(format!("{} has more than {count} columns; allowed: {count}", shown(line)));
                }
            }
        }
        match columns.len() {
            0 => {
                self.files.reaches(&record);
                Ok(record)
            }
            missing => {
                let count = self.roles.len();
                Err(format!("{} has {} columns; allowed: {count}", shown(line), count - missing))
            }
        }
    }
}

#[inline]
pub(super) fn scaled(field: &[u8], column: &str, unit: u64) -> Result<u64, String> {
    let value = number(field, column)?;
    let too_large = || format!("{} in column {column} is too large; allowed: 0 to {}", shown(field), u64::MAX / unit);
    value.checked_mul(unit).ok_or_else(too_large)
}

/// A whole number, in hexadecimal behind "0x".
#[inline]
pub(super) fn number(field: &[u8], column: &str) -> Result<u64, String> {
    match field.trim_ascii() {
        [b'0', b'x' | b'X', ..] => hexadecimal(field, column),
        _ => whole(field, column),
    }
}

/// What logs name that is neither a read nor a write.
const MOVE_NOTHING: &[&str] = &[
    "open",
    "openat",
    "close",
    "lseek",
    "seek",
    "stat",
    "fstat",
    "fsync",
    "fdatasync",
    "sync",
    "flush",
    "f",
    "trim",
    "discard",
    "unmap",
    "d",
    "mmap",
    "truncate",
    "ftruncate",
];

#[inline]
fn is_write(field: &[u8], column: &str, scsi: bool) -> Result<bool, String> {
    let op = field.trim_ascii();
    match op {
        b"R" | b"r" => return Ok(false),
        b"W" | b"w" => return Ok(true),
        _ if op.eq_ignore_ascii_case(b"read") => return Ok(false),
        _ if op.eq_ignore_ascii_case(b"write") => return Ok(true),
        // As Linux's block layer has it: sync, read-ahead, metadata, FUA.
        [what @ (b'R' | b'W'), flags @ ..] if scsi && flags.iter().all(|flag| b"SAMF".contains(flag)) => {
            return Ok(*what == b'W');
        }
        _ if scsi => {
            let op = op.to_ascii_lowercase();
            if matches!(&op[..], b"pread" | b"pread64" | b"readv" | b"preadv" | b"preadv2" | b"rd") {
                return Ok(false);
            }
            if matches!(&op[..], b"pwrite" | b"pwrite64" | b"writev" | b"pwritev" | b"pwritev2" | b"wr") {
                return Ok(true);
            }
        }
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
    let digits = text.strip_prefix(b"0x").or(text.strip_prefix(b"0X")).unwrap_or(text);
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
fn unquoted(line: &[u8], separator: Separator) -> Result<csv::ByteRecord, String> {
    let Separator::Byte(delimiter) = separator else { return Ok(spaced(line).collect()) };
    let mut fields = csv::ByteRecord::new();
    let mut builder = csv::ReaderBuilder::new();
    let mut reader = builder.has_headers(false).flexible(true).delimiter(delimiter).from_reader(line);
    reader.read_byte_record(&mut fields).map_err(|error| format!("{} is not CSV: {error}", shown(line)))?;
    Ok(fields)
}
