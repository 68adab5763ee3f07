//! The result: the words of `simulate`'s where they mean the same. All times are nanoseconds of the clock on the wall.

use headstart_engine::{Responses, Summary};
use serde::Serialize;

use crate::plan::Recorded;
use crate::{Addresses, Arrival, Processes, Settings, Survey, Think, Writes};

/// Version of the result's shape.
pub const SCHEMA: u32 = 1;

/// What a replay gives.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// Version of this shape.
    pub schema: u32,
    /// Of headstart.
    pub version: &'static str,
    /// The server.
    pub to: String,
    /// The export's size.
    pub export_bytes: u64,
    /// The trace.
    pub trace: String,
    /// Its content.
    pub trace_sha256: String,
    /// As set.
    pub arrival: Arrival,
    /// As set.
    pub processes_of: Processes,
    /// As set.
    pub writes_as: Writes,
    /// As set.
    pub addresses: Addresses,
    /// As set.
    pub speed: f64,
    /// In flight, at most.
    pub depth: u32,
    /// To the server.
    pub connections: u32,
    /// What a reader of the figures must know.
    pub notes: Vec<String>,
    /// From the first request's time to the last reply.
    pub elapsed_ns: u64,
    /// Closed: when a process thought, and nothing of it was outstanding; a sum over processes.
    pub compute_ns: u64,
    /// When something was outstanding; a sum over processes.
    pub stall_ns: u64,
    /// Open: when nothing was outstanding. Closed: what processes had left when they were done before the last; a sum.
    pub idle_ns: u64,
    /// Replied to.
    pub requests: u64,
    /// The part of them that wrote.
    pub writes: u64,
    /// The part of them that failed.
    pub errors: u64,
    /// Content that was read.
    pub bytes_read: u64,
    /// Content that was written.
    pub bytes_written: u64,
    /// Of both kinds, over the elapsed time.
    pub throughput_bytes_per_s: u64,
    /// From issue (open: from when it was due) to reply.
    pub response_ns: Summary,
    /// The same of reads.
    pub read_response_ns: Summary,
    /// The same of writes.
    pub write_response_ns: Summary,
    /// By how much requests were sent after they were due.
    pub late_ns: Summary,
    /// Each process, if they are told apart.
    pub processes: Vec<ProcessReport>,
}

/// One process.
#[derive(Debug, Clone, Serialize)]
pub struct ProcessReport {
    /// Its number in the trace.
    pub pid: u32,
    /// Replied to.
    pub requests: u64,
    /// Until its last reply.
    pub elapsed_ns: u64,
    /// As of all.
    pub compute_ns: u64,
    /// As of all.
    pub stall_ns: u64,
    /// Of its requests.
    pub response_ns_mean: u64,
}

/// What is counted on the way.
pub(crate) struct Tally {
    pub writes: u64,
    pub errors: u64,
    /// What the server said of the first error.
    pub first_error: Option<String>,
    pub bytes_read: u64,
    pub bytes_written: u64,
    pub requests: u64,
    pub all: Responses,
    pub reads: Responses,
    pub written: Responses,
    pub late: Responses,
    /// The depth held something back.
    pub held_back: bool,
}

impl Tally {
    pub fn new() -> Self {
        let [all, reads, written, late] = std::array::from_fn(|_| Responses::new());
        Self {
            writes: 0,
            errors: 0,
            first_error: None,
            bytes_read: 0,
            bytes_written: 0,
            requests: 0,
            all,
            reads,
            written,
            late,
            held_back: false,
        }
    }
}

/// What a reader of the figures must know.
pub(crate) fn notes(settings: &Settings, survey: &Survey, recorded: Recorded, tally: &Tally) -> Vec<String> {
    let mut notes: Vec<String> = survey.note.iter().cloned().collect();
    if survey.writes > 0 && settings.writes == Writes::AsRead {
        notes.push(format!("{} writes of the trace were read; --writable writes them", survey.writes));
    }
    if settings.arrival == Arrival::Closed && settings.think == Think::Trace && recorded == Recorded::Nothing {
        let what = if survey.carries.time { "no durations: think times cannot be told from waits" } else { "no times" };
        notes.push(format!("the trace carries {what}; think times are zero; set compute"));
    }
    if !survey.files.is_empty() {
        notes.push(format!("the trace's {} files lie one after another", survey.files.len()));
    }
    if let Some(error) = &tally.first_error {
        notes.push(format!("{} requests failed; the first: {error}", tally.errors));
    }
    if tally.held_back {
        let depth = settings.depth();
        notes.push(format!(
            "{depth} requests were in flight, and others waited for a place: a larger depth sends them in time"
        ));
    }
    let late = tally.late.summary();
    if late.mean > 1_000_000 && !tally.held_back {
        let (mean, max) = (late.mean as f64 / 1e6, late.max as f64 / 1e6);
        notes.push(format!(
            "requests were sent {mean:.1} ms late on average, {max:.1} ms at most: this machine is busy"
        ));
    }
    notes
}
