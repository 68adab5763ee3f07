//! `lis`: "start count ignored number" per line, as in the traces published by the authors of ARC.
//!
//! Source: Megiddo and Modha, "ARC: a self-tuning, low overhead replacement cache", FAST 2003. A line requests `count`
//! consecutive pages of 512 bytes from page `start`; the other two columns are not used. One line is one record. Some
//! files begin or end with blank lines, which are ignored. If the first lines request one page each (of the published
//! traces, OLTP does), the numbers are objects in order of first use: adjacent numbers are not adjacent on disk.
//! Otherwise they are addresses.

use super::columns::spaced;
use super::fields::scaled;
use super::{first_lines, lines_of};
use crate::lines::{LineParser, LineReader, Lines};
use crate::number::{shown, whole};
use crate::{Carries, Evidence, Format, Record};

const PAGE_BYTES: u64 = 512;

const CARRIES: Carries = Carries { addresses: true, objects: true, ..Carries::NOTHING };

pub(crate) const FORMAT: Format = Format {
    name: "lis",
    summary: "\"start count ignored number\" per line, 512-byte pages",
    source: "Megiddo and Modha, ARC, FAST 2003",
    carries: CARRIES,
    detect,
    open: |source| {
        let lines = source.head().split_inclusive(|&byte| byte == b'\n').filter(|line| line.ends_with(b"\n"));
        let objects = lines.filter_map(|line| spaced(line).nth(1)).all(|count| count == b"1");
        Ok(Box::new(LineReader::new(Lines::new(source), Lis { objects })))
    },
};

fn detect(head: &[u8]) -> Option<Evidence> {
    let four_numbers = |line: &[u8]| {
        spaced(line).count() == 4 && spaced(line).all(|field| field.len() < 20 && field.iter().all(u8::is_ascii_digit))
    };
    // The last column numbers the requests, or both unused columns are 0.
    let last = |line| whole(spaced(line).last().unwrap_or_default(), "").unwrap_or_default();
    let numbered = lines_of(head).map(last).is_sorted_by(|one, next| one < next);
    let unused = || lines_of(head).all(|line| spaced(line).skip(2).all(|field| field == b"0"));
    let form = "four whole numbers per line, the last one rising by line, or two and 0 0";
    Evidence::form(first_lines(head, four_numbers) && (numbered || unused()), form)
}

struct Lis {
    /// Whether the numbers are objects.
    objects: bool,
}

impl LineParser for Lis {
    fn carries(&self) -> Carries {
        Carries { addresses: !self.objects, objects: self.objects, ..CARRIES }
    }

    fn note(&self) -> Option<String> {
        let note = "every request is for one page: the numbers are taken as objects, whose neighbours are unknown";
        self.objects.then(|| note.to_owned())
    }

    fn unit_bytes(&self) -> u64 {
        PAGE_BYTES
    }

    #[inline]
    fn parse(&mut self, line: &[u8]) -> Result<Option<Record>, String> {
        let mut fields = spaced(line);
        let Some(start) = fields.next() else { return Ok(None) };
        let Some(count) = fields.next() else {
            return Err(format!("{} has 1 column; allowed: 4, \"start count ignored number\"", shown(line)));
        };
        let others = fields.count();
        if others != 2 {
            return Err(format!(
                "{} has {} columns; allowed: 4, \"start count ignored number\"",
                shown(line),
                others + 2
            ));
        }
        let pages = |field, column| scaled(field, column, PAGE_BYTES);
        let offset = if self.objects { whole(start, "start")? } else { pages(start, "start")? };
        Ok(Some(Record { offset, size: pages(count, "count")?, ..Record::default() }))
    }
}
