//! `lirs`: one block number per line, as in the traces published by the authors of LIRS.
//!
//! Source: Jiang and Zhang, "LIRS: an efficient low inter-reference recency set replacement policy", SIGMETRICS 2002;
//! blocks of 8 KiB. A line "*" separates phases and holds no reference; blank lines are ignored. The published traces
//! were renumbered in order of first touch: their numbers tell nothing about distance on disk, and hence nothing about
//! sequential read-ahead.

use super::{first_lines, is_text};
use crate::lines::{LineParser, LineReader, Lines};
use crate::number::whole;
use crate::{Carries, Evidence, Format, Record};

const BLOCK_BYTES: u64 = 8192;

const CARRIES: Carries = Carries { objects: true, ..Carries::NOTHING };

pub(crate) const FORMAT: Format = Format {
    name: "lirs",
    summary: "one block number (8 KiB blocks) per line",
    source: "Jiang and Zhang, LIRS, SIGMETRICS 2002",
    carries: CARRIES,
    detect,
    open: |source| Ok(Box::new(LineReader::new(Lines::new(source), Lirs))),
};

fn detect(head: &[u8]) -> Option<Evidence> {
    let is_block = |line: &[u8]| line == b"*" || line.len() < 20 && line.iter().all(u8::is_ascii_digit);
    // A binary file may also begin with digits.
    Evidence::form(is_text(head) && first_lines(head, is_block), "one whole number per line")
}

struct Lirs;

impl LineParser for Lirs {
    fn carries(&self) -> Carries {
        CARRIES
    }

    fn unit_bytes(&self) -> u64 {
        BLOCK_BYTES
    }

    fn note(&self) -> Option<String> {
        let note = "the numbers are read as blocks, numbered in order of first touch: neighbours are unknown; if they \
        are byte offsets, give the request size with --request-size (workload.request_size)";
        Some(note.to_owned())
    }

    #[inline]
    fn parse(&mut self, line: &[u8]) -> Result<Option<Record>, String> {
        let field = line.trim_ascii();
        if field.is_empty() || field == b"*" {
            return Ok(None);
        }
        Ok(Some(Record { offset: whole(field, "block")?, size: BLOCK_BYTES, ..Record::default() }))
    }
}
