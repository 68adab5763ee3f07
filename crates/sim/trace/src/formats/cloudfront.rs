//! `cloudfront`: standard logs of Amazon CloudFront, in W3C's extended format with tabs.
//!
//! Source: the CloudFront developer guide, "Standard logging reference". `#Fields:` names the columns; date, time,
//! cs-method, cs-uri-stem, sc-status and sc-bytes are required. GET with status 200 or 206 reads the range from
//! sc-range-start to sc-range-end; without a range, sc-content-len bytes from the start; without that, sc-bytes (which
//! include the header). PUT and POST write cs-bytes; all others move no data. The file is the unescaped path. The time
//! in the log is the end of the response; the request began time-taken (seconds) earlier. Logs are not written in
//! order: the whole trace is held and sorted.

use headstart_types::Nanos;

use super::fields::SECOND_NS;
use super::names::NamedFiles;
use super::{ranged, unescaped};
use crate::checks::EMPTY;
use crate::clock::clock;
use crate::lines::{LineParser, LineReader, Lines};
use crate::number::{nanos, shown, whole};
use crate::{Carries, ErrorPosition, Evidence, FileEntry, Format, Record, RecordReader, Source, TraceError};

const CARRIES: Carries = Carries { duration: true, files: true, ..Carries::BLOCKS };

pub(crate) const FORMAT: Format = Format {
    name: "cloudfront",
    summary: "standard logs of Amazon CloudFront; the path is the file",
    source: "CloudFront developer guide, standard logs",
    carries: CARRIES,
    detect: |head| Evidence::mark(header(head).is_some(), "the line #Fields: names the columns of CloudFront's logs"),
    open,
};

/// The columns that are read; the first six are required.
const NAMES: [&str; 11] = [
    "date",
    "time",
    "cs-method",
    "cs-uri-stem",
    "sc-status",
    "sc-bytes",
    "cs-bytes",
    "time-taken",
    "sc-content-len",
    "sc-range-start",
    "sc-range-end",
];
const NEEDED: usize = 6;
/// The index of an absent column.
const ABSENT: usize = usize::MAX;

/// The column indices from the line "#Fields: ...".
fn header(head: &[u8]) -> Option<[usize; NAMES.len()]> {
    let comments = head.split(|&byte| byte == b'\n').take_while(|line| line.starts_with(b"#"));
    comments.into_iter().find_map(|line| places(line.strip_prefix(b"#Fields:")?))
}

fn places(names: &[u8]) -> Option<[usize; NAMES.len()]> {
    let names: Vec<&[u8]> = super::columns::spaced(names).collect();
    let places = NAMES.map(|name| names.iter().position(|found| *found == name.as_bytes()).unwrap_or(ABSENT));
    (!places[..NEEDED].contains(&ABSENT)).then_some(places)
}

fn open(source: Source) -> Result<Box<dyn RecordReader>, TraceError> {
    if source.head().is_empty() {
        return Err(source.bad(ErrorPosition::File, EMPTY.to_owned()));
    }
    let Some(places) = header(source.head()) else {
        let allowed = NAMES[..NEEDED].join(" ");
        return Err(
            source.bad(ErrorPosition::File, format!("there is no header; allowed: \"#Fields:\" with {allowed}"))
        );
    };
    Ok(Box::new(LineReader::new(Lines::new(source), CloudFront { places, paths: NamedFiles::default() })))
}

struct CloudFront {
    places: [usize; NAMES.len()],
    paths: NamedFiles,
}

impl LineParser for CloudFront {
    fn carries(&self) -> Carries {
        Carries { duration: self.places[7] != ABSENT, ..CARRIES }
    }

    fn files(&self) -> &[FileEntry] {
        self.paths.entries()
    }

    fn any_order(&self) -> bool {
        true
    }

    fn parse(&mut self, line: &[u8]) -> Result<Option<Record>, String> {
        if let Some(names) = line.strip_prefix(b"#Fields:") {
            // Concatenated logs have headers in between.
            self.places = places(names).ok_or_else(|| format!("the header {} is wrong", shown(line)))?;
            return Ok(None);
        }
        if line.is_empty() || line.starts_with(b"#") {
            return Ok(None);
        }
        let fields: Vec<&[u8]> = line.split(|&byte| byte == b'\t').collect();
        let last = self.places[..NEEDED].iter().max().copied().unwrap_or(0);
        if fields.len() <= last {
            return Err(format!("{} has {} columns; allowed: {} or more", shown(line), fields.len(), last + 1));
        }
        let field = |at: usize| fields.get(self.places[at]).copied().filter(|field| *field != b"-");
        let number = |at: usize| field(at).map(|field| whole(field, NAMES[at])).transpose();
        let [date, time, method, path, status] = [0, 1, 2, 3, 4].map(|at| field(at).unwrap_or_default());
        let ended = clock(&[date, b"T", time].concat(), "time")?;
        let duration = field(7).map_or(Ok(0), |taken| nanos(taken, NAMES[7], SECOND_NS))?;
        let time = Nanos(ended.saturating_sub(duration));
        let (first, last) = (number(9)?, number(10)?);
        let (read, write) = (method == b"GET", matches!(method, b"PUT" | b"POST"));
        let done = status.starts_with(b"2");
        let (offset, size) = match (first, last, number(8)?) {
            _ if write && done => (0, number(6)?.unwrap_or(0)),
            _ if !(read && done) => (0, 0),
            (Some(_), Some(_), _) => ranged(first, last, u64::MAX),
            (first, _, Some(length)) => (first.unwrap_or(0), length),
            (first, _, None) => (first.unwrap_or(0), number(5)?.unwrap_or(0)),
        };
        if size == 0 {
            return Ok(Some(Record { time, ..Record::default() }));
        }
        let file = self.paths.number(&unescaped(path))?;
        let record = Record { time, duration: Nanos(duration), offset, size, file, write, ..Record::default() };
        self.paths.reaches(&record);
        Ok(Some(record))
    }
}
