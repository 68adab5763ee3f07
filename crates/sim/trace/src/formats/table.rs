//! Text formats of which only some columns are read: by name with a header, in any order, or in an order that the
//! format defines. Such a format is a [`Table`], with one function that turns a line's fields into a request.

use super::columns::{separated, unquoted, Separator};
use super::fields::Known;
use super::{is_remark, lines_of};
use crate::checks::EMPTY;
use crate::lines::{LineParser, LineReader, Lines};
use crate::number::shown;
use crate::{Carries, ErrorPosition, Evidence, FileEntry, Record, RecordReader, Source, TraceError};

/// The index of an absent column.
pub(super) const ABSENT: usize = usize::MAX;

/// Maximum number of equal requests that one line may stand for. A guess; without a limit, a few bytes would be an
/// endless trace.
const REPEATS_MAX: u64 = 1_000_000;

/// The columns of a format, of which `N` are read.
pub(super) struct Table<const N: usize> {
    /// Their names in a header, in lower case.
    pub names: [&'static str; N],
    /// This many of the first columns are required; the others are empty if missing.
    pub needed: usize,
    pub separator: Separator,
    /// Column indices in lines without a header, by the number of columns.
    pub orders: &'static [(usize, [usize; N])],
    /// The fields that a trace carries if the columns marked true are present.
    pub carries: fn([bool; N]) -> Carries,
    /// Nominal size of an object for traces of objects; 1 for byte addresses.
    pub unit_bytes: u64,
    /// Parses the request of a line. One of 0 bytes moves no data.
    pub record: fn(&[&[u8]; N], &mut Known) -> Result<Repeated, String>,
}

/// A request and its repetitions.
pub(super) struct Repeated {
    pub record: Record,
    pub times: u64,
}

impl From<Record> for Repeated {
    fn from(record: Record) -> Self {
        Self { record, times: 1 }
    }
}

impl Repeated {
    /// Repeats a request as often as a column says.
    pub fn counted(record: Record, times: u64, column: &str) -> Result<Self, String> {
        if times > REPEATS_MAX {
            return Err(format!("{times} in column {column} is too large; allowed: up to {REPEATS_MAX}"));
        }
        Ok(Self { record, times })
    }
}

impl<const N: usize> Table<N> {
    /// Whether the first line is a header with the required names.
    pub fn detect(&'static self, head: &[u8], reason: &'static str) -> Option<Evidence> {
        Evidence::mark(self.header(head).is_some(), reason)
    }

    pub fn open(&'static self, source: Source) -> Result<Box<dyn RecordReader>, TraceError> {
        let header = self.header(source.head());
        let Some(first) = header.map(|(line, _)| line).or_else(|| lines_of(source.head()).next()) else {
            return Err(source.bad(ErrorPosition::File, EMPTY.to_owned()));
        };
        let count = separated(first, self.separator).count();
        let ordered = || self.orders.iter().find(|(columns, _)| *columns == count).map(|(_, places)| *places);
        let Some(places) = header.map(|(_, places)| places).or_else(ordered) else {
            let allowed = self.names[..self.needed].join(", ");
            let problem = format!("the header {} is wrong; allowed: one with the columns {allowed}", shown(first));
            return Err(source.bad(ErrorPosition::Line(1), problem));
        };
        let carries = (self.carries)(places.map(|place| place != ABSENT));
        let header = header.map(|(line, _)| line.to_vec());
        let (known, again) = (Known::default(), None);
        Ok(Box::new(LineReader::new(Lines::new(source), Rows { table: self, places, carries, header, known, again })))
    }

    /// The header and its column indices: the first line that is neither blank nor a comment, or a comment above it.
    fn header<'a>(&self, head: &'a [u8]) -> Option<(&'a [u8], [usize; N])> {
        let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
        let mut lines = head.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii).filter(|line| !line.is_empty());
        loop {
            let line = lines.next()?;
            match self.named(line) {
                Some(places) => return Some((line, places)),
                None if is_remark(line) => {}
                None => return None,
            }
        }
    }

    /// The column indices of this header, if it has the required names.
    fn named(&self, header: &[u8]) -> Option<[usize; N]> {
        let header = header.strip_prefix(b"#").unwrap_or(header).trim_ascii_start();
        let names: Vec<String> = separated(header, self.separator).map(plain_name).collect();
        let places = self.names.map(|name| names.iter().position(|found| found == name).unwrap_or(ABSENT));
        (!places[..self.needed].contains(&ABSENT)).then_some(places)
    }
}

/// A header's name in lower case, without quotes and without a unit in brackets.
fn plain_name(name: &[u8]) -> String {
    let name = String::from_utf8_lossy(name).trim_matches(['"', ' ']).to_ascii_lowercase();
    match name.split_once(" (") {
        Some((base, _)) => base.to_owned(),
        None => name,
    }
}

/// Parses the lines of a [`Table`].
struct Rows<const N: usize> {
    table: &'static Table<N>,
    places: [usize; N],
    carries: Carries,
    /// The header, until it was skipped.
    header: Option<Vec<u8>>,
    known: Known,
    /// The request of the last line and its remaining repetitions.
    again: Option<Repeated>,
}

impl<const N: usize> LineParser for Rows<N> {
    fn carries(&self) -> Carries {
        self.carries
    }

    fn unit_bytes(&self) -> u64 {
        self.table.unit_bytes
    }

    fn sizes_vary(&self) -> bool {
        self.carries.objects
    }

    fn files(&self) -> &[FileEntry] {
        self.known.files.entries()
    }

    fn parse(&mut self, line: &[u8]) -> Result<Option<Record>, String> {
        let trimmed = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line).trim_ascii();
        if trimmed.is_empty() || trimmed.starts_with(b"#") {
            return Ok(None);
        }
        if self.header.take_if(|header| header == trimmed).is_some() {
            return Ok(None);
        }
        let quoted = memchr::memchr(b'"', line).map(|_| unquoted(line, self.table.separator)).transpose()?;
        let mut fields: [&[u8]; N] = [b""; N];
        let mut count = 0;
        let mut take = |field| {
            for (place, slot) in self.places.iter().zip(&mut fields) {
                if *place == count {
                    *slot = field;
                }
            }
            count += 1;
        };
        match &quoted {
            Some(fields) => fields.iter().map(<[u8]>::trim_ascii).for_each(&mut take),
            None => separated(trimmed, self.table.separator).for_each(&mut take),
        }
        let last = self.places[..self.table.needed].iter().max().copied().unwrap_or(0);
        if count <= last {
            return Err(format!("{} has {count} columns; allowed: {} or more", shown(line), last + 1));
        }
        let Repeated { record, times } = (self.table.record)(&fields, &mut self.known)?;
        self.known.files.reaches(&record);
        self.again = (record.size > 0 && times > 1).then(|| Repeated { record, times: times - 1 });
        Ok((times > 0).then_some(record))
    }

    fn further(&mut self, _ended: bool) -> Option<Record> {
        let again = self.again.as_mut()?;
        let record = again.record;
        again.times -= 1;
        if again.times == 0 {
            self.again = None;
        }
        Some(record)
    }
}
