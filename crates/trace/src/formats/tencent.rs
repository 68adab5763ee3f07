//! `tencent`: "Timestamp,Offset,Size,IOType,VolumeID" a line, as in the block traces of Tencent Cloud.
//!
//! Source: Zhang et al., "OSCA: an online-model based cache allocation scheme in cloud block storage systems", USENIX
//! ATC 2020, and the description of its traces (SNIA IOTTA). Whole seconds since 1970; offset and size in sectors of
//! 512 bytes; 0 reads, 1 writes. The volume is the file. With an open loop, all requests of a second arrive at its
//! start. The traces have no header; one that repeats the names is passed over.

use super::columns::Separator;
use super::fields::{Role, SECTOR_BYTES};
use super::fixed::Layout;
use crate::{Carries, Format};

static LAYOUT: Layout = Layout {
    columns: &[
        ("Timestamp", Role::Time(1_000_000_000)),
        ("Offset", Role::Address(SECTOR_BYTES)),
        ("Size", Role::Size(SECTOR_BYTES)),
        ("IOType", Role::OpDigit(b'0')),
        ("VolumeID", Role::File),
    ],
    separator: Separator::COMMA,
    more: false,
    reorder: true,
};

pub(crate) const FORMAT: Format = Format {
    name: "tencent",
    summary: "CSV Timestamp, Offset, Size, IOType, VolumeID; s, 512-byte sectors; the volume is the file",
    source: "Zhang et al., OSCA, USENIX ATC 2020",
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
    detect: |name, head| LAYOUT.detect(name, head, None),
    open: |source| LAYOUT.open(source),
};
