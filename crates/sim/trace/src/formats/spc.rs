//! `spc`: "ASU,LBA,size,opcode,timestamp" per line, as in the traces of the UMass repository (Financial, WebSearch).
//!
//! Source: Storage Performance Council, SPC Trace File Format Specification, revision 1.0.1, 2002. The address counts
//! sectors of 512 bytes from the start of the application storage unit (ASU); the size is in bytes; R or W in either
//! case; seconds since the first request. Further fields may follow and are ignored. The ASU is the file.

use super::columns::Separator;
use super::fields::{no_count_of_bytes, Role, SECTOR_BYTES};
use super::fixed::Layout;
use crate::{Carries, Evidence, Format};

static LAYOUT: Layout = Layout {
    columns: &[
        ("ASU", Role::File),
        ("LBA", Role::Address(SECTOR_BYTES)),
        ("size", Role::Size(1)),
        ("opcode", Role::Op { scsi: false }),
        ("timestamp", Role::Time(1_000_000_000)),
    ],
    separator: Separator::COMMA,
    more: true,
};

pub(crate) const FORMAT: Format = Format {
    name: "spc",
    summary: "CSV ASU, LBA, size, opcode, timestamp; 512-byte sectors, s; the ASU is the file",
    source: "Storage Performance Council, trace file format 1.0.1",
    carries: Carries { files: true, ..Carries::BLOCKS },
    detect,
    open: |source| LAYOUT.open(source),
};

fn detect(head: &[u8]) -> Option<Evidence> {
    let form = "five or more columns: a number, sectors not all multiples of 512, bytes, R or W, seconds";
    let evidence = LAYOUT.detect(head, form)?;
    let offsets = || LAYOUT.records(head).map(|record| record.offset);
    let in_sectors = offsets().any(no_count_of_bytes) || offsets().all(|offset| offset == 0);
    (evidence.mark || in_sectors).then_some(evidence)
}
