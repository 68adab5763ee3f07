//! `tencent`: "Timestamp,Offset,Size,IOType,VolumeID" per line, as in the block traces of Tencent Cloud.
//!
//! Source: Zhang et al., "OSCA: an online-model based cache allocation scheme in cloud block storage systems", USENIX
//! ATC 2020, and the description of its traces (SNIA IOTTA). Whole seconds since 1970; offset and size in sectors of
//! 512 bytes; 0 reads, 1 writes. The volume is the file. In an open loop, all requests of a second arrive at its start.
//! The traces have no header; one with these names is skipped. Five numbers, one of them 0 or 1, could be of any
//! format. A file without the header is taken as this format if its times are whole seconds of this century and its
//! offsets and sizes are not all multiples of 512, as those in bytes would be.

use super::columns::Separator;
use super::fields::{no_count_of_bytes, Role, SECTOR_BYTES};
use super::fixed::Layout;
use crate::{Carries, Evidence, Format};

const SECOND_NS: u64 = 1_000_000_000;

static LAYOUT: Layout = Layout {
    columns: &[
        ("Timestamp", Role::Time(SECOND_NS)),
        ("Offset", Role::Address(SECTOR_BYTES)),
        ("Size", Role::Size(SECTOR_BYTES)),
        ("IOType", Role::OpDigit(b'0')),
        ("VolumeID", Role::File),
    ],
    separator: Separator::COMMA,
    more: false,
};

pub(crate) const FORMAT: Format = Format {
    name: "tencent",
    summary: "CSV Timestamp, Offset, Size, IOType, VolumeID; s, 512-byte sectors; the volume is the file",
    source: "Zhang et al., OSCA, USENIX ATC 2020",
    carries: Carries { files: true, ..Carries::BLOCKS },
    detect,
    open: |source| LAYOUT.open(source),
};

/// 2001 to 2096, in seconds since 1970.
const CENTURY_NS: std::ops::Range<u64> = 1_000_000_000 * SECOND_NS..4_000_000_000 * SECOND_NS;

fn detect(head: &[u8]) -> Option<Evidence> {
    let form = "five columns: whole seconds since 1970, sectors, sectors, 0 or 1, a number";
    let evidence = LAYOUT.detect(head, form)?;
    let (mut whole_seconds, mut sectors) = (true, false);
    for record in LAYOUT.records(head) {
        whole_seconds &= record.time.0 % SECOND_NS == 0 && CENTURY_NS.contains(&record.time.0);
        sectors |= no_count_of_bytes(record.offset) || no_count_of_bytes(record.size);
    }
    (evidence.mark || whole_seconds && sectors).then_some(evidence)
}
