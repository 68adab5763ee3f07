//! Recordings (`.hints`): the pages that a command has read, in the order in which it read them.
//!
//! `headstart record` writes them, `headstart run` prefetches from them, and as the trace format `hints` they are input to
//! `simulate`, `compare` and `advise`. Files are identified by path, device, inode, size and time of modification, so that
//! a later reader can tell whether a recording is still valid. docs/hints-format.md specifies the bytes.
//!
//! Memory: 40 bytes for each read, in the file some 3 to 5.

mod codec;
mod merge;
mod stale;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::{Source, TraceError};

pub use merge::merge;
pub use stale::{change, check, Change, Stale};

/// The version that is written; the only one that is read.
pub const VERSION: u32 = 1;
/// Most files of a recording, and most processes.
pub const FILES_MAX: u64 = 1 << 22;
/// Most reads of a recording. They take 1.3 GB.
pub const READS_MAX: u64 = 1 << 25;

/// What a command has read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recording {
    /// How it came about.
    pub about: About,
    /// The processes that have read, in order of their first read.
    pub processes: Vec<RecordedProcess>,
    /// The files that were read, in order of their first read.
    pub files: Vec<RecordedFile>,
    /// By time of issue.
    pub reads: Vec<Read>,
}

/// How a recording came about: the first line of the file, as JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// The command and its arguments.
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
    /// Events that the kernel has dropped: so many reads may be missing.
    pub lost_events: u64,
    /// How many recordings this one was merged of; 1 if it was recorded.
    pub recordings: u32,
}

/// A process of the command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RecordedProcess {
    /// Its number, of the thread that has read.
    pub pid: u32,
    /// Its short name; empty if the kernel no longer knew it.
    pub name: String,
}

/// What a [`RecordedFile`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FileKind {
    /// A regular file.
    Regular,
    /// A directory or symbolic link whose pages the file system caches as those of a file.
    Other,
    /// A block device: the pages are the metadata of its file system. `major` and `minor` are the device's own.
    Device,
}

impl FileKind {
    const ALL: [Self; 3] = [Self::Regular, Self::Other, Self::Device];
}

/// A file, as it was at the end of the recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedFile {
    /// What it is.
    pub kind: FileKind,
    /// Absolute; empty if it could not be found.
    pub path: PathBuf,
    /// The device number of the file system, as in `st_dev`.
    pub major: u32,
    /// The rest of it.
    pub minor: u32,
    /// The inode's number; 0 for a device.
    pub inode: u64,
    /// Bytes.
    pub size_bytes: u64,
    /// Time of the last modification, since 1970. 0 for a device.
    pub mtime_ns: i64,
}

/// How pages were read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReadKind {
    /// By `read` and its relatives, io_uring included, or by the file system for itself (metadata).
    Read,
    /// By a fault of a mapped page that was not mapped by the fault around another one.
    Fault,
    /// A fault has mapped what was cached of these pages: at least one of them was touched, others may have been since.
    Map,
    /// Pages that the kernel has read ahead or around and that were never requested. No reference: traces skip them.
    ReadAhead,
}

impl ReadKind {
    const ALL: [Self; 4] = [Self::Read, Self::Fault, Self::Map, Self::ReadAhead];
}

/// A reference to consecutive pages of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Read {
    /// When it was issued, since the start of the command.
    pub time_ns: u64,
    /// How long it waited for the device; 0 where the pages were cached.
    pub wait_ns: u64,
    /// First page in the file.
    pub start: u64,
    /// Number of pages, at least 1.
    pub pages: u32,
    /// Index in [`Recording::processes`].
    pub process: u32,
    /// Index in [`Recording::files`].
    pub file: u32,
    /// How it was read.
    pub kind: ReadKind,
    /// Whether all of the pages were in the page cache before the command, or had been referenced by it.
    pub hit: bool,
}

impl Read {
    /// The page behind the last one.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.start + u64::from(self.pages)
    }

    /// Whether the command itself asked for it.
    #[must_use]
    pub fn is_reference(&self) -> bool {
        self.kind != ReadKind::ReadAhead
    }
}

impl Recording {
    /// Reads a recording.
    ///
    /// # Errors
    /// The file cannot be read, is no recording or one of another version, or is cut short or damaged.
    pub fn read(path: &Path) -> Result<Self, TraceError> {
        codec::decode(Source::open(path)?)
    }

    /// Writes it; the file appears whole or not at all.
    ///
    /// # Errors
    /// The file cannot be written.
    ///
    /// # Panics
    /// It breaks a promise of its fields: an index without a row, times out of order, no pages.
    pub fn write(&self, path: &Path) -> Result<(), TraceError> {
        codec::write(self, path)
    }

    /// As [`Recording::read`], of a file that is open already.
    pub(crate) fn decode(source: Source) -> Result<Self, TraceError> {
        codec::decode(source)
    }

    /// The references, in order.
    pub fn references(&self) -> impl Iterator<Item = &Read> {
        self.reads.iter().filter(|read| read.is_reference())
    }
}

/// Whether a file begins as a recording.
pub(crate) fn resembles(head: &[u8]) -> bool {
    head.starts_with(codec::MAGIC)
}
