//! `disksim`: "time device block blocks flags" a line, DiskSim's default ASCII format.
//!
//! Source: Bucy, Schindler, Schlosser, Ganger: The DiskSim Simulation Environment, version 4.0, CMU-PDL-08-101, 2008,
//! section on input traces. Milliseconds; blocks of 512 bytes; flags in hexadecimal, of which bit 0 says
//! that it is a read. The device is the file.
//! Where all addresses and sizes at the start of the file are multiples of 512, we take them for bytes, that is for
//! the format `replayer`, which looks the same otherwise; a DiskSim trace of nothing but requests of 256 KiB and its
//! multiples must be named, and so must one of times without a decimal point.

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
    summary: "\"time device block blocks flags\" a line, ms, 512-byte blocks; the device is the file",
    source: "DiskSim 4.0, default ASCII format",
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
    let form = "five columns, times with a decimal point, not all addresses and sizes multiples of 512, flags";
    LAYOUT.detect(head, form).filter(|_| in_bytes(head) == Some(false))
}
