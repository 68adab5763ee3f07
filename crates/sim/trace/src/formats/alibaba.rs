//! `alibaba`: "device_id,opcode,offset,length,timestamp" per line, as in the block traces of Alibaba Cloud.
//!
//! Source: Li, Wang, Lee, Shi: "An in-depth analysis of cloud block storage workloads in large-scale production", IISWC
//! 2020, and the description of its traces. R or W; offset and length in bytes; microseconds since 1970. The device is
//! the file. The traces have no header; one with these names is skipped.

use super::columns::Separator;
use super::fields::Role;
use super::fixed::Layout;
use super::lines_of;
use crate::{Carries, Evidence, Format};

static LAYOUT: Layout = Layout {
    columns: &[
        ("device_id", Role::File),
        ("opcode", Role::Op { scsi: false }),
        ("offset", Role::Address(1)),
        ("length", Role::Size(1)),
        ("timestamp", Role::Time(1_000)),
    ],
    separator: Separator::COMMA,
    more: false,
};

pub(crate) const FORMAT: Format = Format {
    name: "alibaba",
    summary: "CSV device_id, opcode, offset, length, timestamp; bytes, us; the device is the file",
    source: "Li et al., Alibaba Cloud block traces, IISWC 2020",
    carries: Carries { files: true, ..Carries::BLOCKS },
    detect,
    open: |source| LAYOUT.open(source),
};

fn detect(head: &[u8]) -> Option<Evidence> {
    let evidence = LAYOUT.detect(head, "five columns: a number, R or W, bytes, bytes, whole microseconds")?;
    // Times in seconds have a fraction.
    let whole = lines_of(head).all(|line| !line.contains(&b'.'));
    (evidence.mark || whole).then_some(evidence)
}
