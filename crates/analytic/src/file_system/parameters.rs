//! The model's input: the file system, the disk, the work.

use headstart_types::{Bytes, KeyError};

/// All parameters but the seek curve, which [`Seeks`](super::Seeks) holds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Parameters {
    /// The file system.
    pub file_system: FileSystem,
    /// The disk.
    pub disk: Disk,
    /// What is read.
    pub work: Work,
}

/// The file system (Table 1 of the paper).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FileSystem {
    /// Bytes of a block, at least 4. A pointer in an indirect block takes 4 bytes, as in FFS.
    pub block_bytes: u64,
    /// Blocks whose addresses stand in the inode; the next ones need an indirect block.
    pub direct_blocks: u64,
    /// Bytes that lie contiguously on disk, a multiple of the block.
    pub cluster_bytes: u64,
    /// The last block of a file without indirect blocks takes only so many of these; divides the block.
    pub fragment_bytes: u64,
    /// What is read ahead.
    pub prefetch: Prefetch,
    /// With [`Form::Tables`]: the first block after an indirect block is a disk request of its own. Inferred from Table 3,
    /// where 128 KB need 7 requests; doubling plainly gives 6.
    pub first_alone: bool,
    /// Time of a system call, in nanoseconds: finding out whether data are in the cache.
    pub system_call_ns: f64,
    /// Time to copy 1024 bytes from the cache to the application, in nanoseconds.
    pub copy_ns_per_kib: f64,
    /// By which rules the file is read.
    pub form: Form,
}

/// What the file system reads ahead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prefetch {
    /// Nothing: each disk request is one block.
    Off,
    /// Disk requests of `first_bytes`, twice that, and so on to `limit_bytes`, within a cluster.
    Doubling {
        /// The first disk request of a file, a multiple of the block.
        first_bytes: u64,
        /// The largest, at least `first_bytes`.
        limit_bytes: u64,
    },
}

/// By which rules files are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// As the paper's tables turn out: disk requests that double; two system calls for each of them and one copy of a block
    /// for each file; streams take turns, so that each waits for the costs of all. Fitted.
    Tables,
    /// As 4.4BSD's code reads, with the order of a CLOOK queue: see `bsd.rs`. A system call for each request of the
    /// application, a copy of every byte, while the disk works for any stream that waits. Our addition.
    Bsd,
}

/// The disk (section 4.2 of the paper).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Disk {
    /// Fixed time of a request that goes to the surface, in nanoseconds.
    pub miss_overhead_ns: f64,
    /// Fixed time of a request that the disk's cache serves. The paper has one number for both.
    pub hit_overhead_ns: f64,
    /// A turn, in nanoseconds; a request to the surface waits half of it.
    pub revolution_ns: f64,
    /// From the surface, in bytes a second; may be infinite. `DiskTR`.
    pub disk_bytes_per_second: f64,
    /// The same along a track, without switches of heads and cylinders. [`Form::Bsd`] alone asks for it and for the next.
    pub track_bytes_per_second: f64,
    /// By what share the fastest zone is faster, and the slowest slower; below 1.
    pub rate_spread: f64,
    /// From the disk's cache to the host, in bytes a second; may be infinite. `BusTR`.
    pub bus_bytes_per_second: f64,
    /// For so many streams the disk's cache reads ahead; with more it is of no use to any.
    pub cache_segments: u32,
    /// The disk reads ahead at all.
    pub read_ahead: bool,
    /// It does so only behind a request that goes on where an earlier one ended: the first of what lies together is
    /// followed by nothing. [`Form::Bsd`] alone asks.
    pub read_ahead_on_sequence: bool,
    /// It does so while its controller takes in the next request, of another stream too. [`Form::Bsd`] alone asks.
    pub read_during_overhead: bool,
    /// The order of the driver's queue.
    pub scheduler: Scheduler,
    /// Fixed times of several streams pass at once, only transfers take turns: flash.
    pub parallel: bool,
}

/// The order of the driver's queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheduler {
    /// Upward, then back to the lowest request.
    Clook,
    /// Upward to the last cylinder, then back to the first: a full stroke for each round.
    Cscan,
    /// First come, first served.
    Fcfs,
}

/// What is read (Table 2 of the paper).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Work {
    /// Files read at the same time, each by a process of its own; at least 1. n.
    pub streams: u32,
    /// Bytes of a file, all of them read; at least 1.
    pub file_bytes: u64,
    /// Bytes of a request of the application; at least 1.
    pub request_bytes: u64,
    /// What the application computes after each request, in nanoseconds.
    pub think_ns: f64,
    /// Of one stream: the share of files before which the arm is elsewhere, 0 to 1. In the tables the arm is there, 0; a
    /// process that reads one file after another finds it at the file before.
    pub lone_seek: f64,
}

