//! The common record that all formats and generators produce, and the declaration of what a trace carries.

use headstart_types::{KeyError, Nanos};
use serde::Serialize;

use crate::TraceError;

/// Maximum number of records that [`RecordReader::read`] returns in one batch.
pub const BATCH: usize = 4096;

/// One I/O of a trace, in normalised units. Fields that the trace does not carry ([`Carries`]) are zero.
#[derive(Debug, Clone, Copy, Default)]
pub struct Record {
    /// Issue time, relative to the issue of the first record. Never decreases along a trace.
    pub time: Nanos,
    /// Service time as recorded.
    pub duration: Nanos,
    /// Think time after this request. Generators (and CSV files written from them) carry it.
    pub think: Nanos,
    /// The request's first byte; in a trace of objects, the object's number.
    pub offset: u64,
    /// Bytes, never zero; in object traces the object's size, or the format's unit if it has none. If `offset` is an
    /// address, `offset + size` fits in 64 bits.
    pub size: u64,
    /// Process id, or zero.
    pub pid: u32,
    /// File, device or ASU id, or zero.
    pub file: u32,
    /// The record's position in the file, for errors: its line or its index, from 1; zero if it comes from no file.
    /// Saturates at the maximum of 32 bits. It occupies bytes that would otherwise be padding.
    pub stands_at: u32,
    pub write: bool,
}

/// Records are equal if they describe the same I/O, regardless of their position in the file.
impl PartialEq for Record {
    fn eq(&self, other: &Self) -> bool {
        let fields = |record: &Self| {
            let Record { time, duration, think, offset, size, pid, file, stands_at: _, write } = *record;
            (time, duration, think, offset, size, pid, file, write)
        };
        fields(self) == fields(other)
    }
}

impl Eq for Record {}

/// The fields that a trace carries. Other fields are zero in its records and must not be used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Carries {
    /// Issue times.
    pub time: bool,
    /// Service times.
    pub duration: bool,
    /// Think times.
    pub think: bool,
    /// Process ids.
    pub processes: bool,
    /// File, device or ASU ids.
    pub files: bool,
    /// Reads and writes are distinguished; otherwise all requests count as reads.
    pub writes: bool,
    /// Real addresses: adjacent numbers are adjacent on the disk, or within the file.
    pub addresses: bool,
    /// Offsets are object numbers, not bytes.
    pub objects: bool,
}

impl Carries {
    /// No field.
    pub const NOTHING: Self = Self {
        time: false,
        duration: false,
        think: false,
        processes: false,
        files: false,
        writes: false,
        addresses: false,
        objects: false,
    };
    /// Times, reads and writes, and addresses: what most traces carry.
    pub const BLOCKS: Self = Self { time: true, writes: true, addresses: true, ..Self::NOTHING };
}

/// One row of a trace's file table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileEntry {
    /// The id by which records name the file.
    pub file: u32,
    /// Size: the larger of the size on disk and the end of the last request.
    pub size_bytes: u64,
    /// Path on the traced machine.
    pub path: String,
}

/// A name of a process or thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessEntry {
    /// The id by which records name the process.
    pub pid: u32,
    /// Its name from `from` on.
    pub name: String,
    /// Position ([`Record::stands_at`]) of its first record under this name.
    pub from: u32,
}

/// A stream of records. After an error, or after `read` has returned false, a reader must not be used again.
pub trait RecordReader: Send {
    /// The wrapped reader, if this one wraps another; default methods delegate to it.
    fn inner(&self) -> Option<&dyn RecordReader> {
        None
    }

    /// The format of the trace, and how it was recognised; `None` for a generator.
    fn format(&self) -> Option<(&'static str, &'static str)> {
        self.inner().and_then(|inner| inner.format())
    }

    /// The fields that the trace carries.
    fn carries(&self) -> Carries;

    /// The trace's own unit in bytes: the size of an object if it carries objects (nominal if sizes differ), the page
    /// or sector in which it counts, or 1 if it counts bytes.
    fn unit_bytes(&self) -> u64 {
        self.inner().map_or(1, |inner| inner.unit_bytes())
    }

    /// Whether objects have individual sizes, other than [`RecordReader::unit_bytes`].
    fn sizes_vary(&self) -> bool {
        self.inner().is_some_and(|inner| inner.sizes_vary())
    }

    /// The file table in its own order; empty if there is none.
    fn files(&self) -> &[FileEntry] {
        self.inner().map_or(&[], |inner| inner.files())
    }

    /// The names of the processes read so far, in order of their first records; empty if there are none.
    fn processes(&self) -> &[ProcessEntry] {
        self.inner().map_or(&[], |inner| inner.processes())
    }

    /// A note for users of the trace, if any; its counts cover what was read so far.
    fn note(&self) -> Option<String> {
        self.inner().and_then(|inner| inner.note())
    }

    /// Clears `into` and fills it with the next records in trace order, at least one and at most [`BATCH`]. Returns
    /// false, and no records, at the end.
    ///
    /// # Errors
    /// The first thing in the trace that cannot be read, with its line or record number. An empty trace is an error.
    fn read(&mut self, into: &mut Vec<Record>) -> Result<bool, TraceError>;

    /// Empty records skipped so far, in formats where such records are common.
    fn skipped(&self) -> u64 {
        self.inner().map_or(0, |inner| inner.skipped())
    }

    /// The error for a record that this reader emitted: its position, what is wrong, and what is allowed.
    #[cold]
    fn bad(&self, record: &Record, problem: &str, allowed: &str) -> TraceError {
        match self.inner() {
            Some(inner) => inner.bad(record, problem, allowed),
            None => KeyError::new("generator", problem, allowed).into(),
        }
    }

    /// Progress of the reading as (done, total), in bytes of the stored file, or in requests of a generator.
    fn progress(&self) -> (u64, u64);
}
