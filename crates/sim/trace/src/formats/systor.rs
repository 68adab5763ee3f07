//! `systor17`: "Timestamp,Response,IOType,LUN,Offset,Size" with that header, traces of virtual desktops.
//!
//! Source: Lee et al., "Understanding storage traffic characteristics on enterprise virtual desktop infrastructure",
//! SYSTOR 2017, and the description of its traces (SNIA IOTTA). Seconds since 1970 and response time in seconds, both
//! with a resolution of a microsecond; R or W; offset and size in bytes. The LUN is the file. A request whose response
//! the tracer lost has no type, and some have no response time: these are skipped and counted.

use super::columns::Separator;
use super::fields::Role;
use super::fixed::{Fixed, Layout};
use crate::lines::{LineParser, LineReader, Lines};
use crate::{Carries, Format, Record};

static LAYOUT: Layout = Layout {
    columns: &[
        ("Timestamp", Role::Time(1_000_000_000)),
        ("Response", Role::Duration(1_000_000_000)),
        ("IOType", Role::Op { scsi: false }),
        ("LUN", Role::File),
        ("Offset", Role::Address(1)),
        ("Size", Role::Size(1)),
    ],
    separator: Separator::COMMA,
    more: false,
};

pub(crate) const FORMAT: Format = Format {
    name: "systor17",
    summary: "CSV Timestamp, Response, IOType, LUN, Offset, Size; s, bytes; the LUN is the file",
    source: "Lee et al., SYSTOR 2017",
    carries: Carries { duration: true, files: true, ..Carries::BLOCKS },
    detect: |head| LAYOUT.detect(head, "six columns, the third R or W, as in the traces of SYSTOR 2017"),
    open: |source| Ok(Box::new(LineReader::new(Lines::new(source), Systor { fixed: LAYOUT.parser(), unanswered: 0 }))),
};

struct Systor {
    fixed: Fixed,
    unanswered: u64,
}

/// Whether the request has no response: an empty second or third column.
fn unanswered(line: &[u8]) -> bool {
    let mut fields = line.split(|&byte| byte == b',').map(<[u8]>::trim_ascii).skip(1);
    fields.next().is_some_and(<[u8]>::is_empty) || fields.next().is_some_and(<[u8]>::is_empty)
}

impl LineParser for Systor {
    fn carries(&self) -> Carries {
        self.fixed.carries()
    }

    fn unit_bytes(&self) -> u64 {
        self.fixed.unit_bytes()
    }

    fn skipped(&self) -> u64 {
        self.fixed.skipped() + self.unanswered
    }

    #[inline]
    fn parse(&mut self, line: &[u8]) -> Result<Option<Record>, String> {
        if unanswered(line) {
            self.unanswered += 1;
            return Ok(None);
        }
        self.fixed.parse(line)
    }
}