impl Parameters {
    /// Checks what the equations rely on. Keys are those of Python's `headstart.model.file_system`.
    ///
    /// # Errors
    /// The first parameter out of range.
    #[inline]
    pub fn check(&self) -> Result<(), KeyError> {
        let Self { file_system, disk, work } = self;
        file_system.check()?;
        disk.check()?;
        in_range("streams", work.streams.into(), 1, STREAMS_MAX)?;
        in_range("file_size", work.file_bytes, 1, FILE_BYTES_MAX)?;
        in_range("request", work.request_bytes, 1, FILE_BYTES_MAX)?;
        duration("think", work.think_ns)?;
        if !(0.0..=1.0).contains(&work.lone_seek) {
            return Err(KeyError::new("lone_seek", format!("{} is no share", work.lone_seek), "0 to 1"));
        }
        Ok(())
    }
}

/// More streams than this are a mistake in units.
const STREAMS_MAX: u64 = 1 << 16;
/// 64 TiB: sums of times stay exact to the nanosecond.
const FILE_BYTES_MAX: u64 = 1 << 46;
/// A block, a cluster or a read-ahead.
const BLOCK_BYTES_MAX: u64 = 1 << 30;

impl FileSystem {
    /// Blocks whose addresses an indirect block holds.
    #[must_use]
    pub const fn pointers(&self) -> u64 {
        self.block_bytes / 4
    }

    /// The whole blocks of a file of `file_bytes`, and the bytes of the fragment behind them. A file with an indirect block
    /// has whole blocks alone.
    #[must_use]
    pub const fn blocks_of(&self, file_bytes: u64) -> (u64, u64) {
        let Self { block_bytes, fragment_bytes, direct_blocks, .. } = *self;
        if file_bytes > direct_blocks * block_bytes {
            return (file_bytes.div_ceil(block_bytes), 0);
        }
        (file_bytes / block_bytes, (file_bytes % block_bytes).div_ceil(fragment_bytes) * fragment_bytes)
    }

    fn check(&self) -> Result<(), KeyError> {
        let block = self.block_bytes;
        in_range("block_size", block, 8, BLOCK_BYTES_MAX)?;
        in_range("direct_blocks", self.direct_blocks, 0, 1 << 32)?;
        whole_blocks("cluster", self.cluster_bytes, block)?;
        if self.fragment_bytes == 0 || block % self.fragment_bytes != 0 {
            let problem = format!("{} does not divide the block of {}", Bytes(self.fragment_bytes), Bytes(block));
            return Err(KeyError::new("fragment", problem, "a divisor of the block's size"));
        }
        if let Prefetch::Doubling { first_bytes, limit_bytes } = self.prefetch {
            whole_blocks("prefetch_first", first_bytes, block)?;
            whole_blocks("prefetch_limit", limit_bytes, block)?;
            if first_bytes > limit_bytes {
                let problem = format!("{}, which is above prefetch_limit", Bytes(first_bytes));
                return Err(KeyError::new("prefetch_first", problem, format!("at most {}", Bytes(limit_bytes))));
            }
        }
        duration("system_call", self.system_call_ns)?;
        duration("copy_per_kib", self.copy_ns_per_kib)
    }
}

impl Disk {
    fn check(&self) -> Result<(), KeyError> {
        duration("overhead", self.miss_overhead_ns)?;
        duration("hit_overhead", self.hit_overhead_ns)?;
        if !(0.0..=3.6e12).contains(&self.revolution_ns) {
            let problem = format!("a turn of {} ns is out of range", self.revolution_ns);
            return Err(KeyError::new("rpm", problem, "turns a minute, more than 0"));
        }
        rate("disk_rate", self.disk_bytes_per_second)?;
        rate("disk_rate", self.track_bytes_per_second)?;
        if !(0.0..1.0).contains(&self.rate_spread) {
            return Err(KeyError::new("rate_spread", format!("{} is no share", self.rate_spread), "0 to below 1"));
        }
        rate("bus_rate", self.bus_bytes_per_second)
    }
}

fn in_range(key: &str, value: u64, least: u64, most: u64) -> Result<(), KeyError> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(KeyError::new(key, format!("{value} is out of range"), format!("{least} to {most}")))
}

fn whole_blocks(key: &str, bytes: u64, block: u64) -> Result<(), KeyError> {
    if bytes != 0 && bytes % block == 0 && bytes <= BLOCK_BYTES_MAX {
        return Ok(());
    }
    let problem = format!("{} is not a whole number of blocks of {}", Bytes(bytes), Bytes(block));
    Err(KeyError::new(key, problem, format!("a multiple of the block's size, up to {}", Bytes(BLOCK_BYTES_MAX))))
}

fn duration(key: &str, ns: f64) -> Result<(), KeyError> {
    // An hour.
    if (0.0..=3.6e12).contains(&ns) {
        return Ok(());
    }
    Err(KeyError::new(key, format!("{ns} ns is out of range"), "a time from 0 to an hour"))
}

fn rate(key: &str, bytes_per_second: f64) -> Result<(), KeyError> {
    if bytes_per_second > 0.0 {
        return Ok(());
    }
    Err(KeyError::new(key, format!("{bytes_per_second} bytes a second"), "more than 0"))
}
