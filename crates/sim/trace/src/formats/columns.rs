//! Columns: their meaning, from a header or as the format defines them, and how a line becomes a record.
//!
//! Comma-separated fields may be quoted; a quoted field may not contain a line break. Columns with unknown names are
//! ignored, unless they hold operations: the trace is then refused, because writes would count as reads.

use std::borrow::Cow;

use super::fields::{Known, Role, SECTOR_BYTES};
use super::header::{is_li07_merged, roles, says_operation, Named, HEADER_ALLOWED};
use super::operation::{operation, Operation};
use crate::number::{shown, whole, whole_u32};
use crate::{Carries, FileEntry, Record};

/// Maximum number of columns in a header.
const COLUMNS_MAX: usize = 64;
/// Size of an object if there is no size column.
const OBJECT_BYTES_NOMINAL: u64 = 4096;
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Separator {
    /// A comma, or another byte.
    Byte(u8),
    /// One or more spaces or tabs.
    Space,
}

impl Separator {
    pub(super) const COMMA: Self = Separator::Byte(b',');

    /// The separator of a header: the first of the candidates that occurs in it.
    fn of(header: &str) -> Self {
        let found = [b',', b';', b'\t', b'|'].into_iter().find(|byte| header.as_bytes().contains(byte));
        match found {
            Some(byte) => Separator::Byte(byte),
            None if header.trim().contains(' ') => Separator::Space,
            None => Self::COMMA,
        }
    }
}

/// The columns of a trace and their meaning.
#[derive(Debug)]
pub(crate) struct Columns {
    names: Vec<Cow<'static, str>>,
    roles: Vec<Role>,
    separator: Separator,
    /// Whether a line may have further columns, which are ignored.
    more: bool,
    /// Size of a record if there is no size column.
    size_default: u64,
    known: Known,
    /// Lines whose operation moves no data.
    skipped: u64,
    /// A note if the unit of the time column was guessed.
    guessed: Option<&'static str>,
    /// Whether the time column has a unit.
    time_has_unit: bool,
}

