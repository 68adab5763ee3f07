//! The result of a run: the JSON of the contract. All times are nanoseconds.

use headstart_assemble::LevelReport;
use headstart_device::Statistics;
use headstart_engine::parallel::{Ended, Idle, Node};
use headstart_engine::{CountsReport, Summary};
use serde::Serialize;
use toml::Table;

/// Version of the result's schema.
pub const SCHEMA: u32 = 1;

/// The result of a run.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    pub schema: u32,
    pub version: &'static str,
    pub scenario: Table,
    pub seed: u64,
    pub trace_sha256: String,
    /// Notes on the trace or the run; empty if there are none.
    pub notes: Vec<String>,
    pub elapsed_ns: u64,
    pub compute_ns: u64,
    pub driver_ns: u64,
    pub overhead_ns: u64,
    pub stall_ns: u64,
    pub barrier_ns: u64,
    pub idle_ns: u64,
    pub requests: u64,
    #[serde(flatten)]
    pub counts: CountsReport,
    pub throughput_bytes_per_s: u64,
    pub response_ns: Summary,
    pub levels: Vec<LevelReport>,
    pub devices: Vec<DeviceReport>,
    pub processes: Vec<ProcessReport>,
    pub intervals: Vec<IntervalReport>,
}

/// One disk. Sums are over completed requests, `busy_ns` up to the end of the run.
#[derive(Debug, Clone, Serialize)]
pub struct DeviceReport {
    pub requests: u64,
    /// Writes among `requests`.
    pub writes: u64,
    /// Requests that a scheduler merged with another one.
    pub merged: u64,
    pub blocks: u64,
    pub busy_ns: u64,
    pub utilization: f64,
    pub seek_ns: u64,
    pub rotation_ns: u64,
    pub transfer_ns: u64,
    pub overhead_ns: u64,
    /// Waits within the device: for buffered writes, a busy channel, a busy member of an array.
    pub wait_ns: u64,
    pub queue_ns: u64,
    pub service_ns_mean: u64,
    pub response_ns_mean: u64,
    pub buffer_hits: u64,
}

impl DeviceReport {
    /// From a drive's statistics over a run of `elapsed_ns`, in blocks of `block_sectors`.
    #[must_use]
    pub fn new(statistics: &Statistics, elapsed_ns: u64, block_sectors: u32) -> Self {
        let mean = |sum: u64, count: u64| sum.checked_div(count).unwrap_or(0);
        Self {
            requests: statistics.requests,
            writes: statistics.writes,
            merged: statistics.parts - statistics.requests,
            blocks: statistics.sectors / u64::from(block_sectors),
            busy_ns: statistics.busy.0,
            utilization: if elapsed_ns == 0 { 0.0 } else { statistics.busy.0 as f64 / elapsed_ns as f64 },
            seek_ns: statistics.seek.0,
            rotation_ns: statistics.rotation.0,
            transfer_ns: statistics.transfer.0,
            overhead_ns: statistics.overhead.0,
            wait_ns: statistics.wait.0,
            queue_ns: u64::try_from(statistics.queue_ns).unwrap_or(u64::MAX),
            service_ns_mean: mean(statistics.service.0, statistics.requests),
            response_ns_mean: (statistics.response_ns / u128::from(statistics.parts.max(1))) as u64,
            buffer_hits: statistics.buffer_hits,
        }
    }
}

