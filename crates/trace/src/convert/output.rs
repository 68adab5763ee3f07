//! A file that appears at its place only when it is complete.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::TraceError;

/// How long a buffer in front of a file is.
const BUFFER_BYTES: usize = 256 * 1024;

/// A file under a temporary name beside its final one; removed again unless it is put in place.
#[derive(Debug)]
pub(super) struct Pending {
    temporary: PathBuf,
    path: PathBuf,
    placed: bool,
}

impl Pending {
    /// Creates the temporary file. `suffix` tells apart several for one path.
    pub(super) fn create(path: &Path, suffix: &str) -> Result<(Self, File), TraceError> {
        let io = |source| TraceError::writing(path, source);
        let Some(name) = path.file_name() else {
            return Err(io(io::Error::new(io::ErrorKind::InvalidInput, "has no file name")));
        };
        let mut hidden = std::ffi::OsString::from(".");
        hidden.push(name);
        hidden.push(format!(".{}{suffix}.tmp", std::process::id()));
        let temporary = path.with_file_name(hidden);
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(&temporary).map_err(io)?;
        Ok((Self { temporary, path: path.to_owned(), placed: false }, file))
    }

    /// Moves the file to its final name.
    pub(super) fn place(mut self) -> Result<(), TraceError> {
        let moved = std::fs::rename(&self.temporary, &self.path);
        self.placed = moved.is_ok();
        moved.map_err(|source| self.error(source))
    }

    /// An error in writing this file.
    pub(super) fn error(&self, source: io::Error) -> TraceError {
        TraceError::writing(&self.path, source)
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if !self.placed {
            // Nothing more can be done about a temporary file that cannot be removed.
            let _ = std::fs::remove_file(&self.temporary);
        }
    }
}

/// A writer that compresses as a file name's suffix says.
pub(super) enum Packer {
    Plain(BufWriter<File>),
    Gzip(flate2::write::GzEncoder<BufWriter<File>>),
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
            Some("xz") => Packer::Xz(liblzma::write::XzEncoder::new(file, XZ_LEVEL)),
            Some("zst" | "zstd") => {
                Packer::Zstd(zstd::stream::write::Encoder::new(file, zstd::DEFAULT_COMPRESSION_LEVEL)?)
            }
            _ => Packer::Plain(file),
        })
    }

    /// Whether the suffix of `path` asks for compression.
    pub(super) fn compresses(path: &Path) -> bool {
        matches!(path.extension().and_then(|extension| extension.to_str()), Some("gz" | "xz" | "zst" | "zstd"))
    }

    /// Writes what is still held back.
    pub(super) fn finish(self) -> io::Result<()> {
        let mut file = match self {
            Packer::Plain(file) => file,
            Packer::Gzip(encoder) => encoder.finish()?,
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
            Packer::Xz(inner) => inner.write(bytes),
            Packer::Zstd(inner) => inner.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Packer::Plain(inner) => inner.flush(),
            Packer::Gzip(inner) => inner.flush(),
            Packer::Xz(inner) => inner.flush(),
            Packer::Zstd(inner) => inner.flush(),
        }
    }
}
