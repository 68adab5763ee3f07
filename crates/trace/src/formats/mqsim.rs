//! `mqsim`: "time device sector sectors read" a line, whole numbers, the input of the flash simulators MQSim and SSDsim.
//!
//! Source: Tavakkol et al., "MQSim", FAST 2018, and Hu et al., SSDsim, ICS 2011: the descriptions of their ASCII traces.
//! Nanoseconds; sectors of 512 bytes; 1 reads, 0 writes. The device is the file. MQSim can be told that a trace counts
//! in another unit of time; the trace does not say so.
//! DiskSim's format and that of `replayer` have the same columns with times in milliseconds, which have a decimal point.
//! Where all addresses and sizes are multiples of 512 they may count bytes: such a trace must be named.

use super::columns::Separator;
use super::fields::{Role, SECTOR_BYTES};
use super::fixed::Layout;
use super::lines_of;
use crate::{Carries, Evidence, Format};

static LAYOUT: Layout = Layout {
    columns: &[
        ("time", Role::Time(1)),
        ("device", Role::File),
        ("sector", Role::Address(SECTOR_BYTES)),
        ("sectors", Role::Size(SECTOR_BYTES)),
        ("read", Role::OpDigit(b'1')),
    ],
    separator: Separator::Space,
    more: false,
};

pub(crate) const FORMAT: Format = Format {
    name: "mqsim",
    summary: "\"time device sector sectors read\" a line, whole ns, 512-byte sectors; the device is the file",
    source: "Tavakkol et al., MQSim, FAST 2018; Hu et al., SSDsim, ICS 2011",
    carries: Carries {
        time: true,
        duration: false,
        think: false,
        processes: false,
        files: true,
        writes: true,
        addresses: true,
        objects: false,
    },
    detect,
    open: |source| LAYOUT.open(source),
};

fn detect(head: &[u8]) -> Option<Evidence> {
    let evidence = LAYOUT.detect(head, "five whole numbers, sectors not all multiples of 512, the last 0 or 1")?;
    let whole = lines_of(head).all(|line| !line.contains(&b'.'));
    let in_sectors = |bytes: u64| bytes / SECTOR_BYTES % SECTOR_BYTES != 0;
    let sectors = LAYOUT.records(head).any(|record| in_sectors(record.offset) || in_sectors(record.size));
    (whole && sectors).then_some(evidence)
}
