//! `oracleGeneral`: binary records of 24 bytes, little endian: u32 time in seconds, u64 object, u32 size, i64 next
//! access.
//!
//! Source: libCacheSim's oracleGeneral format (Yang et al.). The next access is not read: headstart computes its own,
//! over the blocks that the run actually uses. Object traces commonly hold requests of size 0 (metadata, failed gets);
//! they are skipped and counted, as libCacheSim skips them by default. Cost: at least 40 million records per second
//! from an uncompressed file in memory.

use headstart_types::Nanos;

use super::bytes::{u32_at, u64_at};
use crate::packed::{PackedReader, RecordParser};
use crate::{Carries, Evidence, Format, Record};

pub(crate) const RECORD_BYTES: usize = 24;
/// Objects have individual sizes; this nominal size converts counts to bytes.
const OBJECT_BYTES_NOMINAL: u64 = 4096;

const CARRIES: Carries = Carries { time: true, objects: true, ..Carries::NOTHING };

pub(crate) const FORMAT: Format = Format {
    name: "oracleGeneral",
    summary: "binary, 24 bytes per record: time in s, object, size, next access",
    source: "libCacheSim",
    carries: CARRIES,
    detect,
    open: |source| Ok(Box::new(PackedReader::new(source, OracleGeneral))),
};

fn detect(head: &[u8]) -> Option<Evidence> {
    Evidence::form(
        plausible(head),
        "binary records of 24 bytes: the times do not decrease, the next access is later or never",
    )
}

/// Whether the first records are plausible: times do not decrease, and the next access is later or never.
fn plausible(head: &[u8]) -> bool {
    const NEXT_MAX: i64 = 1 << 40;
    let mut time_last = 0;
    let mut count = 0;
    for (index, bytes) in (0i64..).zip(head.chunks_exact(RECORD_BYTES)) {
        let time = u32_at(bytes, 0);
        let next = u64_at(bytes, 16) as i64;
        if time < time_last || !(next == -1 || next == i64::MAX || next > index && next < NEXT_MAX) {
            return false;
        }
        time_last = time;
        count += 1;
    }
    count > 0
}

struct OracleGeneral;

impl RecordParser for OracleGeneral {
    const RECORD_BYTES: usize = RECORD_BYTES;

    fn carries(&self) -> Carries {
        CARRIES
    }

    fn unit_bytes(&self) -> u64 {
        OBJECT_BYTES_NOMINAL
    }

    fn sizes_vary(&self) -> bool {
        true
    }

    #[inline]
    fn parse(&mut self, bytes: &[u8]) -> Result<Option<Record>, String> {
        let size = u64::from(u32_at(bytes, 12));
        let time = Nanos(u64::from(u32_at(bytes, 0)) * 1_000_000_000);
        Ok((size > 0).then(|| Record { time, offset: u64_at(bytes, 4), size, ..Record::default() }))
    }
}
