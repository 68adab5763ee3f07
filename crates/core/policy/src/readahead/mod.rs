//! Read-ahead: prefetching beyond the requested blocks, from the requests alone.
//!
//! A read-ahead sees each request at its level as a run of consecutive blocks of one file, with how each block was
//! found, and answers with runs to prefetch. It names blocks by their place in the file, so it can name blocks that
//! have never been requested. The level skips blocks that are cached, in flight or beyond the end, finds frames (the
//! [`Replacement`] chooses the victims), and joins blocks contiguous with the demand into one request. It reports
//! prefetched blocks that are evicted unused, and those that were waited for.
//!
//! One file each, which holds its row of [`crate::registry`]. An algorithm that also chooses victims (SARC) implements
//! both traits on one type: [`Integrated`].

mod amp;
mod cached_file;
mod competitive;
mod depth;
mod fault_watch;
mod faults;
mod ffs;
mod fixed_depth;
mod folios;
mod fsspec_readahead;
mod holes;
mod innodb;
mod kernel_windows;
mod linux;
mod linux_2_6;
mod linux_2_6_10;
mod linux_2_6_16;
mod mountpoint_s3;
mod obl;
mod oracle_depth;
mod postgres;
mod pressure;
mod ra;
mod ramp;
pub(crate) mod recent;
mod rocksdb;
mod rows;
mod sarc;
mod size;
mod stride;
mod zfs;

use std::sync::Arc;

use headstart_types::{Block, Disk, DriveFacts, Nanos};

pub use amp::Amp;
pub use cached_file::CachedFile;
pub use competitive::{Competitive, CompetitiveSetting};
pub use depth::{CompetitiveDepth, SeekWatch, Seeks};
pub use fault_watch::{FaultTotals, FaultWatch, FileKey, FLOOR_BYTES, PART_BYTES};
pub use ffs::{Ffs, FfsKeys};
pub use fixed_depth::FixedDepth;
pub use fsspec_readahead::FsspecReadahead;
pub use innodb::InnoDb;
pub use linux::{Linux, Version};
pub use linux_2_6::{Linux26, Trigger};
pub use linux_2_6_10::Linux2610;
pub use linux_2_6_16::Linux2616;
pub use mountpoint_s3::{MountpointS3, MountpointSetting};
pub use obl::{Obl, When};
pub use oracle_depth::{streams, OracleDepth, Stream};
pub use postgres::Postgres;
pub use ra::{Adaptive, Ra};
pub use rocksdb::RocksDb;
pub use rows::{BuildReadAhead, Make, Needs, ReadsAhead};
pub use sarc::{Sarc, SarcSetting};
pub use size::Size;
pub use stride::Stride;
pub use zfs::{Zfs, ZfsSetting};

use crate::row::PolicyRow;
use crate::{BlockMap, Replacement};

/// All read-aheads.
pub(crate) static ROWS: &[&PolicyRow] = &[
    &obl::ROW,
    &ra::ROW,
    &linux_2_6::ROW,
    &sarc::ROW,
    &amp::ROW,
    &linux::ROW,
    &linux_2_6_10::ROW,
    &linux_2_6_16::ROW,
    &fixed_depth::ROW,
    &competitive::ROW,
    &oracle_depth::ROW,
    &ffs::ROW,
    &stride::ROW,
    &rocksdb::ROW,
    &zfs::ROW,
    &innodb::ROW,
    &postgres::ROW,
    &mountpoint_s3::ROW,
    &fsspec_readahead::ROW,
];

/// Default number of files (or open files: file and client) with state.
pub(crate) const FILES: u32 = 65_536;

/// A request as a level sees it: `count` consecutive blocks of `file`, from `first`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asked {
    /// File or device; 0 if the trace does not distinguish them.
    pub file: u32,
    /// First block, counted from the start of the file.
    pub first: u64,
    /// Number of blocks, at least 1.
    pub count: u32,
    /// The requester: a process at the first level, a level above at others.
    pub client: u32,
    /// Whether it ends inside its last block: a request in bytes, at the first level.
    pub ends_inside: bool,
}

/// The `client` of a block demoted by the level above, which no process has requested.
pub const NO_CLIENT: u32 = u32::MAX;

impl Asked {
    /// The block after the last one, saturating at the largest number.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.first.saturating_add(u64::from(self.count))
    }
}

/// How a block of a request was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// Resident, and requested before (or never prefetched).
    Ready,
    /// Resident, prefetched, and requested for the first time: a useful prefetch.
    ReadyPrefetched,
    /// In flight for another request.
    Unready,
    /// Prefetched, in flight, and requested for the first time: a late prefetch.
    UnreadyPrefetched,
    /// Neither resident nor in flight: it is fetched on demand.
    Absent,
}

impl Found {
    /// Whether it is cached or in flight.
    #[must_use]
    pub fn is_hit(self) -> bool {
        self != Found::Absent
    }
}

