//! The model's input: the file system, the disk, the work.

use headstart_types::{Bytes, KeyError};

/// All parameters except the seek curve, which [`Seeks`](super::Seeks) holds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Parameters {
    pub file_system: FileSystem,
    pub disk: Disk,
    pub work: Work,
}

/// The file system (Table 1 of the paper).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FileSystem {
    /// Bytes of a block, at least 4. A pointer in an indirect block takes 4 bytes, as in FFS.
    pub block_bytes: u64,
    /// Blocks whose addresses are in the inode; the next ones need an indirect block.
    pub direct_blocks: u64,
    /// Bytes that are contiguous on disk, a multiple of the block.
    pub cluster_bytes: u64,
    /// Allocation unit of the last block of a file without indirect blocks; divides the block.
    pub fragment_bytes: u64,
    /// The read-ahead.
    pub prefetch: Prefetch,
    /// With [`Form::Tables`]: the first block after an indirect block is a separate disk request. Inferred from Table
    /// 3, where 128 KB need 7 requests; plain doubling gives 6.
    pub first_alone: bool,
    /// Time of a system call, in nanoseconds: a look-up in the cache.
    pub system_call_ns: f64,
    /// Time to copy 1024 bytes from the cache to the application, in nanoseconds.
    pub copy_ns_per_kib: f64,
    /// The rules by which the file is read.
    pub form: Form,
}

/// The read-ahead of the file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prefetch {
    /// None: each disk request is one block.
    Off,
    /// Disk requests of `first_bytes`, twice that, and so on to `limit_bytes`, within a cluster.
    Doubling {
        /// The first disk request of a file, a multiple of the block.
        first_bytes: u64,
        /// The largest, at least `first_bytes`.
        limit_bytes: u64,
    },
}

/// The rules by which files are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// As in the paper's tables: disk requests that double; two system calls for each of them and one copy of a block
    /// per file; streams take turns, so that each waits for the costs of all. Fitted.
    Tables,
    /// As 4.4BSD's code reads, with the order of a CLOOK queue: see `bsd.rs`. A system call per request of the
    /// application, and a copy of every byte, while the disk works for any stream that waits. Our addition.
    Bsd,
}

/// The disk (section 4.2 of the paper).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Disk {
    /// Fixed time of a request that needs the media, in nanoseconds.
    pub miss_overhead_ns: f64,
    /// Fixed time of a request that the disk's cache serves. The paper has one number for both.
    pub hit_overhead_ns: f64,
    /// Time of a revolution, in nanoseconds; a request to the media waits half of it.
    pub revolution_ns: f64,
    /// Media rate in bytes per second; may be infinite. `DiskTR`.
    pub disk_bytes_per_second: f64,
    /// The same along a track, without head and cylinder switches. Only [`Form::Bsd`] uses this and the next.
    pub track_bytes_per_second: f64,
    /// Share by which the fastest zone is faster, and the slowest slower; below 1.
    pub rate_spread: f64,
    /// Rate from the disk's cache to the host, in bytes per second; may be infinite. `BusTR`.
    pub bus_bytes_per_second: f64,
    /// Maximum number of streams for which the disk's cache reads ahead; with more it helps none.
    pub cache_segments: u32,
    /// Whether the disk reads ahead at all.
    pub read_ahead: bool,
    /// Whether it only reads ahead after a request that continues an earlier one, so not after the first of a
    /// contiguous run. Only [`Form::Bsd`] uses it.
    pub read_ahead_on_sequence: bool,
    /// Whether it reads ahead while its controller processes the next request, including other streams'. Only
    /// [`Form::Bsd`] uses it.
    pub read_during_overhead: bool,
    /// The order of the driver's queue.
    pub scheduler: Scheduler,
    /// Whether fixed times of several streams overlap and only transfers take turns: flash.
    pub parallel: bool,
}

/// The order of the driver's queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheduler {
    /// Upward, then back to the lowest request.
    Clook,
    /// Upward to the last cylinder, then back to the first: a full stroke per round.
    Cscan,
    /// First come, first served.
    Fcfs,
}

/// The workload (Table 2 of the paper).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Work {
    /// Files read concurrently, each by its own process; at least 1. n.
    pub streams: u32,
    /// Bytes of a file, all of which are read; at least 1.
    pub file_bytes: u64,
    /// Bytes of an application's request; at least 1.
    pub request_bytes: u64,
    /// Think time after each request, in nanoseconds.
    pub think_ns: f64,
    /// For one stream: the share of files before which the arm is elsewhere, 0 to 1. In the tables the arm is there, 0;
    /// a process that reads one file after another finds it at the previous file.
    pub lone_seek: f64,
}

impl Parameters {
    /// Checks the assumptions of the equations. Keys are those of Python's `headstart.model.file_system`.
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
            return Err(KeyError::new("lone_seek", format!("{} is not a share", work.lone_seek), "0 to 1"));
        }
        Ok(())
    }
}

/// A larger number of streams is an error in units.
const STREAMS_MAX: u64 = 1 << 16;
/// 64 TiB: sums of times stay exact to the nanosecond.
const FILE_BYTES_MAX: u64 = 1 << 46;
/// Maximum size of a block, a cluster or a read-ahead.
const BLOCK_BYTES_MAX: u64 = 1 << 30;

impl FileSystem {
    /// Number of block addresses in an indirect block.
    #[must_use]
    pub const fn pointers(&self) -> u64 {
        self.block_bytes / 4
    }

    /// The whole blocks of a file of `file_bytes`, and the bytes of the fragment after them. A file with an indirect
    /// block only has whole blocks.
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
        if self.fragment_bytes == 0 || !block.is_multiple_of(self.fragment_bytes) {
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
            let problem = format!("a revolution of {} ns is out of range", self.revolution_ns);
            return Err(KeyError::new("rpm", problem, "revolutions per minute, more than 0"));
        }
        rate("disk_rate", self.disk_bytes_per_second)?;
        rate("disk_rate", self.track_bytes_per_second)?;
        if !(0.0..1.0).contains(&self.rate_spread) {
            return Err(KeyError::new("rate_spread", format!("{} is not a share", self.rate_spread), "0 to below 1"));
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
    if bytes != 0 && bytes.is_multiple_of(block) && bytes <= BLOCK_BYTES_MAX {
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
