//! Statistics of an emulated disk, as a record and as JSON.

use hdrhistogram::Histogram;
use headstart_device::{Finished, Statistics as DriveStatistics};
use headstart_types::Nanos;
use schemars::JsonSchema;
use serde::Serialize;

/// Version of the JSON.
const SCHEMA: u32 = 1;
/// Significant digits of percentiles.
const DIGITS: u8 = 3;

/// A distribution of times, in nanoseconds. All fields are 0 if there are no values.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Spread {
    /// Number of values.
    pub count: u64,
    /// Mean, rounded down.
    pub mean: u64,
    /// Median. Percentiles have three significant digits.
    pub p50: u64,
    /// 99th percentile.
    pub p99: u64,
    /// Maximum.
    pub max: u64,
}

/// Distribution of times, in constant memory.
#[derive(Debug)]
pub(super) struct Times {
    histogram: Histogram<u64>,
    sum: u128,
    max: u64,
}

impl Times {
    pub fn new() -> Self {
        Self { histogram: Histogram::new(DIGITS).expect("3 digits are allowed"), sum: 0, max: 0 }
    }

    pub fn record(&mut self, time: Nanos) {
        self.sum += u128::from(time.0);
        self.max = self.max.max(time.0);
        self.histogram.record(time.0).expect("the histogram grows with its values");
    }

    pub fn spread(&self) -> Spread {
        let percentile = |share: f64| self.histogram.value_at_quantile(share).min(self.max);
        let count = self.histogram.len();
        let mean = self.sum.checked_div(u128::from(count)).unwrap_or(0) as u64;
        Spread { count, mean, p50: percentile(0.5), p99: percentile(0.99), max: self.max }
    }
}

/// Counters in addition to the drive's statistics.
#[derive(Debug)]
pub(super) struct Counts {
    bytes: u64,
    sequential: u64,
    /// End of the last completed read.
    end_sector: Option<u64>,
    pub queue_depth_max: u32,
    /// Reads that the image could not answer.
    pub failed: u64,
    /// Lateness of replies after the drive's completions.
    pub lateness: Times,
    /// The arm has real-time priority.
    pub real_time: bool,
}

impl Counts {
    pub fn new() -> Self {
        Self {
            bytes: 0,
            sequential: 0,
            end_sector: None,
            queue_depth_max: 0,
            failed: 0,
            lateness: Times::new(),
            real_time: false,
        }
    }

    /// Counts a completed read of `bytes`.
    pub fn ended(&mut self, finished: &Finished, bytes: u64) {
        self.bytes += bytes;
        self.sequential += u64::from(self.end_sector == Some(finished.request.sector));
        self.end_sector = Some(finished.request.end());
    }
}

/// What is emulated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct About {
    /// The drive, as given on the command line.
    pub profile: String,
    /// Scheduler of the drive's queue.
    pub scheduler: String,
    /// Path of the image.
    pub image: String,
    /// Size of the image.
    pub image_bytes: u64,
    /// Capacity of the drive; null if it has no limit.
    pub capacity_bytes: Option<u64>,
}

/// Statistics of an emulated disk since its mount. Sums are over reads that the drive has completed by now.
///
/// Identities: `service_ns = seek_ns + rotation_ns + transfer_ns + overhead_ns + wait_ns`; if the scheduler merges
/// nothing, `response_ns = queue_ns + service_ns` and `device_requests = requests`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Statistics {
    /// Version of this schema.
    pub schema: u32,
    /// Version of headstart.
    pub version: &'static str,
    /// What is emulated.
    #[serde(flatten)]
    pub about: About,
    /// Time since the mount.
    pub elapsed_ns: u64,
    /// Completed reads.
    pub requests: u64,
    /// Requests that the drive has served. Fewer than `requests` if the scheduler merges.
    pub device_requests: u64,
    /// Bytes requested.
    pub bytes: u64,
    /// Reads that began where the read that completed before them ended.
    pub sequential: u64,
    /// The share of `requests` that was sequential, 0 to 1.
    pub sequential_share: f64,
    /// Requests whose first sector was in the drive's buffer.
    pub buffer_hits: u64,
    /// Time during which the drive served a request.
    pub busy_ns: u64,
    /// The share of `elapsed_ns` that the drive was busy, 0 to 1.
    pub utilization: f64,
    /// Sum: seek time.
    pub seek_ns: u64,
    /// Sum: rotational latency.
    pub rotation_ns: u64,
    /// Sum: transfer from the media and over the bus.
    pub transfer_ns: u64,
    /// Sum: controller overhead.
    pub overhead_ns: u64,
    /// Sum: other waits within the drive.
    pub wait_ns: u64,
    /// Sum: service time, which consists of the five sums above.
    pub service_ns: u64,
    /// Sum: time from arrival to the start of service.
    pub queue_ns: u64,
    /// Sum: time from arrival to the end of service.
    pub response_ns: u64,
    /// Reads that have arrived and are not completed.
    pub outstanding: u32,
    /// Maximum number of outstanding reads at any time.
    pub queue_depth_max: u32,
    /// Reads that failed because the image could not be read.
    pub failed: u64,
    /// Lateness of replies: time from the drive's simulated completion to the reply.
    pub lateness_ns: Spread,
    /// Whether the threads that answer have real-time priority.
    pub real_time: bool,
    /// Duration of a read that needs no drive: the median of 1,001, measured at the mount. Null if it could not be
    /// measured.
    pub fuse_round_trip_ns: Option<u64>,
}

impl Statistics {
    pub(super) fn new(
        about: About,
        now: Nanos,
        drive: &DriveStatistics,
        outstanding: u32,
        counts: &Counts,
        fuse_round_trip_ns: Option<u64>,
    ) -> Self {
        let share = |part: u64, whole: u64| if whole == 0 { 0.0 } else { part as f64 / whole as f64 };
        Self {
            schema: SCHEMA,
            version: env!("CARGO_PKG_VERSION"),
            about,
            elapsed_ns: now.0,
            requests: drive.parts,
            device_requests: drive.requests,
            bytes: counts.bytes,
            sequential: counts.sequential,
            sequential_share: share(counts.sequential, drive.parts),
            buffer_hits: drive.buffer_hits,
            busy_ns: drive.busy.0,
            utilization: share(drive.busy.0, now.0),
            seek_ns: drive.seek.0,
            rotation_ns: drive.rotation.0,
            transfer_ns: drive.transfer.0,
            overhead_ns: drive.overhead.0,
            wait_ns: drive.wait.0,
            service_ns: drive.service.0,
            queue_ns: u64::try_from(drive.queue_ns).unwrap_or(u64::MAX),
            response_ns: u64::try_from(drive.response_ns).unwrap_or(u64::MAX),
            outstanding,
            queue_depth_max: counts.queue_depth_max,
            failed: counts.failed,
            lateness_ns: counts.lateness.spread(),
            real_time: counts.real_time,
            fuse_round_trip_ns,
        }
    }

    /// JSON on one line.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("texts and finite numbers")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_by_hand() {
        let mut times = Times::new();
        assert_eq!(times.spread(), Spread::default());
        for us in 1..=200 {
            times.record(Nanos::from_micros(us));
        }
        let Spread { count, mean, p50, p99, max } = times.spread();
        assert_eq!((count, mean, max), (200, 100_500, 200_000));
        // Three significant digits.
        assert!((100_000..100_100).contains(&p50) && (198_000..198_200).contains(&p99), "{p50} {p99}");
    }
}