impl Columns {
    /// Parses a header line, or returns what is wrong with it. `request_bytes` is the size of requests in a trace
    /// without a size column.
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
        let named = roles(names.iter().map(Cow::as_ref));
        let roles: Vec<Role> = named.iter().map(|named| named.role).collect();
        for (index, role) in roles.iter().enumerate() {
            if let Some(first) = roles[..index].iter().position(|earlier| earlier.same_kind(*role)) {
                return Err(wrong(&format!("has both {} and {}", names[first], names[index])));
            }
        }
        let place = roles.iter().find(|role| matches!(role, Role::Address(_) | Role::Object));
        let has_size = roles.iter().any(|role| matches!(role, Role::Size(_)));
        if has_size && request_bytes.is_some() {
            return Err(format!(
                "the header {} has a size column; allowed: no request size together with it",
                shown(line)
            ));
        }
        let size_default = match (place, request_bytes) {
            (None, _) => return Err(wrong("has no address column")),
            (_, Some(bytes)) => bytes,
            (Some(Role::Address(unit)), None) if *unit != SECTOR_BYTES && !has_size => {
                return Err(wrong("has an offset but no size, and no request size is given"));
            }
            (Some(Role::Address(unit)), None) => *unit,
            (Some(_), None) => OBJECT_BYTES_NOMINAL,
        };
        let time_has_unit = named.iter().any(|Named { role, unit }| *unit && matches!(role, Role::Time(_)));
        let known = Known::default();
        Ok(Self { names, roles, separator, more: false, size_default, known, skipped: 0, guessed: None, time_has_unit })
    }

    /// Whether `line` looks like data below this header: it has as many fields, and a number in the address column.
    pub(crate) fn heads(&self, line: &[u8]) -> bool {
        let Ok(fields) = unquoted(line, self.separator) else { return true };
        // A comma is enough evidence; with spaces the number of fields must match too.
        let other = self.separator == Separator::Space && fields.len() != self.roles.len();
        let place = self.roles.iter().position(|role| matches!(role, Role::Address(_) | Role::Object));
        let has_digit = |field: &[u8]| field.iter().any(u8::is_ascii_digit);
        let empty_or_number = |field: &[u8]| field.is_empty() || has_digit(field);
        !other
            && (self.roles.len() == 1) == (fields.len() == 1)
            && place.and_then(|at| fields.get(at)).is_none_or(empty_or_number)
    }

    /// Inspects the first lines of data: files may have names, times without a unit may be too large for seconds, and a
    /// column with an unknown name may hold the operations.
    pub(crate) fn looked_at(mut self, lines: &[Vec<u8>]) -> Result<Self, String> {
        if let Some(first) = lines.first() {
            self.look_at(first);
        }
        let lines: Vec<csv::ByteRecord> = lines.iter().filter_map(|line| unquoted(line, self.separator).ok()).collect();
        let known = self.has(|role| matches!(role, Role::Op { .. } | Role::OpDigit(_)));
        if known || lines.is_empty() || is_li07_merged(self.names.iter().map(Cow::as_ref)) {
            return Ok(self);
        }
        let is_operation = |at: usize| {
            lines.iter().all(|fields| fields.get(at).is_some_and(|field| operation(field, "", false).is_ok()))
        };
        let columns = self.names.iter().zip(&self.roles).enumerate();
        let mut ignored = columns.filter(|(_, (_, role))| **role == Role::Ignored);
        match ignored.find(|(at, (name, _))| says_operation(name) || is_operation(*at)) {
            None => Ok(self),
            Some((_, (name, _))) => Err(format!(
                "column {} seems to hold operations, but its name is not known; allowed: op, with R, W, read, write, \
                or is_write, is_read with 0 and 1",
                shown(name.as_bytes())
            )),
        }
    }

    /// The columns before any line is read.
    pub(crate) fn started(self) -> Self {
        Self { known: Known::default(), skipped: 0, ..self }
    }

    /// Inspects the first line of data.
    fn look_at(&mut self, line: &[u8]) {
        let Ok(fields) = unquoted(line, self.separator) else { return };
        for (role, field) in self.roles.iter_mut().zip(fields.iter()) {
            match role {
                Role::File if whole_u32(field, "").is_err() => *role = Role::FileName,
                Role::Time(_) if !self.time_has_unit => {
                    // As seconds, these would be in the year 5138 or later.
                    let whole_part = field.trim_ascii().split(|&byte| byte == b'.').next().unwrap_or_default();
                    let (unit_ns, guessed) = match whole(whole_part, "").unwrap_or(0) {
                        0..100_000_000_000 => continue,
                        100_000_000_000..100_000_000_000_000 => (1_000_000, "the times are taken as milliseconds"),
                        100_000_000_000_000..100_000_000_000_000_000 => (1_000, "the times are taken as microseconds"),
                        _ => (1, "the times are taken as nanoseconds"),
                    };
                    (*role, self.guessed) = (Role::Time(unit_ns), Some(guessed));
                }
                _ => {}
            }
        }
    }

    /// A note on what was guessed.
    pub(crate) fn guessed(&self) -> Option<&'static str> {
        self.guessed
    }

    /// The files that have names.
    pub(crate) fn files(&self) -> &[FileEntry] {
        self.known.files.entries()
    }

    /// The name of the process that issued the last record, if there is a name column.
    pub(crate) fn process(&self) -> Option<&[u8]> {
        (!self.known.process.is_empty()).then_some(&self.known.process)
    }

    /// Whether files have names.
    pub(crate) fn names_files(&self) -> bool {
        self.has(|role| *role == Role::FileName)
    }

    /// Whether the operation of a line moves no data.
    fn moves_nothing(&self, line: &[u8]) -> bool {
        let op = self.roles.iter().enumerate().find_map(|(at, role)| match role {
            Role::Op { scsi } => Some((at, *scsi)),
            _ => None,
        });
        op.zip(unquoted(line, self.separator).ok()).is_some_and(|((at, scsi), fields)| {
            fields.get(at).is_some_and(|field| operation(field, "", scsi) == Ok(Operation::Other))
        })
    }

    /// Number of lines skipped because their operation moves no data.
    pub(crate) fn skipped(&self) -> u64 {
        self.skipped
    }

    /// The names of the ignored columns.
    pub(crate) fn ignored(&self) -> impl Iterator<Item = &str> {
        let columns = self.names.iter().zip(&self.roles);
        columns.filter(|(_, role)| **role == Role::Ignored).map(|(name, _)| name.as_ref())
    }

    /// The columns that a format defines. The caller guarantees that an address and a size are among them.
    pub(super) fn fixed(columns: &[(&'static str, Role)], separator: Separator, more: bool) -> Self {
        let (names, roles) = columns.iter().map(|(name, role)| (Cow::Borrowed(*name), *role)).unzip();
        let known = Known::default();
        Self { names, roles, separator, more, size_default: 0, known, skipped: 0, guessed: None, time_has_unit: true }
    }

    fn has(&self, wanted: impl Fn(&Role) -> bool) -> bool {
        self.roles.iter().any(wanted)
    }

    /// The fields that a trace with these columns carries.
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

    /// Whether each line gives its object's size.
    pub(crate) fn gives_object_sizes(&self) -> bool {
        self.has(|role| *role == Role::Object) && self.has(|role| matches!(role, Role::Size(_)))
    }

    /// Bytes of the address unit; for objects the size of `first`, the trace's first record.
    pub(crate) fn unit_bytes(&self, first: Option<&Record>) -> u64 {
        match self.roles.iter().find(|role| matches!(role, Role::Address(_))) {
            Some(Role::Address(unit)) => *unit,
            _ => first.map_or(self.size_default, |record| record.size).max(1),
        }
    }

    /// Parses a line; `None` for a blank line and for an operation that moves no data, which is counted.
    pub(crate) fn record(&mut self, line: &[u8]) -> Result<Option<Record>, String> {
        if line.trim_ascii().is_empty() {
            return Ok(None);
        }
        let filled = match self.separator {
            Separator::Space => self.fill(line, spaced(line)),
            _ if memchr::memchr(b'"', line).is_some() => {
                unquoted(line, self.separator).and_then(|fields| self.fill(line, fields.iter()))
            }
            Separator::Byte(separator) => self.fill(line, line.split(|&byte| byte == separator)),
        };
        // If nothing is moved, the other columns may be empty or missing.
        if matches!(filled, Ok(None)) || filled.is_err() && self.moves_nothing(line) {
            self.skipped += 1;
            return Ok(None);
        }
        filled
    }

    /// Whether a line looks like one of this format: as many fields, each of its kind. An invalid number is then
    /// reported by the reader, instead of "the format was not recognised".
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
    fn fill<'a>(&mut self, line: &[u8], fields: impl Iterator<Item = &'a [u8]>) -> Result<Option<Record>, String> {
        let mut record = Record { size: self.size_default, ..Record::default() };
        let mut columns = self.roles.iter().zip(&self.names);
        for field in fields {
            match columns.next() {
                Some((role, name)) => {
                    if !role.set(&mut record, name, field, &mut self.known)? {
                        return Ok(None);
                    }
                }
                None if self.more => break,
                None => {
                    let count = self.roles.len();
                    return Err(format!("{} has more than {count} columns; allowed: {count}", shown(line)));
                }
            }
        }
        match columns.len() {
            0 => {
                self.known.files.reaches(&record);
                Ok(Some(record))
            }
            missing => {
                let count = self.roles.len();
                Err(format!("{} has {} columns; allowed: {count}", shown(line), count - missing))
            }
        }
    }
}

/// The space-separated fields of a line.
#[inline]
pub(super) fn spaced(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(u8::is_ascii_whitespace).filter(|field| !field.is_empty())
}

/// The trimmed fields of a line without quotes.
#[inline]
pub(super) fn separated(line: &[u8], separator: Separator) -> Box<dyn Iterator<Item = &[u8]> + '_> {
    match separator {
        Separator::Space => Box::new(spaced(line)),
        Separator::Byte(byte) => Box::new(line.split(move |&each| each == byte).map(<[u8]>::trim_ascii)),
    }
}

/// The fields of a line that contains quotes.
pub(super) fn unquoted(line: &[u8], separator: Separator) -> Result<csv::ByteRecord, String> {
    let Separator::Byte(delimiter) = separator else { return Ok(spaced(line).collect()) };
    let mut fields = csv::ByteRecord::new();
    let mut builder = csv::ReaderBuilder::new();
    let mut reader = builder.has_headers(false).flexible(true).delimiter(delimiter).from_reader(line);
    reader.read_byte_record(&mut fields).map_err(|error| format!("{} is not CSV: {error}", shown(line)))?;
    Ok(fields)
}
