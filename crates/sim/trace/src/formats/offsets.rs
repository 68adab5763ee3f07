//! `offsets`: one byte offset per line and nothing else, decimal, or hexadecimal after "0x"; the user gives the size of
//! the requests. Lines that begin with "#" are ignored.
//!
//! Decimal numbers alone could be block numbers too (`lirs`): they are taken as offsets only if a size is given.

use super::fields::number;
use super::first_lines;
use crate::checks::EMPTY;
use crate::lines::{LineParser, LineReader, Lines};
use crate::{Carries, ErrorPosition, Evidence, Format, Record, RecordReader, Source, TraceError};

const CARRIES: Carries = Carries { addresses: true, ..Carries::NOTHING };

pub(crate) const FORMAT: Format = Format {
    name: "offsets",
    summary: "one offset in bytes per line, decimal or 0x; the size is that of --request-size (workload.request_size)",
    source: "headstart",
    carries: CARRIES,
    detect: |head| {
        let has_hexadecimal = head.split(|&byte| byte == b'\n').take(8).any(|line| line.starts_with(b"0x"));
        Evidence::form(has_hexadecimal && may_be(head), "the lines are numbers, some of them hexadecimal")
    },
    open,
};

/// Whether the first lines may be offsets.
pub(crate) fn may_be(head: &[u8]) -> bool {
    first_lines(head, |line| line.starts_with(b"#") || number(line, "").is_ok())
}

fn open(source: Source) -> Result<Box<dyn RecordReader>, TraceError> {
    if source.head().is_empty() {
        return Err(source.bad(ErrorPosition::File, EMPTY.to_owned()));
    }
    let Some(size) = source.request_bytes() else {
        let problem = "offsets without sizes; allowed: with a size, --request-size 4KiB (workload.request_size)";
        return Err(source.bad(ErrorPosition::File, problem.to_owned()));
    };
    Ok(Box::new(LineReader::new(Lines::new(source), Offsets { size })))
}

struct Offsets {
    size: u64,
}

impl LineParser for Offsets {
    fn carries(&self) -> Carries {
        CARRIES
    }

    #[inline]
    fn parse(&mut self, line: &[u8]) -> Result<Option<Record>, String> {
        let field = line.trim_ascii();
        if field.is_empty() || field[0] == b'#' {
            return Ok(None);
        }
        Ok(Some(Record { offset: number(field, "offset")?, size: self.size, ..Record::default() }))
    }
}
