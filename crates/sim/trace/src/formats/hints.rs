//! `hints`: what `headstart record` saw a command read, page by page; see [`crate::hints`] and docs/hints-format.md.
//!
//! A request is a reference of the recording: a read, a page fault, or an access to a mapped page, including hits in
//! the page cache. Pages that the kernel read ahead and that were never requested are skipped and counted. Offsets are
//! within files; metadata are requests to a file that stands for the block device. The service time is the recorded
//! wait for the device, so think times are the gaps minus the waits.

use std::path::{Path, PathBuf};

use headstart_types::Nanos;

use crate::checks::EMPTY;
use crate::hints::{resembles, Read, RecordedProcess, Recording};
use crate::{
    Carries, ErrorPosition, Evidence, FileEntry, Format, ProcessEntry, Record, RecordReader, TraceError, BATCH,
};

const CARRIES: Carries =
    Carries { time: true, duration: true, processes: true, files: true, addresses: true, ..Carries::NOTHING };

pub(crate) const FORMAT: Format = Format {
    name: "hints",
    summary: "recordings of `headstart record`: the pages that a command has read, cached or not",
    source: "headstart",
    carries: CARRIES,
    detect: |head| Evidence::mark(resembles(head), "the first line is that of a recording of `headstart record`"),
    open: |source| {
        let name = source.name().to_owned();
        recording_reader(Recording::decode(source)?, &name)
    },
};

/// The references of an in-memory recording as a trace; `name` is its name in error texts.
///
/// # Errors
/// There are none.
pub fn recording_reader(recording: Recording, name: &Path) -> Result<Box<dyn RecordReader>, TraceError> {
    let first = recording.references().next().map(|first| first.time_ns);
    let empty = || TraceError::Bad { file: name.to_owned(), place: ErrorPosition::File, problem: EMPTY.to_owned() };
    let origin_ns = first.ok_or_else(empty)?;
    Ok(Box::new(Hints { origin_ns, ..Hints::new(name.to_owned(), recording) }))
}

/// What such a recording contains and other traces lack.
const SEEN: &str =
    "contains every page used, through calls and mappings, cached or not; a trace of system calls lacks mappings, a \
    trace of a device lacks what was cached";

struct Hints {
    name: PathBuf,
    recording: Recording,
    table: Vec<FileEntry>,
    processes: Vec<ProcessEntry>,
    /// Time of the first reference.
    origin_ns: u64,
    /// Reads emitted or skipped.
    done: usize,
    skipped: u64,
}

impl Hints {
    fn new(name: PathBuf, recording: Recording) -> Self {
        let page_bytes = recording.about.page_bytes;
        let mut table: Vec<FileEntry> = (0..)
            .zip(&recording.files)
            .map(|(file, row)| FileEntry {
                file,
                size_bytes: row.size_bytes,
                path: row.path.to_string_lossy().into_owned(),
            })
            .collect();
        for read in recording.references() {
            let size = &mut table[read.file as usize].size_bytes;
            *size = (*size).max(read.end() * page_bytes);
        }
        let named = |process: &RecordedProcess| ProcessEntry { pid: process.pid, name: process.name.clone(), from: 0 };
        let processes = recording.processes.iter().map(named).collect();
        Self { name, recording, table, processes, origin_ns: 0, done: 0, skipped: 0 }
    }

    fn record(&self, at: usize, read: &Read) -> Record {
        let page_bytes = self.recording.about.page_bytes;
        Record {
            time: Nanos(read.time_ns - self.origin_ns),
            duration: Nanos(read.wait_ns),
            offset: read.start * page_bytes,
            size: u64::from(read.pages) * page_bytes,
            pid: self.recording.processes[read.process as usize].pid,
            file: read.file,
            stands_at: u32::try_from(at + 1).unwrap_or(u32::MAX),
            ..Record::default()
        }
    }
}

impl RecordReader for Hints {
    fn carries(&self) -> Carries {
        CARRIES
    }

    fn unit_bytes(&self) -> u64 {
        self.recording.about.page_bytes
    }

    fn files(&self) -> &[FileEntry] {
        &self.table
    }

    fn processes(&self) -> &[ProcessEntry] {
        &self.processes
    }

    fn note(&self) -> Option<String> {
        let lost = self.recording.about.lost_events;
        let lost = format!("; the kernel dropped {lost} events while recording: reads may be missing");
        let lost = if self.recording.about.lost_events > 0 { lost } else { String::new() };
        Some(format!("{SEEN}{lost}"))
    }

    fn read(&mut self, into: &mut Vec<Record>) -> Result<bool, TraceError> {
        into.clear();
        while into.len() < BATCH {
            let Some(read) = self.recording.reads.get(self.done) else { break };
            if read.is_reference() {
                into.push(self.record(self.done, read));
            } else {
                self.skipped += 1;
            }
            self.done += 1;
        }
        Ok(!into.is_empty())
    }

    fn skipped(&self) -> u64 {
        self.skipped
    }

    fn bad(&self, record: &Record, problem: &str, allowed: &str) -> TraceError {
        let problem = format!("{problem}; allowed: {allowed}");
        TraceError::Bad { file: self.name.clone(), place: ErrorPosition::Record(record.stands_at.into()), problem }
    }

    fn progress(&self) -> (u64, u64) {
        (self.done as u64, self.recording.reads.len() as u64)
    }
}
