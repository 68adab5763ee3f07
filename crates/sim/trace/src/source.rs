//! A trace file as a stream of decompressed bytes.
//!
//! The compression is recognised by its magic bytes, not by the file's name. The first bytes of the content are kept
//! for format detection.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::{ErrorPosition, TraceError};

/// Size of the content's prefix that format detection sees.
const HEAD_BYTES: usize = 32 * 1024;

/// Bytes hashed at a time: small enough for a processor's second-level cache.
const HASHED_AT_ONCE: usize = 1 << 17;

/// Suffixes of compressed files, stripped to find the trace's own name and accompanying files.
pub(crate) const COMPRESSED_SUFFIXES: [&str; 5] = [".gz", ".bz2", ".xz", ".zst", ".zstd"];

/// The compression of the file, by magic number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Compression {
    None,
    Gzip,
    Bzip2,
    Xz,
    Zstd,
}

impl Compression {
    fn sniff(head: &[u8]) -> Self {
        match head {
            [0x1f, 0x8b, ..] => Compression::Gzip,
            // The block size as a digit, then the first digits of pi or, at the end of an empty stream, of its root.
            [b'B', b'Z', b'h', b'1'..=b'9', 0x31, 0x41, ..] | [b'B', b'Z', b'h', b'1'..=b'9', 0x17, 0x72, ..] => {
                Compression::Bzip2
            }
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Compression::Xz,
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Compression::Zstd,
            _ => Compression::None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Compression::None => "plain",
            Compression::Gzip => "gzip",
            Compression::Bzip2 => "bzip2",
            Compression::Xz => "xz",
            Compression::Zstd => "zstd",
        }
    }

    fn decode(self, packed: impl Read + Send + 'static) -> io::Result<Box<dyn Read + Send>> {
        Ok(match self {
            Compression::None => Box::new(packed),
            Compression::Gzip => Box::new(flate2::read::MultiGzDecoder::new(packed)),
            Compression::Bzip2 => Box::new(bzip2::read::MultiBzDecoder::new(packed)),
            Compression::Xz => Box::new(liblzma::read::XzDecoder::new_multi_decoder(packed)),
            Compression::Zstd => Box::new(zstd::stream::read::Decoder::new(packed)?),
        })
    }
}

/// Counts the bytes read from the stored file, for progress.
struct Counted<R> {
    inner: R,
    done: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(into)?;
        self.done.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

/// The decompressed content of one trace file, with its name for errors.
pub struct Source {
    file: PathBuf,
    /// Whether `file` is a real file, which may have accompanying files.
    on_disk: bool,
    compression: Compression,
    reader: Box<dyn Read + Send>,
    head: Vec<u8>,
    /// The part of `head` that was already returned.
    head_used: usize,
    /// The request size given by the user, for traces without sizes.
    request_bytes: Option<u64>,
    done: Arc<AtomicU64>,
    total_bytes: u64,
}

impl Source {
    /// Opens a file.
    ///
    /// # Errors
    /// The file is missing, not a regular file, unreadable, or its compressed content is damaged at its start.
    pub fn open(path: &Path) -> Result<Self, TraceError> {
        Self::of(path, open_regular(path)?)
    }

    /// The content of a regular file that is open, and that errors call `path`.
    ///
    /// # Errors
    /// As for [`Source::open`].
    pub fn of(path: &Path, file: File) -> Result<Self, TraceError> {
        let stored_bytes = file.metadata().map_err(|source| TraceError::reading(path, source))?.len();
        Self::new(path, true, file, stored_bytes)
    }

    /// Uses `content` as the content of a file called `name`.
    ///
    /// # Errors
    /// As for [`Source::open`].
    pub fn from_bytes(name: &str, content: Vec<u8>) -> Result<Self, TraceError> {
        let total_bytes = content.len() as u64;
        Self::new(Path::new(name), false, Cursor::new(content), total_bytes)
    }

    fn new(
        file: &Path,
        on_disk: bool,
        mut stored: impl Read + Send + 'static,
        total_bytes: u64,
    ) -> Result<Self, TraceError> {
        let io = |source| TraceError::reading(file, source);
        let mut magic = Vec::new();
        (&mut stored).take(6).read_to_end(&mut magic).map_err(io)?;
        let compression = Compression::sniff(&magic);
        let done = Arc::new(AtomicU64::new(0));
        let counted = Counted { inner: Cursor::new(magic).chain(stored), done: Arc::clone(&done) };
        let reader = compression.decode(counted).map_err(io)?;
        let mut source = Self {
            file: file.to_owned(),
            on_disk,
            compression,
            reader,
            head: Vec::new(),
            head_used: 0,
            request_bytes: None,
            done,
            total_bytes,
        };
        source.fill_head()?;
        Ok(source)
    }

