//! `u32`: block numbers, 32 bits each, little endian, and nothing else.
//!
//! The simplest form in which block traces are published; it has no specification. The numbers tell nothing about
//! distance on disk unless their author says so, so they are objects; their size of 4 KiB is nominal. The format has no
//! magic number. It is detected last, if there are at least [`RECOGNISED_MIN`] numbers, some bytes are zero (text has
//! none), and all numbers are below 2^28, which is unlikely for arbitrary bytes.

use super::bytes::u32_at;
use crate::packed::{PackedReader, RecordParser};
use crate::{Carries, Evidence, Format, Record};

const RECORD_BYTES: usize = 4;
/// Nominal size of a block, which converts counts to bytes.
const BLOCK_BYTES_NOMINAL: u64 = 4096;
/// Numbers within a tebibyte are detected; larger ones can be read if the format is named.
const BLOCK_MAX: u32 = 1 << 28;
/// The format of shorter files must be named. A guess.
const RECOGNISED_MIN: usize = 64;

const CARRIES: Carries = Carries { objects: true, ..Carries::NOTHING };

pub(crate) const FORMAT: Format = Format {
    name: "u32",
    summary: "binary block numbers, 4 bytes each, little endian",
    source: "in common use",
    carries: CARRIES,
    detect,
    open: |source| Ok(Box::new(PackedReader::new(source, U32))),
};

fn detect(head: &[u8]) -> Option<Evidence> {
    let below = head.chunks_exact(RECORD_BYTES).all(|bytes| u32_at(bytes, 0) < BLOCK_MAX);
    let numbers = head.len() >= RECOGNISED_MIN * RECORD_BYTES && below && memchr::memchr(0, head).is_some();
    Evidence::form(numbers, "binary numbers of 32 bits below 2^28")
}

struct U32;

impl RecordParser for U32 {
    const RECORD_BYTES: usize = RECORD_BYTES;

    fn carries(&self) -> Carries {
        CARRIES
    }

    fn unit_bytes(&self) -> u64 {
        BLOCK_BYTES_NOMINAL
    }

    #[inline]
    fn parse(&mut self, bytes: &[u8]) -> Result<Option<Record>, String> {
        Ok(Some(Record { offset: u32_at(bytes, 0).into(), size: BLOCK_BYTES_NOMINAL, ..Record::default() }))
    }
}
