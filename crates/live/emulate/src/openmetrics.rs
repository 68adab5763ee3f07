//! The statistics of an emulated disk for metrics collectors.

use headstart_types::Nanos;

use super::statistics::{Spread, Statistics};
use headstart_types::OpenMetrics;

impl Statistics {
    /// The text format of OpenMetrics 1.0, with times in seconds.
    #[must_use]
    pub fn to_openmetrics(&self) -> String {
        let mut metrics = OpenMetrics::new("headstart_emulate_", &[("profile", &self.about.profile)]);
        for (name, value, help) in [
            ("requests", self.requests, "Reads that have ended"),
            ("sequential_requests", self.sequential, "Reads that began where the one before ended"),
            ("failed_requests", self.failed, "Reads that the image could not answer"),
            ("buffer_hits", self.buffer_hits, "Requests whose first sector was in the buffer of the drive"),
        ] {
            metrics.counter(name, "", help, value as f64);
        }
        metrics.counter("read_bytes", "bytes", "Bytes requested", self.bytes as f64);
        for (name, value, help) in [
            ("busy_seconds", self.busy_ns, "Time during which the drive served a request"),
            ("seek_seconds", self.seek_ns, "Seek time"),
            ("rotation_seconds", self.rotation_ns, "Rotational latency"),
            ("transfer_seconds", self.transfer_ns, "Transfer from the media and over the bus"),
            ("overhead_seconds", self.overhead_ns, "Controller overhead"),
            ("wait_seconds", self.wait_ns, "Other waits within the drive"),
            ("queue_seconds", self.queue_ns, "Time from arrival to the start of service"),
        ] {
            metrics.counter(name, "seconds", help, seconds(value));
        }
        for (name, value, help) in [
            ("outstanding_requests", self.outstanding, "Reads that have arrived and are not completed"),
            ("queue_depth_max", self.queue_depth_max, "Maximum number of outstanding reads at any time"),
        ] {
            metrics.gauge(name, "", help, f64::from(value));
        }
        let Spread { count, mean, p50, p99, max } = self.lateness_ns;
        let quantiles = [
            (" ,quantile=\"0.5\"", seconds(p50)),
            (" ,quantile=\"0.99\"", seconds(p99)),
            (" ,quantile=\"1\"", seconds(max)),
            ("_count", count as f64),
            ("_sum", seconds(mean * count)),
        ];
        let help = "Delay of replies after the end of service in the drive";
        metrics.family("lateness_seconds", "summary", "seconds", help, &quantiles);
        metrics.finish()
    }
}

fn seconds(ns: u64) -> f64 {
    Nanos(ns).as_secs_f64()
}

#[cfg(test)]
mod tests {
    use headstart_device::Statistics as DriveStatistics;

    use super::super::statistics::{About, Counts};
    use super::*;

    #[test]
    fn open_metrics_has_each_family_once_and_ends() {
        let about = About {
            profile: "a \"drive\"".to_owned(),
            scheduler: "fcfs".to_owned(),
            image: "image".to_owned(),
            image_bytes: 4096,
            capacity_bytes: None,
        };
        let drive = DriveStatistics { parts: 7, busy: Nanos::from_millis(1_500), ..DriveStatistics::default() };
        let mut counts = Counts::new();
        counts.lateness.record(Nanos::from_micros(20));
        let text = Statistics::new(about, Nanos::from_millis(3_000), &drive, 2, &counts, None).to_openmetrics();
        let label = "{profile=\"a \\\"drive\\\"\"";
        for line in [
            "# TYPE headstart_emulate_requests counter".to_owned(),
            format!("headstart_emulate_requests_total{label}}} 7"),
            "# UNIT headstart_emulate_busy_seconds seconds".to_owned(),
            format!("headstart_emulate_busy_seconds_total{label}}} 1.5"),
            format!("headstart_emulate_outstanding_requests{label}}} 2"),
            format!("headstart_emulate_lateness_seconds{label},quantile=\"1\"}} 0.00002"),
            format!("headstart_emulate_lateness_seconds_count{label}}} 1"),
        ] {
            assert_eq!(text.lines().filter(|each| **each == line).count(), 1, "{line}\n{text}");
        }
        assert!(text.ends_with("\n# EOF\n"));
        let families: Vec<&str> = text.lines().filter(|line| line.starts_with("# TYPE ")).collect();
        let mut once = families.clone();
        once.sort_unstable();
        once.dedup();
        assert_eq!(once.len(), families.len());
    }
}
