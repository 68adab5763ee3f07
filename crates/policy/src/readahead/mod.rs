//! Read-ahead: what to fetch beyond what has been asked for, from the requests alone.
//!
//! A read-ahead sees each request at its level as a run of consecutive blocks of one file, with how each block was
//! found, and answers with runs to prefetch. It names blocks by their place in the file, so that it can name blocks
//! that nobody has asked for yet; the level passes over what is cached, under way or beyond the end, finds frames
//! (the [`Replacement`] chooses the victims), and joins what is contiguous with the demand into
//! one request. It is told of prefetched blocks that leave unused, and of those that were waited for.
//!
//! One file each, which holds its row of [`crate::registry`]. An algorithm that also chooses victims (SARC) implements both traits
//! on one type: [`Integrated`].

pub(crate) mod amp;
mod cached_file;
pub(crate) mod competitive;
mod depth;
mod fault_watch;
mod faults;
pub(crate) mod ffs;
pub(crate) mod fixed_depth;
mod folios;
pub(crate) mod fsspec_readahead;
mod holes;
pub(crate) mod innodb;
mod kernel_windows;
pub(crate) mod linux;
pub(crate) mod linux_2_6;
pub(crate) mod linux_2_6_10;
pub(crate) mod linux_2_6_16;
pub(crate) mod mountpoint_s3;
pub(crate) mod obl;
pub(crate) mod oracle_depth;
pub(crate) mod postgres;
mod pressure;
pub(crate) mod ra;
mod ramp;
pub(crate) mod recent;
pub(crate) mod rocksdb;
mod rows;
pub(crate) mod sarc;
mod size;
pub(crate) mod stride;
pub(crate) mod zfs;

use std::sync::Arc;

use headstart_types::{Block, Disk, DriveFacts, Nanos};

pub use amp::Amp;
pub use cached_file::CachedFile;
pub use competitive::{Competitive, CompetitiveSetting};
pub use depth::{CompetitiveDepth, SeekWatch, Seeks};
pub use fault_watch::{FaultTotals, FaultWatch, FileKey, FLOOR_BYTES, PART_BYTES};
pub use ffs::Ffs;
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

use crate::{Replacement, Space};

/// State is kept for so many files (or open files: file and client) unless a key says otherwise.
pub(crate) const FILES: u32 = 65_536;

/// A request as a level sees it: `count` consecutive blocks of `file`, from `first`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asked {
    /// File, device, or 0 where the trace tells none apart.
    pub file: u32,
    /// First block, counted from the start of the file.
    pub first: u64,
    /// How many, at least 1.
    pub count: u32,
    /// Who asks: a process at the first level, a level above at others.
    pub client: u32,
    /// It ends before its last block does: a request in bytes, at the first level.
    pub ends_inside: bool,
}

/// The `client` of a block that comes from the level above, which has evicted it: nobody has asked for it.
pub const NOBODY: u32 = u32::MAX;

impl Asked {
    /// The block after the last; at the end of the number space, the last number.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.first.saturating_add(u64::from(self.count))
    }
}

/// How a block of a request was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// Resident, and asked for before (or never prefetched).
    Ready,
    /// Resident, prefetched, and asked for the first time: a prefetch that has paid.
    ReadyPrefetched,
    /// On its way for another request.
    Unready,
    /// Prefetched, on its way, and asked for the first time: a prefetch that comes late.
    UnreadyPrefetched,
    /// Neither: it will be fetched on demand.
    Absent,
}

impl Found {
    /// Cached or on its way.
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
    /// How many; none is allowed and means nothing.
    pub count: u32,
}

impl Run {
    /// The blocks of `file` in `first..end`, as many as a run can hold.
    #[must_use]
    pub fn between(file: u32, first: u64, end: u64) -> Self {
        Run { file, first, count: u32::try_from(end.saturating_sub(first)).unwrap_or(u32::MAX) }
    }

    /// The block after the last; at the end of the number space, the last number.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.first.saturating_add(u64::from(self.count))
    }
}