/// Consecutive blocks of one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// The file.
    pub file: u32,
    /// First block.
    pub first: u64,
    /// Number of blocks; 0 is allowed and has no effect.
    pub count: u32,
}

impl Run {
    /// The blocks of `file` in `first..end`, or as many of them as a run can hold.
    #[must_use]
    pub fn between(file: u32, first: u64, end: u64) -> Self {
        Run { file, first, count: u32::try_from(end.saturating_sub(first)).unwrap_or(u32::MAX) }
    }

    /// The block after the last one, saturating at the largest number.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.first.saturating_add(u64::from(self.count))
    }
}

/// What a read-ahead may look up besides the request.
pub trait Cached {
    /// Whether the block is resident or in flight. False beyond the end.
    fn is_cached(&self, file: u32, index: u64) -> bool;

    /// Whether the block is resident.
    fn is_resident(&self, file: u32, index: u64) -> bool;

    /// Blocks of the file, or of the device if there are no files; `None` if unknown.
    fn file_blocks(&self, file: u32) -> Option<u64>;

    /// Frames of the level.
    fn frames(&self) -> u32;

    /// See [`BlockMap::contiguous`](crate::BlockMap::contiguous).
    fn contiguous(&self, file: u32, index: u64, most: u64) -> u64 {
        self.file_blocks(file).map_or(most, |blocks| blocks.saturating_sub(index).min(most))
    }

    /// See [`BlockMap::mapped_by`](crate::BlockMap::mapped_by).
    fn mapped_by(&self, _file: u32, _index: u64) -> Option<(u32, u64)> {
        None
    }

    /// First sector of a block on its disk; `None` if unknown.
    fn sector(&self, _file: u32, _index: u64) -> Option<u64> {
        None
    }
}

/// What a host tells about the level for which a read-ahead is built.
#[derive(Debug, Clone)]
pub struct ReadAheadContext {
    /// Bytes of a block, at least 1.
    pub block_bytes: u64,
    /// Frames of the level, at least 1.
    pub frames: u32,
    /// Facts of the disks below; `None` if they have no arms, or if the row does not [need](Needs) them.
    pub drive: Option<Arc<DriveFacts>>,
    /// For each client: the streams that it will read; `None` if unknown, or if the row does not [need](Needs) them.
    pub future: Option<Arc<[Vec<Stream>]>>,
}

/// A read-ahead policy. Deterministic, without a clock of its own: `now` comes from the host and never decreases.
pub trait ReadAhead: Send {
    /// Handles a request that has been looked up: `found[i]` is how block `asked.first + i` was found. Appends runs to
    /// prefetch in the order in which they are to be issued. They may include blocks of the request itself or cached
    /// ones: the level skips those.
    fn asked(&mut self, now: Nanos, asked: &Asked, found: &[Found], cached: &dyn Cached, prefetch: &mut Vec<Run>);

    /// A block has left the cache; `unused`: it was prefetched and never requested.
    fn evicted(&mut self, _file: u32, _index: u64, _unused: bool) {}

    /// The replacement has chosen a prefetched block that was never requested. Returns whether to keep it for now; it
    /// then counts as just inserted, and another victim is chosen. The host asks until the answer is no, so a block
    /// must not be spared for ever.
    fn spares(&mut self, _file: u32, _index: u64) -> bool {
        false
    }

    /// The disk has fetched `block`. Called after `asked`, in the order of service; the blocks of one I/O are reported
    /// one by one at one instant. Not called for blocks that do not come from a disk.
    fn fetched(&mut self, _now: Nanos, _disk: Disk, _block: Block, _space: &dyn BlockMap) {}

    /// Maximum number of blocks of one request to the level or device below, at least 1; see
    /// [`crate::Policy::order_max`].
    fn order_max(&self) -> u32 {
        u32::MAX
    }

    /// Whether each named block is looked up when its turn comes, as in cache simulators without time: a block evicted
    /// by the preceding fetches is then fetched again. Otherwise it is skipped. Never changes.
    fn one_by_one(&self) -> bool {
        false
    }

    /// Number of entries kept: files, streams, ranges, reads in flight, marks, blocks. It is bounded by the keys and
    /// the frames, regardless of the requests and files.
    fn remembered(&self) -> usize {
        0
    }
}

/// A read-ahead that is its own replacement: one state, seen through both traits.
pub trait Integrated: ReadAhead + Replacement {
    /// Announces that `block` is the block at `index` of `file`. The host calls it before the first `inserted`,
    /// `referenced` or `victim` for the block; repeated calls change nothing.
    fn placed(&mut self, block: Block, file: u32, index: u64);
}

/// No read-ahead.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoReadAhead;

impl ReadAhead for NoReadAhead {
    fn asked(&mut self, _: Nanos, _: &Asked, _: &[Found], _: &dyn Cached, _: &mut Vec<Run>) {}
}
