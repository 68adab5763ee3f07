//! Columns: which is what, by the names of a header or as a format lays down, and how a line becomes a record.
//!
//! Comma-separated fields may be quoted; a quoted field may not hold a line end. Columns of unknown names are not
//! read.

use std::borrow::Cow;

use super::fields::{Role, MOVE_NOTHING, SECTOR_BYTES};
use super::header::{roles, Known, HEADER_ALLOWED};
use super::names::NamedFiles;
use crate::number::{shown, whole, whole_u32};
use crate::{Carries, FileEntry, Record};

/// Most columns in a header.
const COLUMNS_MAX: usize = 64;
/// Size of an object where there is no size column.
const OBJECT_BYTES_NOMINAL: u64 = 4096;
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
