//! A file that appears under its name only when it is complete.
//!
//! Until then it has a unique hidden name in the same folder. The hidden name is removed when the run succeeds, fails,
//! or is stopped by a signal whose handler calls [`remove_pending_files`].

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use headstart_types::printable_path;

use crate::TraceError;

/// Size of the buffer in front of a file.
const BUFFER_BYTES: usize = 256 * 1024;
/// Attempts to find an unused name. A second attempt is practically never needed, because the names have 64 random
/// bits.
const DRAWS_MAX: usize = 8;
/// Maximum number of stale files that an error names.
const STALE_NAMED_MAX: usize = 4;

/// The temporary files of this process.
static PENDING: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

fn pending_files() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    PENDING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes the temporary files of all conversions in progress, which then fail. For a process that is about to exit
/// while another of its threads converts.
pub fn remove_pending_files() {
    for path in std::mem::take(&mut *pending_files()) {
        // A temporary file that cannot be removed is left behind.
        let _ = std::fs::remove_file(path);
    }
}

/// A file under a temporary name next to its final one; removed on drop unless it was moved to its final name.
#[derive(Debug)]
pub(crate) struct Pending {
    temporary: PathBuf,
    path: PathBuf,
    placed: bool,
}

impl Pending {
    /// Creates the temporary file with the mode of the file that it will replace.
    pub(crate) fn create(path: &Path) -> Result<(Self, File), TraceError> {
        let io = |source| writing(path, source);
        let Some(name) = path.file_name() else {
            return Err(io(io::Error::new(io::ErrorKind::InvalidInput, "has no file name")));
        };
        let (temporary, file) = create_hidden(path, name).map_err(io)?;
        let pending = Self { temporary, path: path.to_owned(), placed: false };
        if let Ok(replaced) = std::fs::metadata(path) {
            file.set_permissions(replaced.permissions()).map_err(io)?;
        }
        Ok((pending, file))
    }

    /// Moves the file to its final name.
    pub(crate) fn place(mut self) -> Result<(), TraceError> {
        let moved = std::fs::rename(&self.temporary, &self.path);
        self.placed = moved.is_ok();
        moved.map_err(|source| self.error(source))
    }

    /// An error while writing this file.
    pub(crate) fn error(&self, source: io::Error) -> TraceError {
        writing(&self.path, source)
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if !self.placed {
            // A temporary file that cannot be removed is left behind.
            let _ = std::fs::remove_file(&self.temporary);
        }
        pending_files().remove(&self.temporary);
    }
}

/// Creates a file with a unique name next to `path`, whose last component is `name`.
fn create_hidden(path: &Path, name: &OsStr) -> io::Result<(PathBuf, File)> {
    let mut draws = 0;
    loop {
        let mut hidden = prefix(name);
        // The only source of randomness in the standard library. No result depends on it.
        hidden.push(format!("{:016x}.tmp", RandomState::new().hash_one(draws)));
        let temporary = path.with_file_name(hidden);
        // Registered before it is created, so that a signal handler in between finds it.
        pending_files().insert(temporary.clone());
        match OpenOptions::new().read(true).write(true).create_new(true).open(&temporary) {
            Ok(file) => return Ok((temporary, file)),
            Err(error) => {
                pending_files().remove(&temporary);
                draws += 1;
                if error.kind() != io::ErrorKind::AlreadyExists || draws == DRAWS_MAX {
                    return Err(error);
                }
            }
        }
    }
}

/// The prefix of the hidden names for a file called `name`.
fn prefix(name: &OsStr) -> OsString {
    let mut prefix = OsString::from(".");
    prefix.push(name);
    prefix.push(".");
    prefix
}

