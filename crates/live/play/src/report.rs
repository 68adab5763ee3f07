//! The result, with the same terms as `simulate` for the same things. All times are nanoseconds of wall-clock time.

use headstart_engine::{Responses, Summary};
use schemars::JsonSchema;
use serde::Serialize;

use crate::plan::Recorded;
use crate::{Addresses, Arrival, Processes, Settings, Survey, Think, Writes};

/// Version of the result's form.
pub const SCHEMA: u32 = 1;

/// Report of a replay.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Report {
    /// Version of this schema.
    pub schema: u32,
    /// Version of headstart.
    pub version: &'static str,
    /// The server.
    pub to: String,
    /// Size of the export.
    pub export_bytes: u64,
    /// Path of the trace.
    pub trace: String,
    /// SHA-256 of the trace's content.
    pub trace_sha256: String,
    /// When requests were sent.
    pub arrival: Arrival,
    /// Which requests belong to one process.
    pub processes_of: Processes,
    /// How the trace's writes were played.
    pub writes_as: Writes,
    /// How addresses beyond the export's end were treated.
    pub addresses: Addresses,
    /// Divisor of arrival and think times.
    pub speed: f64,
    /// Maximum requests in flight.
    pub depth: u32,
    /// Connections to the server that were used.
    pub connections: u32,
    /// Notes on the figures, one sentence each.
    pub notes: Vec<String>,
    /// Time from the start to the last reply. Multiplied by the number of processes, it equals `compute_ns` +
    /// `stall_ns` + `idle_ns`.
    pub elapsed_ns: u64,
    /// Closed arrival: time without an outstanding request before a process's last request, summed over processes.
    pub compute_ns: u64,
    /// Time with a request outstanding, summed over processes.
    pub stall_ns: u64,
    /// Open arrival: time without an outstanding request. Closed arrival: time from a process's end to the end of the
    /// run, summed over processes.
    pub idle_ns: u64,
    /// Completed requests.
    pub requests: u64,
    /// Writes among `requests`.
    pub writes: u64,
    /// Failed requests among `requests`.
    pub errors: u64,
    /// Bytes read.
    pub bytes_read: u64,
    /// Bytes written.
    pub bytes_written: u64,
    /// Bytes read and written per second of elapsed time.
    pub throughput_bytes_per_s: u64,
    /// Time from the issue of a request to its reply. With open arrival, from the time when the request was due.
    pub response_ns: Summary,
    /// `response_ns` of reads only.
    pub read_response_ns: Summary,
    /// `response_ns` of writes only.
    pub write_response_ns: Summary,
    /// Delay between the time when a request was due and its issue.
    pub late_ns: Summary,
    /// The processes, if `--processes per-pid` is given.
    pub processes: Vec<ProcessReport>,
}

/// One process.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ProcessReport {
    /// Process id in the trace.
    pub pid: u32,
    /// Completed requests.
    pub requests: u64,
    /// Time from the start of the replay to the process's last reply.
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
