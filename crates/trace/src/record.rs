//! The one record that every trace format and every generator is turned into, and what a trace declares of itself.

use headstart_types::{KeyError, Nanos};
use serde::Serialize;

use crate::TraceError;

/// How many records [`RecordReader::read`] returns at most in one batch.
pub const BATCH: usize = 4096;

/// One I/O of a trace, in normalised units. Fields that the trace does not carry ([`Carries`]) are zero.
#[derive(Debug, Clone, Copy, Default)]
pub struct Record {
    /// Issue time, since the issue of the first record. Never decreases along a trace.
    pub time: Nanos,
    /// Service time as recorded.
    pub duration: Nanos,
    /// Think time after this request. Generators (and CSV files written from them) carry it.
    pub think: Nanos,
    /// Where the request starts, in bytes; or, where the trace carries objects, the object's number.
    pub offset: u64,
    /// Bytes, never zero; in object traces the object's size, or the format's unit where it has none.
    /// Where `offset` is an address, `offset + size` fits in 64 bits.
    pub size: u64,
    /// Process, or zero.
    pub pid: u32,
    /// File, device or ASU, or zero.
    pub file: u32,
    /// Its place in the file, for errors: its line or its number, from 1; zero where it comes from no file.
    /// Larger ones than 32 bits hold stand as the largest. Takes no room: the fields before leave as many bytes unused.
    pub stands_at: u32,
    /// Whether it is a write.
    pub write: bool,
}

/// Two records are equal if they are the same I/O, wherever they stand.
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

/// What a trace carries. What it does not carry is zero in its records, and must not be used.
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
    /// Reads and writes are distinguished; otherwise all count as reads.
    pub writes: bool,
    /// Real addresses: adjacent numbers are adjacent on the disk, or within the file.
    pub addresses: bool,
    /// Offsets are object numbers, not bytes.
    pub objects: bool,
}

/// One row of a trace's file table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileEntry {
    /// The number by which records name the file.
    pub file: u32,
    /// Size: the larger of the size on disk and the end of the last request.
    pub size_bytes: u64,
    /// Path on the traced machine.
    pub path: String,
}

/// A name of a process, or of a thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessEntry {
    /// The number by which records name the process.
    pub pid: u32,
    /// Its name from there on.
    pub name: String,
    /// Where the first of its records under this name stands ([`Record::stands_at`]).
    pub from: u32,
}

/// A stream of records. After an error, or after `read` has returned false, a reader is spent.
pub trait RecordReader: Send {
    /// The reader whose records this one hands on, if it is around another: what is not said here is as that one says.
    fn inner(&self) -> Option<&dyn RecordReader> {
        None
    }

    /// The format of the trace, and what showed that it is of this one; `None` for a generator.
    fn format(&self) -> Option<(&'static str, &'static str)> {
        self.inner().and_then(|inner| inner.format())
    }

    /// What the trace carries.
    fn carries(&self) -> Carries;

    /// Size of the trace's own unit in bytes: of an object where it carries objects (nominal where sizes differ),
    /// of the pages or sectors in which it counts, 1 where it counts bytes.
    fn unit_bytes(&self) -> u64;

    /// Whether objects have sizes of their own, other than [`RecordReader::unit_bytes`].
    fn sizes_vary(&self) -> bool {
        self.inner().is_some_and(|inner| inner.sizes_vary())
    }

    /// The file table in its own order; empty where there is none.
    fn files(&self) -> &[FileEntry] {
        self.inner().map_or(&[], |inner| inner.files())
    }

    /// The names of processes in order of their first records, as far as has been read; empty where there are none.
    fn processes(&self) -> &[ProcessEntry] {
        self.inner().map_or(&[], |inner| inner.processes())
    }

    /// What a user of the trace must know, if anything; counts in it are of what was read so far.
    fn note(&self) -> Option<String> {
        self.inner().and_then(|inner| inner.note())
    }

    /// Clears `into` and fills it with the next records, at least one and at most [`BATCH`], in trace order.
    /// Returns false, and no records, at the end.
    ///
    /// # Errors
    /// The first thing in the trace that cannot be read, with its line or record number. An empty trace is an error.
    fn read(&mut self, into: &mut Vec<Record>) -> Result<bool, TraceError>;

    /// Records that were left out so far because they are empty, in formats where such records are common.
    fn skipped(&self) -> u64 {
        self.inner().map_or(0, |inner| inner.skipped())
    }

    /// The error of a record that this reader has handed out: its place, what is wrong, and what is allowed.
    #[cold]
    fn bad(&self, record: &Record, problem: &str, allowed: &str) -> TraceError {
        match self.inner() {
            Some(inner) => inner.bad(record, problem, allowed),
            None => KeyError::new("generator", problem, allowed).into(),
        }
    }

    /// How far the reading is: (done, total), in bytes of the file as stored, or in requests of a generator.
    fn progress(&self) -> (u64, u64);
}
