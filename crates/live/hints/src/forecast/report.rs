//! The report of a forecast.

use schemars::JsonSchema;
use serde::Serialize;

/// Version of this schema.
pub(super) const SCHEMA: u32 = 1;
/// Minimum share of the plain time that prefetching must save to be worth it.
pub const BENEFIT_MIN: f64 = 0.05;
/// A smaller budget is recommended if it takes at most this many times as long as the best one.
const AS_GOOD: f64 = 1.01;

/// The default policy of `headstart run`.
const DEFAULT_POLICY: &str = "just-in-time";

/// A simulated run of the command.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct Row {
    /// "linux": a plain run with the kernel's read-ahead; "demand": a plain run without it; otherwise a hinted policy.
    pub policy: String,
    /// Maximum of prefetched but unused data. Null without prefetching.
    pub budget_bytes: Option<u64>,
    /// Time from the start of the command to its end. With trusted hints, its head start is included.
    pub elapsed_ns: u64,
    /// The saved share of the plain run's time, at most 1. Negative if the run takes longer.
    pub gain: f64,
    /// Requests to the devices.
    pub requests: u64,
    /// Bytes that the devices read.
    pub read_bytes: u64,
    /// Bytes read by prefetching, holes included.
    pub prefetched_bytes: u64,
    /// The part of `prefetched_bytes` that the command uses.
    pub used_bytes: u64,
    /// The part of `used_bytes` that the command requests before the prefetch is complete.
    pub late_bytes: u64,
    /// The part of `prefetched_bytes` that the command does not use.
    pub wasted_bytes: u64,
    /// Why prefetching stops early. Null if it does not.
    pub stopped: Option<String>,
}

impl Row {
    pub(super) fn beside(self, plain: &Row) -> Self {
        let plain_ns = plain.elapsed_ns;
        let gain = if plain_ns == 0 { 0.0 } else { 1.0 - self.elapsed_ns as f64 / plain_ns as f64 };
        Self { gain, ..self }
    }
}

/// A device of the recording and its model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct DiskUsed {
    /// Name in /dev. Empty if the device has none.
    pub name: String,
    /// The profile that was simulated.
    pub profile: String,
    /// The scheduler of the device's queue.
    pub scheduler: String,
    /// The kernel's read-ahead on this device.
    pub read_ahead_bytes: u64,
    /// Bytes of the device that the recorded run has read, each page counted once.
    pub read_bytes: u64,
}

/// The recommended run.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Recommendation {
    /// The policy.
    pub policy: String,
    /// The budget.
    pub budget_bytes: u64,
    /// Time from the start of the command to its end.
    pub elapsed_ns: u64,
    /// The saved share of the plain run's time.
    pub gain: f64,
}

/// Forecast of a command: plain, and with prefetching.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Forecast {
    /// Version of this schema.
    pub schema: u32,
    /// Version of headstart.
    pub version: &'static str,
    /// The command and its arguments.
    pub command: Vec<String>,
    /// The devices that hold the data that the command reads.
    pub devices: Vec<DiskUsed>,
    /// Whether the hints are trusted from the start.
    pub trusted: bool,
    /// Duration of the recorded run.
    pub recorded_ns: u64,
    /// Bytes that the hints name, each page counted once.
    pub hinted_bytes: u64,
    /// Duration of the run if all data are in the page cache.
    pub compute_ns: u64,
    /// Lower bound on the duration with any prefetching.
    pub lower_bound_ns: u64,
    /// The run with the kernel's read-ahead and without prefetching. `gain` compares the other runs with it.
    pub plain: Row,
    /// The run without read-ahead and without prefetching.
    pub demand: Row,
    /// The runs with prefetching.
    pub rows: Vec<Row>,
    /// The best run with prefetching. Null if it saves less than 5 %.
    pub recommendation: Option<Recommendation>,
    /// Notes, one sentence each.
    pub notes: Vec<String>,
}

/// The smallest budget that is about as good as the best, if it is worth it; with the default policy of `headstart run`
/// if possible.
pub(super) fn recommended(rows: &[Row]) -> Option<Recommendation> {
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
