//! `disksim`: "time device block blocks flags" per line, DiskSim's default ASCII format.
//!
//! Source: Bucy, Schindler, Schlosser, Ganger: The DiskSim Simulation Environment, version 4.0, CMU-PDL-08-101, 2008,
//! section on input traces. Milliseconds; blocks of 512 bytes; hexadecimal flags, whose bit 0 marks a read. The device
//! is the file. If all addresses and sizes at the start of the file are multiples of 512, we take them as bytes, that
//! is as the format `replayer`, which otherwise looks the same. The format must be named for a DiskSim trace that only
//! has requests of multiples of 256 KiB, and for one whose times have no decimal point.

use super::columns::Separator;
use super::fields::{Role, SECTOR_BYTES};
use super::fixed::Layout;
use super::replayer::in_bytes;
use crate::{Carries, Evidence, Format};

static LAYOUT: Layout = Layout {
    columns: &[
        ("time", Role::Time(1_000_000)),
        ("device", Role::File),
        ("block", Role::Address(SECTOR_BYTES)),
        ("blocks", Role::Size(SECTOR_BYTES)),
        ("flags", Role::Flags),
    ],
    separator: Separator::Space,
    more: false,
};

pub(crate) const FORMAT: Format = Format {
    name: "disksim",
    summary: "\"time device block blocks flags\" per line, ms, 512-byte blocks; the device is the file",
    source: "DiskSim 4.0, default ASCII format",
    carries: Carries { files: true, ..Carries::BLOCKS },
    detect,
    open: |source| LAYOUT.open(source),
};

fn detect(head: &[u8]) -> Option<Evidence> {
    let form = "five columns, times with a decimal point, not all addresses and sizes multiples of 512, flags";
    LAYOUT.detect(head, form).filter(|_| in_bytes(head) == Some(false))
}