/// What a read-ahead may look at beside the request.
pub trait Cached {
    /// Whether the block is resident or on its way. False beyond the end.
    fn is_cached(&self, file: u32, index: u64) -> bool;

    /// Whether the block is resident.
    fn is_resident(&self, file: u32, index: u64) -> bool;

    /// Blocks of the file (of the device, where there are no files); `None` where that is not known.
    fn file_blocks(&self, file: u32) -> Option<u64>;

    /// Frames of the level.
    fn frames(&self) -> u32;

    /// See [`Space::contiguous`](crate::Space::contiguous).
    fn contiguous(&self, file: u32, index: u64, most: u64) -> u64 {
        self.file_blocks(file).map_or(most, |blocks| blocks.saturating_sub(index).min(most))
    }

    /// See [`Space::mapped_by`](crate::Space::mapped_by).
    fn mapped_by(&self, _file: u32, _index: u64) -> Option<(u32, u64)> {
        None
    }

    /// First sector of a block on its disk; `None` where that is not known.
    fn sector(&self, _file: u32, _index: u64) -> Option<u64> {
        None
    }
}

/// What a host tells about the level that a read-ahead is built for.
#[derive(Debug, Clone)]
pub struct ReadAheadContext {
    /// Bytes of a block, at least 1.
    pub block_bytes: u64,
    /// Frames of the level, at least 1.
    pub frames: u32,
    /// What is known of the disks below; `None` where they have no arms, or where no row [`Needs`] it.
    pub drive: Option<Arc<DriveFacts>>,
    /// By client: the streams that it is going to read; `None` where that is not known, or where no row [`Needs`] it.
    pub future: Option<Arc<[Vec<Stream>]>>,
}

/// A read-ahead policy. Deterministic, without a clock of its own: `now` comes from the host and never decreases.
pub trait ReadAhead: Send {
    /// A request has been looked up: `found[i]` is how block `asked.first + i` was found. Appends runs to prefetch,
    /// in the order in which they are to be issued. It may name blocks of the request itself or cached ones: the
    /// level passes over them.
    fn asked(&mut self, now: Nanos, asked: &Asked, found: &[Found], cached: &dyn Cached, prefetch: &mut Vec<Run>);

    /// A block has left the cache; `unused`: it had been prefetched and never asked for.
    fn evicted(&mut self, _file: u32, _index: u64, _unused: bool) {}

    /// The replacement has chosen a prefetched block that has never been asked for: whether it stays for now. It then counts
    /// as just inserted, and another victim is chosen. The host asks until the answer is no, so a block must not be spared
    /// for ever.
    fn spares(&mut self, _file: u32, _index: u64) -> bool {
        false
    }

    /// The disk has fetched `block`: after `asked`, in the order of service. Blocks of one I/O come one by one at one
    /// instant. Not told of blocks that come from elsewhere than a disk.
    fn fetched(&mut self, _now: Nanos, _disk: Disk, _block: Block, _space: &dyn Space) {}

    /// One request to what is below has so many blocks at most, at least 1: see [`crate::Policy::order_max`].
    fn order_max(&self) -> u32 {
        u32::MAX
    }

    /// Whether each block that it names is looked up when its turn comes, as cache simulators without time do: one that the
    /// fetches before it have evicted is then fetched again. Else it is passed over. Never changes.
    fn one_by_one(&self) -> bool {
        false
    }

    /// How many things it keeps in mind: files, streams, ranges, reads under way, marks, blocks. However many requests
    /// of however many files there are, it is bounded by the keys and the frames.
    fn remembered(&self) -> usize {
        0
    }
}

/// A read-ahead that is its own replacement: one state, seen through both traits.
pub trait Integrated: ReadAhead + Replacement {
    /// `block` is the block at `index` of `file`. The host says so before the first `inserted`, `referenced` or
    /// `victim` that concerns the block; saying it again changes nothing.
    fn placed(&mut self, block: Block, file: u32, index: u64);
}

/// No read-ahead.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoReadAhead;

impl ReadAhead for NoReadAhead {
    fn asked(&mut self, _: Nanos, _: &Asked, _: &[Found], _: &dyn Cached, _: &mut Vec<Run>) {}
}
