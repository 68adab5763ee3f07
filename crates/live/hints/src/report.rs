//! The report of a run.

use serde::Serialize;

use headstart_types::OpenMetrics;

/// Version of these fields.
const SCHEMA: u32 = 1;

/// Prefetch statistics of a run. Sizes are in whole pages.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// Version of these fields.
    pub schema: u32,
    /// Version of the program.
    pub version: &'static str,
    /// The policy.
    pub policy: &'static str,
    /// Time from the start of the command to its end.
    pub elapsed_ns: u64,
    /// Time for which the start of the command was delayed, while a disk with an arm was prefetched from. 0 unless the
    /// hints are trusted.
    pub head_start_ns: u64,
    /// Bytes prefetched from the device into the page cache, including holes that were read together with their
    /// neighbours.
    pub prefetched_bytes: u64,
    /// The part of `prefetched_bytes` that the command has used.
    pub used_bytes: u64,
    /// The part of `used_bytes` that the command requested before the prefetch was complete.
    pub late_bytes: u64,
    /// The part of `prefetched_bytes` that the command has not used.
    pub wasted_bytes: u64,
    /// Why prefetching stopped early. Null if it did not.
    pub stopped: Option<String>,
    /// Bytes that the hints name, each page counted once.
    pub hinted_bytes: u64,
    /// The part of `hinted_bytes` that was already in the page cache.
    pub cached_bytes: u64,
    /// The part of `hinted_bytes` in files that have changed or no longer exist.
    pub stale_bytes: u64,
    /// Maximum of prefetched but unused data.
    pub budget_bytes: u64,
    /// Whether the command's references were observed. If not, `used_bytes` and `late_bytes` are 0, and everything was
    /// prefetched within the budget.
    pub observed: bool,
    /// Notes, one sentence each.
    pub notes: Vec<String>,
}

impl Report {
    pub(crate) fn new(policy: &'static str) -> Self {
        Self {
            schema: SCHEMA,
            version: env!("CARGO_PKG_VERSION"),
            policy,
            elapsed_ns: 0,
            head_start_ns: 0,
            prefetched_bytes: 0,
            used_bytes: 0,
            late_bytes: 0,
            wasted_bytes: 0,
            stopped: None,
            hinted_bytes: 0,
            cached_bytes: 0,
            stale_bytes: 0,
            budget_bytes: 0,
            observed: false,
            notes: Vec::new(),
        }
    }

    /// The report in one line.
    #[must_use]
    pub fn line(&self) -> String {
        let mb = |bytes: u64| bytes as f64 / 1e6;
        let stopped = self.stopped.as_ref().map(|why| format!("; stopped: {why}")).unwrap_or_default();
        let seconds = |ns: u64| ns as f64 / 1e9;
        let head_start = match self.head_start_ns {
            0 => String::new(),
            ns => format!(" after a head start of {:.2} s", seconds(ns)),
        };
        format!(
            "{:.2} s{head_start}, {}: {:.1} MB prefetched, {:.1} MB used ({:.1} MB late), {:.1} MB wasted, {:.1} MB were in the page cache{stopped}",
            seconds(self.elapsed_ns),
            self.policy,
            mb(self.prefetched_bytes),
            mb(self.used_bytes),
            mb(self.late_bytes),
            mb(self.wasted_bytes),
            mb(self.cached_bytes),
        )
    }

    /// The report as text for metrics collectors.
    #[must_use]
    pub fn to_openmetrics(&self) -> String {
        let mut metrics = OpenMetrics::new("headstart_run_", &[("policy", self.policy)]);
        metrics.gauge(
            "elapsed_seconds",
            "seconds",
            "Time from the start of the command to its end",
            self.elapsed_ns as f64 / 1e9,
        );
        let head_start = self.head_start_ns as f64 / 1e9;
        metrics.gauge("head_start_seconds", "seconds", "Time of prefetching before the command started", head_start);
        let bytes = [
            ("prefetched_bytes", "Bytes prefetched from the device into the page cache", self.prefetched_bytes),
            ("used_bytes", "The part of prefetched_bytes that the command has used", self.used_bytes),
            (
                "late_bytes",
                "The part of used_bytes that the command requested before the prefetch was complete",
                self.late_bytes,
            ),
            ("wasted_bytes", "The part of prefetched_bytes that the command has not used", self.wasted_bytes),
            ("hinted_bytes", "Bytes that the hints name, each page counted once", self.hinted_bytes),
            ("cached_bytes", "The part of hinted_bytes that was already in the page cache", self.cached_bytes),
            ("stale_bytes", "The part of hinted_bytes in files that have changed or no longer exist", self.stale_bytes),
            ("budget_bytes", "Maximum of prefetched but unused data", self.budget_bytes),
        ];
        for (name, help, value) in bytes {
            metrics.gauge(name, "bytes", help, value as f64);
        }
        let stopped = f64::from(u8::from(self.stopped.is_some()));
        metrics.gauge("stopped", "", "1 if prefetching stopped early", stopped);
        metrics.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_start_is_said() {
        let mut report = Report { elapsed_ns: 270_000_000, ..Report::new("just-in-time") };
        assert!(report.line().starts_with("0.27 s, just-in-time: 0.0 MB prefetched"));
        report.head_start_ns = 2_900_000_000;
        assert!(report.line().starts_with("0.27 s after a head start of 2.90 s, just-in-time: "));
        assert!(report.to_openmetrics().contains("headstart_run_head_start_seconds{policy=\"just-in-time\"} 2.9\n"));
    }
}
