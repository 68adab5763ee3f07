//! The result, with the same terms as `simulate` for the same things. All times are nanoseconds of wall-clock time.

use headstart_engine::{Responses, Summary};
use schemars::JsonSchema;
use serde::Serialize;

use crate::plan::Recorded;
use crate::{Addresses, Arrival, Processes, Settings, Survey, Think, Writes};

/// Version of the result's form.
pub const SCHEMA: u32 = 1;

/// What a replay gives.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Report {
    /// Version of this form.
    pub schema: u32,
    /// Version of headstart.
    pub version: &'static str,
    /// The server.
    pub to: String,
    /// Size of the export.
    pub export_bytes: u64,
    /// The trace.
    pub trace: String,
    /// Hash of its content.
    pub trace_sha256: String,
    /// When requests were sent.
    pub arrival: Arrival,
    /// Whether processes ran one by one.
    pub processes_of: Processes,
    /// What became of the trace's writes.
    pub writes_as: Writes,
    /// What became of addresses beyond the export's end.
    pub addresses: Addresses,
    /// Divisor of arrival and think times.
    pub speed: f64,
    /// Maximum requests in flight.
    pub depth: u32,
    /// Connections to the server that were used.
    pub connections: u32,
    /// Remarks needed to read the figures.
    pub notes: Vec<String>,
    /// From the start to the last reply; times the number of processes it equals `compute_ns` + `stall_ns` + `idle_ns`.
    pub elapsed_ns: u64,
    /// Closed: time without an outstanding request before a process's last request, summed over processes.
    pub compute_ns: u64,
    /// Time with a request outstanding, summed over processes.
    pub stall_ns: u64,
    /// Open: time without an outstanding request. Closed: time from a process's end to the end of the run. Summed over processes.
    pub idle_ns: u64,
    /// Completed requests.
    pub requests: u64,
    /// The part of `requests` that wrote.
    pub writes: u64,
    /// The part of `requests` that failed.
    pub errors: u64,
    /// Bytes read.
    pub bytes_read: u64,
    /// Bytes written.
    pub bytes_written: u64,
    /// Bytes of both kinds over the elapsed time.
    pub throughput_bytes_per_s: u64,
    /// Time from the issue of a request (open: from when it was due) to its reply.
    pub response_ns: Summary,
    /// The same of reads.
    pub read_response_ns: Summary,
    /// The same of writes.
    pub write_response_ns: Summary,
    /// Delay from the time when a request was due to its issue.
    pub late_ns: Summary,
    /// The processes, with `--processes per-pid`.
    pub processes: Vec<ProcessReport>,
}

/// One process.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ProcessReport {
    /// Its number in the trace.
    pub pid: u32,
    /// Completed requests.
    pub requests: u64,
    /// Time until its last reply.
    pub elapsed_ns: u64,
    /// Time without an outstanding request.
    pub compute_ns: u64,
    /// Time with a request outstanding.
    pub stall_ns: u64,
    /// Mean response time of its requests.
    pub response_ns_mean: u64,
}

/// Counters of a replay.
pub(crate) struct Tally {
    pub writes: u64,
    pub errors: u64,
    /// The server's message of the first error.
    pub first_error: Option<String>,
    pub bytes_read: u64,
    pub bytes_written: u64,
    pub requests: u64,
    pub all: Responses,
    pub reads: Responses,
    pub written: Responses,
    pub late: Responses,
    /// Requests were delayed by the depth.
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

/// What readers of the figures must know.
pub(crate) fn notes(settings: &Settings, survey: &Survey, recorded: Recorded, tally: &Tally) -> Vec<String> {
    let mut notes: Vec<String> = survey.note.iter().cloned().collect();
    if survey.writes > 0 && settings.writes() == Writes::AsRead {
        notes.push(format!("{} writes of the trace were read; --writable writes them", survey.writes));
    }
    if settings.arrival == Arrival::Closed && settings.compute == Think::Trace && recorded == Recorded::Nothing {
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
