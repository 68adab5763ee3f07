//! The report of a forecast.

use headstart_trace::hints::Recording;
use headstart_types::Nanos;
use schemars::JsonSchema;
use serde::Serialize;

use super::host::Ran;
use crate::report::Report;

/// Version of these fields.
const SCHEMA: u32 = 1;
/// Minimum share of the plain time that prefetching must save to be worth it.
pub const BENEFIT_MIN: f64 = 0.05;
/// A smaller budget is recommended if it takes at most this many times as long as the best one.
const AS_GOOD: f64 = 1.01;

/// The default policy of `headstart run`.
const DEFAULT_POLICY: &str = "just-in-time";

/// A run of the command.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Row {
    /// "linux": plain, with the kernel's read-ahead; "demand": without it; else a hinted policy.
    pub policy: String,
    /// Prefetched and not yet used, at most; null without prefetching.
    pub budget_bytes: Option<u64>,
    /// From the start of the command to its end; with trusted hints from its head start on.
    pub elapsed_ns: u64,
    /// The part of the plain time that is saved, 0 to 1; negative where it takes longer.
    pub gain: f64,
    /// Requests to the devices.
    pub requests: u64,
    /// What the devices read in all.
    pub read_bytes: u64,
    /// Read by prefetching, holes included.
    pub prefetched_bytes: u64,
    /// The part of it that the command uses.
    pub used_bytes: u64,
    /// The part of `used_bytes` that the command asks for before it is there.
    pub late_bytes: u64,
    /// The part of `prefetched_bytes` that the command does not use.
    pub wasted_bytes: u64,
    /// Why prefetching stops before it is done; null if it does not.
    pub stopped: Option<String>,
}

impl Row {
    pub(super) fn plain(policy: &str, ran: Ran) -> Self {
        Self {
            policy: policy.to_owned(),
            budget_bytes: None,
            elapsed_ns: ran.elapsed.0,
            gain: 0.0,
            requests: ran.requests,
            read_bytes: ran.read_bytes,
            prefetched_bytes: 0,
            used_bytes: 0,
            late_bytes: 0,
            wasted_bytes: 0,
            stopped: None,
        }
    }

    pub(super) fn hinted(report: Report, budget_bytes: u64, ran: Ran, plain: &Row) -> Self {
        Self {
            budget_bytes: Some(budget_bytes),
            prefetched_bytes: report.prefetched_bytes,
            used_bytes: report.used_bytes,
            late_bytes: report.late_bytes,
            wasted_bytes: report.wasted_bytes,
            stopped: report.stopped,
            ..Self::plain(report.policy, ran).beside(plain.elapsed_ns)
        }
    }

    fn beside(self, plain_ns: u64) -> Self {
        let gain = if plain_ns == 0 { 0.0 } else { 1.0 - self.elapsed_ns as f64 / plain_ns as f64 };
        Self { gain, ..self }
    }
}

/// A device of the recording, and what it was simulated as.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DiskUsed {
    /// As in /dev; empty if it has no name.
    pub name: String,
    /// The profile.
    pub profile: String,
    /// What orders its queue.
    pub scheduler: String,
    /// The kernel's read-ahead.
    pub read_ahead_bytes: u64,
    /// Bytes of it that the recorded run has read, each page once.
    pub read_bytes: u64,
}

/// What to run.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Recommendation {
    /// The policy.
    pub policy: String,
    /// The budget.
    pub budget_bytes: u64,
    /// How long the command takes then.
    pub elapsed_ns: u64,
    /// The part of the plain time that is saved.
    pub gain: f64,
}

/// A command, plain and prefetched.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Forecast {
    /// Version of these fields.
    pub schema: u32,
    /// Version of the program.
    pub version: &'static str,
    /// The command and its arguments.
    pub command: Vec<String>,
    /// The devices that hold what it reads.
    pub devices: Vec<DiskUsed>,
    /// Whether the hints are trusted from the start.
    pub trusted: bool,
    /// How long it took when it was recorded.
    pub recorded_ns: u64,
    /// What the hints name, each page once.
    pub hinted_bytes: u64,
    /// With everything in the page cache.
    pub compute_ns: u64,
    /// No prefetching takes less.
    pub lower_bound_ns: u64,
    /// With the kernel's read-ahead: what the others are compared with.
    pub plain: Row,
    /// Without read-ahead.
    pub demand: Row,
    /// Prefetched.
    pub rows: Vec<Row>,
    /// The best of them; null where it saves less than 5 %.
    pub recommendation: Option<Recommendation>,
    /// What else there is to say.
    pub notes: Vec<String>,
}

impl Forecast {
    pub(super) fn new(
        recording: &Recording,
        devices: Vec<DiskUsed>,
        (hinted_bytes, compute, bound): (u64, Nanos, Nanos),
        (plain, demand): (Row, Row),
        rows: Vec<Row>,
        (trusted, notes): (bool, Vec<String>),
    ) -> Self {
        Self {
            schema: SCHEMA,
            version: env!("CARGO_PKG_VERSION"),
            command: recording.about.command.clone(),
            devices,
            trusted,
            recorded_ns: recording.about.elapsed_ns,
            hinted_bytes,
            compute_ns: compute.0,
            lower_bound_ns: bound.0,
            demand: demand.beside(plain.elapsed_ns),
            recommendation: recommended(&rows),
            plain,
            rows,
            notes,
        }
    }
}

/// The smallest budget that is about as good as the best, if it is worth it; with the default policy of `headstart run`
/// if possible.
fn recommended(rows: &[Row]) -> Option<Recommendation> {
    let best = rows.iter().map(|row| row.elapsed_ns).min()?;
    let as_good = rows.iter().filter(|row| row.elapsed_ns as f64 <= best as f64 * AS_GOOD && row.gain >= BENEFIT_MIN);
    let chosen = as_good.min_by_key(|row| (row.budget_bytes, row.policy != DEFAULT_POLICY, row.elapsed_ns))?;
    Some(Recommendation {
        policy: chosen.policy.clone(),
        budget_bytes: chosen.budget_bytes?,
        elapsed_ns: chosen.elapsed_ns,
        gain: chosen.gain,
    })
}
