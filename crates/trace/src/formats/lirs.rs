//! `lirs`: one block number a line, as in the traces that the LIRS authors hand out.
//!
//! Source: Jiang and Zhang, "LIRS: an efficient low inter-reference recency set replacement policy", SIGMETRICS 2002;
//! blocks of 8 KiB. A line "*" is a mark between phases and holds no reference; blank lines are passed over.
//! The published traces were renumbered in order of first touch: they say nothing about distance on disk, and so
//! nothing about sequential read-ahead.

use super::{first_lines, is_text};
use crate::lines::{LineParser, LineReader, Lines};
use crate::number::whole;
use crate::{Carries, Evidence, Format, Record};

/// Size of a block.
const BLOCK_BYTES: u64 = 8192;

const CARRIES: Carries = Carries {
    time: false,
    duration: false,
    think: false,
    processes: false,
    files: false,
    writes: false,
    addresses: false,
    objects: true,
};

pub(crate) const FORMAT: Format = Format {
    name: "lirs",
    summary: "one block number (8 KiB blocks) a line",
    source: "Jiang and Zhang, LIRS, SIGMETRICS 2002",
    carries: CARRIES,
    detect,
    open: |source| Ok(Box::new(LineReader::new(Lines::new(source), Lirs))),
};

fn detect(head: &[u8]) -> Option<Evidence> {
    let is_block = |line: &[u8]| line == b"*" || line.len() < 20 && line.iter().all(u8::is_ascii_digit);
    // Digits at its start do not make a text of a binary file.
    Evidence::form(is_text(head) && first_lines(head, is_block), "one whole number a line")
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
        let note = "the numbers are read as blocks, numbered in order of first touch: neighbours are unknown; \
                    if they are byte offsets, --request-size (workload.request_size) says so";
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
