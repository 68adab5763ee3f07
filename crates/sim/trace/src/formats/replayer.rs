//! `replayer`: "time device offset size read" per line, the input of the trace replayers of flash-array studies.
//!
//! Source: Hao et al., LinnOS, OSDI 2020, and Li et al., IODA, SOSP 2021: the descriptions of their replayers.
//! Milliseconds; offset and size in bytes; 1 reads, 0 writes. The device is the file. DiskSim's ASCII format looks the
//! same but counts in blocks. They are distinguished by whether all offsets and sizes are multiples of 512, as those in
//! bytes are.

use super::columns::{spaced, Separator};
use super::fields::{Role, SECTOR_BYTES};
use super::fixed::Layout;
use super::lines_of;
use crate::number::whole;
use crate::{Carries, Evidence, Format};

static LAYOUT: Layout = Layout {
    columns: &[
        ("time", Role::Time(1_000_000)),
        ("device", Role::File),
        ("offset", Role::Address(1)),
        ("size", Role::Size(1)),
        ("read", Role::OpDigit(b'1')),
    ],
    separator: Separator::Space,
    more: false,
};

pub(crate) const FORMAT: Format = Format {
    name: "replayer",
    summary: "\"time device offset size read\" per line, ms, bytes; the device is the file",
    source: "Hao et al., LinnOS, OSDI 2020",
    carries: Carries { files: true, ..Carries::BLOCKS },
    detect,
    open: |source| LAYOUT.open(source),
};

fn detect(head: &[u8]) -> Option<Evidence> {
    let form = "five columns, times with a decimal point, addresses and sizes multiples of 512, 0 or 1";
    LAYOUT.detect(head, form).filter(|_| in_bytes(head) == Some(true))
}

/// Whether the third and fourth columns of the complete lines of `head` are in bytes. `None` if no line has a time with
/// a decimal point before them: five whole numbers could be of any format.
pub(super) fn in_bytes(head: &[u8]) -> Option<bool> {
    let multiple = |field: &[u8]| whole(field, "").is_ok_and(|value| value % SECTOR_BYTES == 0);
    let (mut point, mut bytes) = (false, true);
    for line in lines_of(head) {
        let mut fields = spaced(line);
        let Some(time) = fields.next() else { continue };
        point |= time.contains(&b'.');
        bytes &= fields.skip(1).take(2).all(multiple);
    }
    point.then_some(bytes)
}
