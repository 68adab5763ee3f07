//! Recordings (`.hints`): the pages that a command has read, in the order in which it read them.
//!
//! `headstart record` writes them, `headstart run` prefetches from them, and as the trace format `hints` they are input
//! to `simulate`, `compare` and `advise`. Files are identified by path, device, inode, size and modification time, so
//! that a later reader can check whether a recording is still valid. docs/hints-format.md specifies the format.
//!
//! Memory: 40 bytes per read; some 3 to 5 bytes in the file.

mod codec;
mod merge;
mod stale;

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::{Source, TraceError};

pub use codec::MAGIC;
pub use merge::merge;
pub use stale::{change, check, Change, Stale};

/// The version written, and the only one read.
pub const VERSION: u32 = 1;
/// Maximum number of files of a recording, and of processes.
pub const FILES_MAX: u64 = 1 << 22;
/// Maximum number of reads of a recording. They use 1.3 GB.
pub const READS_MAX: u64 = 1 << 25;

/// The reads of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recording {
    /// How it was recorded.
    pub about: About,
    /// The processes that read, in order of their first read.
    pub processes: Vec<RecordedProcess>,
    /// The files that were read, in order of their first read.
    pub files: Vec<RecordedFile>,
    /// Sorted by issue time.
    pub reads: Vec<Read>,
}

/// How a recording was made: the first line of the file, as JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    pub command: Vec<String>,
    /// The folder in which it ran.
    pub folder: String,
    /// When it was started, in seconds since 1970.
    pub recorded_at_s: u64,
    /// From the start of the command to its end.
    pub elapsed_ns: u64,
    /// Its exit status, or 128 and the number of the signal that ended it.
    pub exit_status: i32,
    /// The kernel's release.
    pub kernel: String,
    /// Bytes of a page, the unit of [`Read::start`] and [`Read::pages`].
    pub page_bytes: u64,
    /// Whether the caches were dropped before.
    pub cold: bool,
    /// Events dropped by the kernel: up to this many reads may be missing.
    pub lost_events: u64,
    /// Number of recordings that were merged into this one; 1 if it was recorded directly.
    pub recordings: u32,
}

/// A process of the command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RecordedProcess {
    /// The id of the reading thread.
    pub pid: u32,
    /// Its short name; empty if the kernel no longer knew it.
    pub name: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FileKind {
    Regular,
    /// A directory or symbolic link whose pages the file system caches like those of a file.
    Other,
    /// A block device: its pages are the metadata of its file system. `major` and `minor` are the device's own.
    Device,
}

impl FileKind {
    const ALL: [Self; 3] = [Self::Regular, Self::Other, Self::Device];
}

/// A file as it was at the end of the recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedFile {
    pub kind: FileKind,
    /// Absolute path; empty if it could not be determined.
    pub path: PathBuf,
    /// The major device number of the file system, as in `st_dev`.
    pub major: u32,
    /// The minor device number.
    pub minor: u32,
    /// The inode number; 0 for a device.
    pub inode: u64,
    pub size_bytes: u64,
    /// Modification time since 1970; 0 for a device.
    pub mtime_ns: i64,
}

/// How pages were read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReadKind {
    /// By `read` and related calls, including io_uring, or by the file system itself (metadata).
    Read,
    /// By a fault on a mapped page that an earlier fault-around did not map.
    Fault,
    /// By a fault-around, which mapped these cached pages: at least one of them was accessed, others may have been
    /// later.
    Map,
    /// Pages that the kernel read ahead and that were never requested. Not a reference: traces skip them.
    ReadAhead,
}

impl ReadKind {
    const ALL: [Self; 4] = [Self::Read, Self::Fault, Self::Map, Self::ReadAhead];
}

/// A reference to consecutive pages of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Read {
    /// Issue time since the start of the command.
    pub time_ns: u64,
    /// Wait for the device; 0 if the pages were cached.
    pub wait_ns: u64,
    /// First page in the file.
    pub start: u64,
    /// Number of pages, at least 1.
    pub pages: u32,
    /// Index in [`Recording::processes`].
    pub process: u32,
    /// Index in [`Recording::files`].
    pub file: u32,
    pub kind: ReadKind,
    /// Whether all pages were in the page cache before the command started, or had been referenced by it.
    pub hit: bool,
}

impl Read {
    /// The first page after the range.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.start + u64::from(self.pages)
    }

    /// Whether the command itself requested it.
    #[must_use]
    pub fn is_reference(&self) -> bool {
        self.kind != ReadKind::ReadAhead
    }
}

impl Recording {
    /// Reads a recording.
    ///
    /// # Errors
    /// If the file cannot be read, is not a recording or has another version, or is truncated or damaged.
    pub fn read(path: &Path) -> Result<Self, TraceError> {
        codec::decode(Source::open(path)?)
    }

    /// As [`Recording::read`], of a regular file that is open and that errors call `path`.
    ///
    /// # Errors
    /// As [`Recording::read`].
    pub fn read_from(path: &Path, file: File) -> Result<Self, TraceError> {
        codec::decode(Source::of(path, file)?)
    }

    /// The bytes of its file.
    ///
    /// # Errors
    /// There is no memory for it.
    ///
    /// # Panics
    /// As [`Recording::write`].
    pub fn encoded(&self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        codec::encode(self, &mut bytes).map(|()| bytes)
    }

    /// Writes the recording atomically.
    ///
    /// # Errors
    /// If the file cannot be written.
    ///
    /// # Panics
    /// If it breaks a promise of its fields: an index out of range, times out of order, no pages.
    pub fn write(&self, path: &Path) -> Result<(), TraceError> {
        codec::write(self, path)
    }

    /// As [`Recording::read`], for an open file.
    pub(crate) fn decode(source: Source) -> Result<Self, TraceError> {
        codec::decode(source)
    }

    /// How many pages of a read lie within its file of so many bytes; all where the path of the file is not known.
    #[must_use]
    pub fn pages_within(&self, read: &Read, size_bytes: u64) -> u32 {
        let is_known = !self.files[read.file as usize].path.as_os_str().is_empty();
        let end = if is_known { size_bytes.div_ceil(self.about.page_bytes) } else { u64::MAX };
        end.saturating_sub(read.start).min(read.pages.into()) as u32
    }

    /// Leaves out the pages that lie beyond the ends of their files, whose bytes are `sizes`, as [`Recording::pages_within`] has it.
    pub fn cut(&mut self, sizes: &[u64]) {
        let mut reads = std::mem::take(&mut self.reads);
        reads.retain_mut(|read| {
            read.pages = self.pages_within(read, sizes[read.file as usize]);
            read.pages > 0
        });
        self.reads = reads;
    }

    /// The references, in order.
    pub fn references(&self) -> impl Iterator<Item = &Read> {
        self.reads.iter().filter(|read| read.is_reference())
    }
}

/// Whether a file begins like a recording.
pub(crate) fn resembles(head: &[u8]) -> bool {
    head.starts_with(codec::MAGIC)
}
