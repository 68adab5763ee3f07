//! The status of a watch for those who collect metrics: a file as node_exporter's textfile collector reads it.

use std::fmt::Write;

use super::Status;
use crate::emulate::escaped;

impl Status {
    /// In the text format of OpenMetrics 1.0; sizes in bytes, times in seconds.
    #[must_use]
    pub fn to_openmetrics(&self) -> String {
        let mut text = String::new();
        let labels = format!("device=\"{}\",profile=\"{}\"", escaped(&self.device.label()), escaped(&self.profile));
        let mut family = |name: &str, kind: &str, unit: &str, help: &str, value: f64| {
            let name = format!("headstart_tune_{name}");
            let unit_line = if unit.is_empty() { String::new() } else { format!("# UNIT {name} {unit}\n") };
            let suffix = if kind == "counter" { "_total" } else { "" };
            let _ = write!(text, "# TYPE {name} {kind}\n{unit_line}# HELP {name} {help}\n");
            let _ = writeln!(text, "{name}{suffix}{{{labels}}} {value}");
        };
        let seen = &self.seen;
        let bytes = |kb: u64| (kb * 1024) as f64;
        let seconds = |ns: u64| ns as f64 / 1e9;
        family("watching", "gauge", "", "Whether it is watched", f64::from(u8::from(self.ended.is_none())));
        family("read_ahead_bytes", "gauge", "bytes", "The read-ahead that stands", bytes(self.now_kb));
        family("found_read_ahead_bytes", "gauge", "bytes", "The read-ahead that was found", bytes(self.found_kb));
        family("depth_bytes", "gauge", "bytes", "The competitive depth of now, not rounded", seen.bytes);
        family("seek_seconds", "gauge", "seconds", "Moving average of seeks", seconds(seen.seek_ns));
        family("rate_bytes_per_second", "gauge", "", "Moving average of rates", seen.bytes_per_second);
        family("watched_seconds", "gauge", "seconds", "Time since the start", seconds(self.elapsed_ns));
        family(
            "low_for_faults",
            "gauge",
            "",
            "Whether the depth is low because of faults",
            f64::from(u8::from(seen.low_for_faults)),
        );
        let counts = [
            ("requests", seen.requests, "Requests that the device has served"),
            ("switches", seen.switches, "Those that did not go on where the one before ended"),
            ("lost_events", seen.lost, "Events that were overwritten before they were read"),
            ("writes", seen.writes, "Numbers that were written"),
            ("read_arounds", seen.read_arounds, "Faults of mapped files around which the kernel has read"),
            ("around_bytes", seen.around_bytes, "What came with them beside their own 64 KiB"),
            ("around_used_bytes", seen.around_used_bytes, "What of that was mapped later"),
            ("lost_fault_events", seen.lost_faults, "Events of faults that were overwritten before they were read"),
            ("fault_pauses", seen.fault_pauses, "Times that faults were too many to be followed"),
        ];
        for (name, value, help) in counts {
            family(name, "counter", "", help, value as f64);
        }
        text + "# EOF\n"
    }
}