/// The error if `path` cannot be written. It names the files that killed runs left next to it: they use space, and only
/// the user knows whether another run is still writing them.
pub(super) fn writing(path: &Path, source: io::Error) -> TraceError {
    let stale = stale_beside(path);
    if stale.is_empty() {
        return TraceError::writing(path, source);
    }
    let names: Vec<String> = stale.iter().take(STALE_NAMED_MAX).map(|path| printable_path(path)).collect();
    let more = if stale.len() > STALE_NAMED_MAX { ", ..." } else { "" };
    let kind = source.kind();
    let says = headstart_types::system_says(&source);
    let text = format!("{says}; killed runs may have left {}{more}", names.join(", "));
    TraceError::writing(path, io::Error::new(kind, text))
}

/// Temporary files next to `path` that do not belong to this process.
fn stale_beside(path: &Path) -> Vec<PathBuf> {
    let (Some(name), Some(folder)) = (path.file_name(), path.parent()) else { return Vec::new() };
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let prefix = prefix(name);
    let own = pending_files().clone();
    let is_stale = |other: &OsStr| {
        let other = other.as_encoded_bytes();
        other.starts_with(prefix.as_encoded_bytes()) && other.ends_with(b".tmp")
    };
    let entries = std::fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    let mut stale: Vec<PathBuf> = entries
        .filter(|entry| is_stale(&entry.file_name()))
        .map(|entry| path.with_file_name(entry.file_name()))
        .filter(|path| !own.contains(path))
        .collect();
    stale.sort();
    stale
}

/// A writer that compresses according to the file name's suffix.
pub(super) enum Packer {
    Plain(BufWriter<File>),
    Gzip(flate2::write::GzEncoder<BufWriter<File>>),
    Bzip2(bzip2::write::BzEncoder<BufWriter<File>>),
    Xz(liblzma::write::XzEncoder<BufWriter<File>>),
    Zstd(zstd::stream::write::Encoder<'static, BufWriter<File>>),
}

impl Packer {
    /// The suffix of `path` decides.
    pub(super) fn new(path: &Path, file: File) -> io::Result<Self> {
        const XZ_LEVEL: u32 = 6;
        let file = BufWriter::with_capacity(BUFFER_BYTES, file);
        Ok(match path.extension().and_then(|extension| extension.to_str()) {
            Some("gz") => Packer::Gzip(flate2::write::GzEncoder::new(file, flate2::Compression::default())),
            Some("bz2") => Packer::Bzip2(bzip2::write::BzEncoder::new(file, bzip2::Compression::best())),
            Some("xz") => Packer::Xz(liblzma::write::XzEncoder::new(file, XZ_LEVEL)),
            Some("zst" | "zstd") => {
                Packer::Zstd(zstd::stream::write::Encoder::new(file, zstd::DEFAULT_COMPRESSION_LEVEL)?)
            }
            _ => Packer::Plain(file),
        })
    }

    /// Whether the suffix of `path` implies compression.
    pub(super) fn compresses(path: &Path) -> bool {
        matches!(path.extension().and_then(|extension| extension.to_str()), Some("gz" | "bz2" | "xz" | "zst" | "zstd"))
    }

    /// Flushes and finishes the stream.
    pub(super) fn finish(self) -> io::Result<()> {
        let mut file = match self {
            Packer::Plain(file) => file,
            Packer::Gzip(encoder) => encoder.finish()?,
            Packer::Bzip2(encoder) => encoder.finish()?,
            Packer::Xz(encoder) => encoder.finish()?,
            Packer::Zstd(encoder) => encoder.finish()?,
        };
        file.flush()
    }
}

impl Write for Packer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Packer::Plain(inner) => inner.write(bytes),
            Packer::Gzip(inner) => inner.write(bytes),
            Packer::Bzip2(inner) => inner.write(bytes),
            Packer::Xz(inner) => inner.write(bytes),
            Packer::Zstd(inner) => inner.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Packer::Plain(inner) => inner.flush(),
            Packer::Gzip(inner) => inner.flush(),
            Packer::Bzip2(inner) => inner.flush(),
            Packer::Xz(inner) => inner.flush(),
            Packer::Zstd(inner) => inner.flush(),
        }
    }
}