/// One process. Compute, driver, overhead, stall, barrier and idle sum to `elapsed_ns`.
#[derive(Debug, Clone, Default, Serialize)]
pub struct ProcessReport {
    pub references: u64,
    pub hits_ready: u64,
    pub hits_unready: u64,
    pub misses: u64,
    /// Mean wait for an outstanding block until it was ready; for requests issued as a whole, the mean wait per such
    /// block of requests without a missing block.
    pub hit_wait_ns_mean: u64,
    /// Mean time from requesting a block to having it, including its cost and overrun.
    pub read_ns_mean: u64,
    pub elapsed_ns: u64,
    pub compute_ns: u64,
    pub driver_ns: u64,
    pub overhead_ns: u64,
    pub stall_ns: u64,
    pub barrier_ns: u64,
    pub idle_ns: u64,
    /// The part of `stall_ns` on the process's own I/O; all of it for a process that is not part of a parallel program.
    pub own_io_ns: u64,
    /// The part of `stall_ns` on blocks already outstanding for a prefetch or another process.
    pub other_io_ns: u64,
    /// Number of prefetch actions of its processor, and their durations.
    pub actions: u64,
    pub action_ns: u64,
    /// The part of `overhead_ns` in which actions delayed the process although it could have continued.
    pub overrun_ns: u64,
    /// Number of such delays.
    pub overruns: u64,
    /// Blocks read from buffers at other processors' nodes; absent if there are none.
    #[serde(skip_serializing_if = "is_zero")]
    pub remote_reads: u64,
    /// Idle periods by kind: their number, their length until the awaited event (necessary), and until the process
    /// continued (actual).
    #[serde(flatten)]
    pub periods: PeriodsReport,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // Required by serde.
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Idle periods of a process that is part of a parallel program.
#[derive(Debug, Clone, Default, Serialize)]
pub struct PeriodsReport {
    pub own_io_periods: u64,
    pub own_io_necessary_ns: u64,
    pub own_io_actual_ns: u64,
    pub other_io_periods: u64,
    pub other_io_necessary_ns: u64,
    pub other_io_actual_ns: u64,
    pub barrier_periods: u64,
    pub barrier_necessary_ns: u64,
    pub barrier_actual_ns: u64,
}

impl From<&Node> for PeriodsReport {
    fn from(node: &Node) -> Self {
        let [own, other, barrier] = [Idle::OwnIo, Idle::OtherIo, Idle::Barrier].map(|kind| node.periods(kind));
        Self {
            own_io_periods: own.count,
            own_io_necessary_ns: own.necessary.0,
            own_io_actual_ns: own.actual.0,
            other_io_periods: other.count,
            other_io_necessary_ns: other.necessary.0,
            other_io_actual_ns: other.actual.0,
            barrier_periods: barrier.count,
            barrier_necessary_ns: barrier.necessary.0,
            barrier_actual_ns: barrier.actual.0,
        }
    }
}

impl From<&Ended> for IntervalReport {
    fn from(ended: &Ended) -> Self {
        let Ended { interval, sums, critical } = ended;
        Self {
            start_ns: interval.start.0,
            end_ns: interval.end.0,
            critical: interval.critical,
            slack_ns: interval.slack.0,
            references: sums.references,
            hits_ready: sums.hits_ready,
            hits_unready: sums.hits_unready,
            misses: sums.misses,
            read_ns_mean: sums.read_time.0.checked_div(sums.references).unwrap_or(0),
            action_ns: sums.action_time.0,
            overrun_ns: sums.overrun.0,
            critical_compute_ns: critical.compute.0,
            critical_own_io_ns: critical.own_io.0,
            critical_other_io_ns: critical.other_io.0,
            critical_overrun_ns: critical.overrun.0,
        }
    }
}

/// The time from one barrier of a parallel program's processes to the next.
#[derive(Debug, Clone, Serialize)]
pub struct IntervalReport {
    pub start_ns: u64,
    pub end_ns: u64,
    /// The process that arrived last.
    pub critical: u32,
    /// By how much it arrived later than the one before it.
    pub slack_ns: u64,
    /// Of all processes together.
    pub references: u64,
    pub hits_ready: u64,
    pub hits_unready: u64,
    pub misses: u64,
    pub read_ns_mean: u64,
    pub action_ns: u64,
    pub overrun_ns: u64,
    /// How the critical process spent its time.
    pub critical_compute_ns: u64,
    pub critical_own_io_ns: u64,
    pub critical_other_io_ns: u64,
    pub critical_overrun_ns: u64,
}
