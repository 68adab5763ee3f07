//! `mqsim`: "time device sector sectors read" per line, whole numbers, the input of the flash simulators MQSim and
//! SSDsim.
//!
//! Source: Tavakkol et al., "MQSim", FAST 2018, and Hu et al., SSDsim, ICS 2011: the descriptions of their ASCII
//! traces. Nanoseconds; sectors of 512 bytes; 1 reads, 0 writes. The device is the file. MQSim can be configured to
//! read a trace in another unit of time; the trace does not tell. DiskSim's format and `replayer` have the same columns
//! with times in milliseconds, which have a decimal point. If all addresses and sizes are multiples of 512 they may be
//! bytes: the format of such a trace must be named.

use super::columns::Separator;
use super::fields::{no_count_of_bytes, Role, SECTOR_BYTES};
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
    summary: "\"time device sector sectors read\" per line, whole ns, 512-byte sectors; the device is the file",
    source: "Tavakkol et al., MQSim, FAST 2018; Hu et al., SSDsim, ICS 2011",
    carries: Carries { files: true, ..Carries::BLOCKS },
    detect,
    open: |source| LAYOUT.open(source),
};

/// A thousand times what a device moves in a nanosecond: a trace with a higher rate is in a longer unit of time.
const BYTES_A_NS_MAX: u64 = 1_000;

fn detect(head: &[u8]) -> Option<Evidence> {
    let form = "five whole numbers: ns at a plausible rate of requests, sectors not all multiples of 512, 0 or 1";
    let evidence = LAYOUT.detect(head, form)?;
    let whole = lines_of(head).all(|line| !line.contains(&b'.'));
    let (mut sectors, mut bytes, mut count, mut first_ns, mut last_ns) = (false, 0u64, 0, u64::MAX, 0);
    for record in LAYOUT.records(head) {
        sectors |= no_count_of_bytes(record.offset) || no_count_of_bytes(record.size);
        bytes = bytes.saturating_add(record.size);
        (first_ns, last_ns) = (first_ns.min(record.time.0), last_ns.max(record.time.0));
        count += 1;
    }
    let can_be = count == 1 || bytes / BYTES_A_NS_MAX < last_ns.saturating_sub(first_ns);
    (whole && sectors && can_be).then_some(evidence)
}