    fn fill_head(&mut self) -> Result<(), TraceError> {
        let mut head = vec![0; HEAD_BYTES];
        let mut filled = 0;
        while filled < HEAD_BYTES {
            match self.read_from_decoder(&mut head[filled..])? {
                0 => break,
                read => filled += read,
            }
        }
        head.truncate(filled);
        self.head = head;
        Ok(())
    }

    fn read_from_decoder(&mut self, into: &mut [u8]) -> Result<usize, TraceError> {
        loop {
            match self.reader.read(into) {
                Ok(read) => return Ok(read),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.damaged(error)),
            }
        }
    }

    fn damaged(&self, error: io::Error) -> TraceError {
        let name = self.compression.name();
        match (self.compression, error.kind()) {
            (Compression::None, _) => TraceError::reading(&self.file, error),
            (_, io::ErrorKind::UnexpectedEof) => self
                .bad(ErrorPosition::File, format!("the {name} stream is truncated; allowed: a complete {name} file")),
            _ => self.bad(
                ErrorPosition::File,
                format!("the {name} stream is damaged ({error}); allowed: a valid {name} file"),
            ),
        }
    }

    /// Reads some of the content; 0 at its end. The caller guarantees that `into` is not empty.
    pub(crate) fn read(&mut self, into: &mut [u8]) -> Result<usize, TraceError> {
        let waiting = &self.head[self.head_used..];
        if waiting.is_empty() {
            return self.read_from_decoder(into);
        }
        let count = waiting.len().min(into.len());
        into[..count].copy_from_slice(&waiting[..count]);
        self.head_used += count;
        Ok(count)
    }

    /// Sets the request size, for traces without sizes.
    pub(crate) fn with_request_bytes(self, request_bytes: Option<u64>) -> Self {
        Self { request_bytes, ..self }
    }

    /// The request size given by the user.
    pub(crate) fn request_bytes(&self) -> Option<u64> {
        self.request_bytes
    }

    /// The first bytes of the content.
    #[must_use]
    pub fn head(&self) -> &[u8] {
        &self.head
    }

    /// The file's name without directories and without a compression suffix: "cs.trace".
    #[must_use]
    pub fn plain_name(&self) -> String {
        let name = self.file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        without_compression_suffix(&name).to_owned()
    }

    /// The file's name, for errors.
    pub(crate) fn name(&self) -> &Path {
        &self.file
    }

    /// The path, if the content comes from a real file.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.on_disk.then_some(self.file.as_path())
    }

    /// Bytes of the stored file: read so far, and total.
    pub(crate) fn progress(&self) -> (u64, u64) {
        let done = self.done.load(Ordering::Relaxed);
        (done.min(self.total_bytes), self.total_bytes)
    }

    #[cold]
    pub(crate) fn bad(&self, place: ErrorPosition, problem: String) -> TraceError {
        TraceError::Bad { file: self.file.clone(), place, problem }
    }
}

/// `name` without ".gz", ".bz2", ".xz", ".zst" or ".zstd".
pub(crate) fn without_compression_suffix(name: &str) -> &str {
    COMPRESSED_SUFFIXES.iter().find_map(|suffix| name.strip_suffix(suffix)).unwrap_or(name)
}

/// A pipe or device may have no end, and opening some devices has side effects.
fn open_regular(path: &Path) -> Result<File, TraceError> {
    headstart_types::open_regular(path).map_err(|source| match source.kind() {
        io::ErrorKind::InvalidInput => {
            let what = if path.is_dir() { "a directory" } else { "not a regular file" };
            let problem = format!("is {what}; allowed: a trace in a regular file");
            TraceError::Bad { file: path.to_owned(), place: ErrorPosition::File, problem }
        }
        _ => TraceError::reading(path, source),
    })
}

/// The name of an unsupported compression, recognised by the first bytes.
pub(crate) fn other_compression(head: &[u8]) -> Option<&'static str> {
    Some(match head {
        [0x04, 0x22, 0x4d, 0x18, ..] => "lz4",
        [0x1f, 0x9d, ..] => "compress (.Z)",
        [b'L', b'Z', b'I', b'P', ..] => "lzip",
        [0x89, b'L', b'Z', b'O', ..] => "lzop",
        [b'P', b'K', 3, 4, ..] => "zip",
        [b'7', b'z', 0xbc, 0xaf, ..] => "7z",
        [0xff, 6, 0, 0, b's', b'N', b'a', b'P', ..] => "snappy",
        _ => return None,
    })
}

/// SHA-256 of the file as stored, in lower-case hexadecimal.
///
/// # Errors
/// The file cannot be read.
pub fn sha256_file(path: &Path) -> Result<String, TraceError> {
    let io = |source| TraceError::reading(path, source);
    let file = open_regular(path)?;
    let mut hasher = Sha256::new();
    let mut reader = BufReader::with_capacity(HASHED_AT_ONCE, file);
    loop {
        let part = match reader.fill_buf() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            part => part.map_err(io)?,
        };
        if part.is_empty() {
            break;
        }
        hasher.update(part);
        let read = part.len();
        reader.consume(read);
    }
    Ok(hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}
