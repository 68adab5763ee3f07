//! Checks whether the files of a recording have changed.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;

use serde::Serialize;

use super::{FileKind, RecordedFile, Recording};

/// How a file has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// No file has that path, or it cannot be accessed.
    Missing,
    /// Another file has the path: the inode or device differs.
    Replaced,
    /// The size differs.
    Size,
    /// The modification time differs.
    Time,
}

/// A changed file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Stale {
    /// Index in [`Recording::files`].
    pub file: usize,
    pub change: Change,
    /// Bytes of its references; a page counts as often as it was referenced.
    pub bytes: u64,
}

/// The files with a path that have changed. Block devices change all the time and are only listed if they are missing.
/// A copied file has another inode or device; the most severe difference is reported.
#[must_use]
pub fn check(recording: &Recording) -> Vec<Stale> {
    let mut bytes = vec![0u64; recording.files.len()];
    for read in recording.references() {
        bytes[read.file as usize] += u64::from(read.pages) * recording.about.page_bytes;
    }
    let named = recording.files.iter().enumerate().filter(|(_, file)| !file.path.as_os_str().is_empty());
    named.filter_map(|(file, row)| Some(Stale { file, change: change(row)?, bytes: bytes[file] })).collect()
}

/// How a file has changed.
#[must_use]
pub fn change(file: &RecordedFile) -> Option<Change> {
    let found: io::Result<_> = fs::symlink_metadata(&file.path);
    let Ok(found) = found else { return Some(Change::Missing) };
    if file.kind == FileKind::Device {
        return None;
    }
    // The encoding of Linux's user space (makedev(3)); recordings hold major and minor separately.
    let device = found.dev();
    let major = (device >> 8 & 0xfff | device >> 32 & 0xffff_f000) as u32;
    let minor = (device & 0xff | device >> 12 & 0xffff_ff00) as u32;
    let mtime_ns = found.mtime().saturating_mul(1_000_000_000).saturating_add(found.mtime_nsec());
    if (major, minor, found.ino()) != (file.major, file.minor, file.inode) {
        Some(Change::Replaced)
    } else if found.len() != file.size_bytes {
        Some(Change::Size)
    } else {
        (mtime_ns != file.mtime_ns).then_some(Change::Time)
    }
}
