//! The status of a watch for metrics collectors: a file as node_exporter's textfile collector reads it.

use super::Status;
use headstart_types::OpenMetrics;

impl Status {
    /// In the text format of OpenMetrics 1.0; sizes in bytes, times in seconds.
    #[must_use]
    pub fn to_openmetrics(&self) -> String {
        let labels = [("device", &*self.device.label()), ("profile", &*self.profile)];
        let mut metrics = OpenMetrics::new("headstart_tune_", &labels);
        let seen = &self.seen;
        let bytes = |kb: u64| (kb * 1024) as f64;
        let seconds = |ns: u64| ns as f64 / 1e9;
        let flag = |is: bool| f64::from(u8::from(is));
        for (name, unit, help, value) in [
            ("watching", "", "1 while the watch runs", flag(self.ended.is_none())),
            ("read_ahead_bytes", "bytes", "The current read-ahead", bytes(self.now_kb)),
            ("found_read_ahead_bytes", "bytes", "The read-ahead at the start of the watch", bytes(self.found_kb)),
            ("depth_bytes", "bytes", "The current competitive depth, not rounded", seen.bytes),
            ("seek_seconds", "seconds", "Moving average of the seek times", seconds(seen.seek_ns)),
            ("rate_bytes_per_second", "", "Moving average of the transfer rates", seen.bytes_per_second),
            ("watched_seconds", "seconds", "Time since the start", seconds(self.elapsed_ns)),
            ("low_for_faults", "", "Whether the depth is low because of faults", flag(seen.low_for_faults)),
        ] {
            metrics.gauge(name, unit, help, value);
        }
        for (name, help, value) in [
            ("requests", "Requests that the device has served", seen.requests),
            ("switches", "Requests that did not start where the previous one ended", seen.switches),
            ("lost_events", "Events that were overwritten before they were read", seen.lost),
            ("writes", "Values written to read_ahead_kb", seen.writes),
            ("read_arounds", "Page faults for which the kernel read the surrounding pages", seen.read_arounds),
            ("around_bytes", "Bytes read around those faults, beyond their own 64 KiB", seen.around_bytes),
            ("around_used_bytes", "Bytes read around faults that were mapped later", seen.around_used_bytes),
            ("lost_fault_events", "Fault events that were overwritten before they were read", seen.lost_faults),
            ("fault_pauses", "Pauses of the tracing of faults because there were too many", seen.fault_pauses),
        ] {
            metrics.counter(name, "", help, value as f64);
        }
        metrics.finish()
    }
}
