//! Metrics in the text format of OpenMetrics 1.0. The crate `prometheus-client` has no summaries, which the emulated
//! disk needs.

use std::fmt::Write;

/// Metric families whose names share a prefix and whose samples share labels.
pub struct OpenMetrics {
    prefix: &'static str,
    labels: String,
    text: String,
}

impl OpenMetrics {
    /// Families whose names begin with `prefix`, and whose samples all have `labels`.
    #[must_use]
    pub fn new(prefix: &'static str, labels: &[(&str, &str)]) -> Self {
        let labels: Vec<String> = labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
        Self { prefix, labels: labels.join(","), text: String::new() }
    }

    /// Adds a value that only increases.
    pub fn counter(&mut self, name: &str, unit: &str, help: &str, value: f64) {
        self.family(name, "counter", unit, help, &[("_total", value)]);
    }

    /// Adds a value that goes up and down.
    pub fn gauge(&mut self, name: &str, unit: &str, help: &str, value: f64) {
        self.family(name, "gauge", unit, help, &[("", value)]);
    }

    /// Adds a family of any kind. A sample is the suffix of its name, optionally followed by a space and its own
    /// labels; `unit` may be empty.
    pub fn family(&mut self, name: &str, kind: &str, unit: &str, help: &str, samples: &[(&str, f64)]) {
        let Self { prefix, labels, text } = self;
        let unit = if unit.is_empty() { String::new() } else { format!("# UNIT {prefix}{name} {unit}\n") };
        let _ = write!(text, "# TYPE {prefix}{name} {kind}\n{unit}# HELP {prefix}{name} {help}\n");
        for (sample, value) in samples {
            let (suffix, own) = sample.split_once(' ').unwrap_or((sample, ""));
            let _ = writeln!(text, "{prefix}{name}{suffix}{{{labels}{own}}} {value}");
        }
    }

    /// The finished text.
    #[must_use]
    pub fn finish(self) -> String {
        self.text + "# EOF\n"
    }
}

/// A label's value, escaped for use between quotes.
#[must_use]
pub fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_by_hand() {
        let mut metrics = OpenMetrics::new("disk_", &[("name", "a \"b\"\\\nc"), ("kind", "x")]);
        metrics.counter("reads", "", "Reads", 7.0);
        metrics.gauge("busy_seconds", "seconds", "Time", 1.5);
        metrics.family("late", "summary", "", "Late", &[(" ,quantile=\"1\"", 0.25), ("_count", 2.0)]);
        let labels = "name=\"a \\\"b\\\"\\\\\\nc\",kind=\"x\"";
        let expected = format!(
            "# TYPE disk_reads counter\n# HELP disk_reads Reads\ndisk_reads_total{{{labels}}} 7\n\
             # TYPE disk_busy_seconds gauge\n# UNIT disk_busy_seconds seconds\n# HELP disk_busy_seconds Time\n\
             disk_busy_seconds{{{labels}}} 1.5\n# TYPE disk_late summary\n# HELP disk_late Late\n\
             disk_late{{{labels},quantile=\"1\"}} 0.25\ndisk_late_count{{{labels}}} 2\n# EOF\n"
        );
        assert_eq!(metrics.finish(), expected);
    }
}
