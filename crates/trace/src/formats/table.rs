//! Text formats of which a few columns are read: by name under a header, in any order, or in an order that the format lays
//! down. Such a format is a [`Table`], and what a line's fields mean is one function.

use super::columns::{separated, unquoted, Separator};
use super::fields::Known;
use super::{is_remark, lines_of};
use crate::checks::EMPTY;
use crate::lines::{LineParser, LineReader, Lines};
use crate::number::shown;
use crate::{Carries, Evidence, FileEntry, Place, Record, RecordReader, Source, TraceError};

/// The place of a column that an order lacks.
pub(super) const ABSENT: usize = usize::MAX;

/// Most times that one line may stand for the same request. A guess, so that a few bytes are no endless trace.
const REPEATS_MAX: u64 = 1_000_000;

/// The columns of a format, of which `N` are read.
pub(super) struct Table<const N: usize> {
    /// Their names in a header, in lower case.
    pub names: [&'static str; N],
    /// So many of the first of them must be there; a missing one of the others is empty.
    pub needed: usize,
    pub separator: Separator,
    /// Where they stand in lines without a header, by the number of columns.
    pub orders: &'static [(usize, [usize; N])],
    /// What a trace carries that has the columns that are true.
    pub carries: fn([bool; N]) -> Carries,
    /// Size of an object, where there are objects of many sizes; 1 where bytes are counted.
    pub unit_bytes: u64,
    /// The request of a line. One of 0 bytes moves no data.
    pub record: fn(&[&[u8]; N], &mut Known) -> Result<Repeated, String>,
}

/// A request, and how many times it was made.
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
    /// As often as a column says.
    pub fn counted(record: Record, times: u64, column: &str) -> Result<Self, String> {
        if times > REPEATS_MAX {
            return Err(format!("{times} in column {column} is too large; allowed: up to {REPEATS_MAX}"));
        }
        Ok(Self { record, times })
    }
}

impl<const N: usize> Table<N> {
    /// Whether the first line is a header with the names that must be there.
    pub fn detect(&'static self, head: &[u8], reason: &'static str) -> Option<Evidence> {
        Evidence::mark(self.header(head).is_some(), reason)
    }

    /// Starts reading.
    pub fn open(&'static self, source: Source) -> Result<Box<dyn RecordReader>, TraceError> {
        let header = self.header(source.head());
        let Some(first) = header.map(|(line, _)| line).or_else(|| lines_of(source.head()).next()) else {
            return Err(source.bad(Place::File, EMPTY.to_owned()));
        };
        let count = separated(first, self.separator).count();
        let ordered = || self.orders.iter().find(|(columns, _)| *columns == count).map(|(_, places)| *places);
        let Some(places) = header.map(|(_, places)| places).or_else(ordered) else {
            let allowed = self.names[..self.needed].join(", ");
            let problem = format!("the header {} is wrong; allowed: one with the columns {allowed}", shown(first));
            return Err(source.bad(Place::Line(1), problem));
        };
        let carries = (self.carries)(places.map(|place| place != ABSENT));
        let header = header.map(|(line, _)| line.to_vec());
        let (known, again) = (Known::default(), None);
        Ok(Box::new(LineReader::new(Lines::new(source), Rows { table: self, places, carries, header, known, again })))
    }

    /// The header, and where the columns stand under it: the first line that is neither blank nor a comment, or a comment
    /// above it.
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

    /// The places of the columns under this header, if it has the names that must be there.
    fn named(&self, header: &[u8]) -> Option<[usize; N]> {
        let header = header.strip_prefix(b"#").unwrap_or(header).trim_ascii_start();
        let names: Vec<String> = separated(header, self.separator).map(plain_name).collect();
        let places = self.names.map(|name| names.iter().position(|found| found == name).unwrap_or(ABSENT));
        (!places[..self.needed].contains(&ABSENT)).then_some(places)
    }
}

/// A name of a header without quotes and the unit in brackets behind it, in lower case.
fn plain_name(name: &[u8]) -> String {
    let name = String::from_utf8_lossy(name).trim_matches(['"', ' ']).to_ascii_lowercase();
    match name.split_once(" (") {
        Some((base, _)) => base.to_owned(),
        None => name,
    }
}

/// Reads the lines of a [`Table`].
struct Rows<const N: usize> {
    table: &'static Table<N>,
    places: [usize; N],
    carries: Carries,
    /// The header, until it was passed.
    header: Option<Vec<u8>>,
    known: Known,
    /// What the last line stands for, as often as it is still to be handed out.
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
