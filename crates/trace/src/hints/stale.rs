//! Whether the files of a recording are still what they were.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;

use serde::Serialize;

use super::{FileKind, RecordedFile, Recording};

/// What has become different about a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// There is no file of that path, or it cannot be looked at.
    Missing,
    /// Another file has taken the path: another inode or device.
    Replaced,
    /// It has another size.
    Size,
    /// It was written since: another time of modification.
    Time,
}

/// A file that is not as it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Stale {
    /// Index in [`Recording::files`].
    pub file: usize,
    /// What is different.
    pub change: Change,
    /// Bytes of its references, a page counted as often as it was referenced.
    pub bytes: u64,
}

/// The files with a path that are not as they were. Of block devices, whose content changes all the time, only those are
/// listed that are missing. Inodes and devices have other numbers after a copy: the first difference counts, the most severe first.
#[must_use]
pub fn check(recording: &Recording) -> Vec<Stale> {
    let mut bytes = vec![0u64; recording.files.len()];
    for read in recording.references() {
        bytes[read.file as usize] += u64::from(read.pages) * recording.about.page_bytes;
    }
    let named = recording.files.iter().enumerate().filter(|(_, file)| !file.path.as_os_str().is_empty());
    named.filter_map(|(file, row)| Some(Stale { file, change: change(row)?, bytes: bytes[file] })).collect()
}

/// What is different about a file.
#[must_use]
pub fn change(file: &RecordedFile) -> Option<Change> {
    let found: io::Result<_> = fs::symlink_metadata(&file.path);
    let Ok(found) = found else { return Some(Change::Missing) };
    if file.kind == FileKind::Device {
        return None;
    }
    // As Linux packs them for user space (makedev(3)); the other way round of the numbers that are recorded.
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
