//! Metrics in the text format of OpenMetrics 1.0. The crate `prometheus-client` has no summaries, which the emulated
//! disk needs.

use std::fmt::Write;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value as Json;

use crate::schema_of;

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

    /// Adds each whole number of reports of one type, which have these labels, as a family whose name begins with
    /// `prefix`: a counter, or a gauge if its field has `#[schemars(extend("x-metric" = "gauge"))]`. Times are left
    /// out.
    ///
    /// # Panics
    /// A report has no JSON form.
    pub fn reports<T: Serialize + JsonSchema>(&mut self, prefix: &str, reports: &[(String, T)]) {
        if reports.is_empty() {
            return;
        }
        let schema = schema_of::<T>();
        let to_json =
            |(labels, report): &(String, T)| (labels.clone(), serde_json::to_value(report).expect("plain values"));
        let values: Vec<(String, Json)> = reports.iter().map(to_json).collect();
        for (name, property) in schema.get("properties").and_then(Json::as_object).into_iter().flatten() {
            let text = |key: &str| property.get(key).and_then(Json::as_str).unwrap_or_default();
            if text("type") != "integer" || name.contains("_ns") {
                continue;
            }
            let help = text("description").split_whitespace().collect::<Vec<_>>().join(" ");
            let (kind, suffix) = if text("x-metric") == "gauge" { ("gauge", "") } else { ("counter", "_total") };
            let unit = if name.ends_with("_bytes") { "bytes" } else { "" };
            let sample = |(labels, report): &(String, Json)| {
                (format!("{suffix} {labels}"), report.get(name).and_then(Json::as_f64).unwrap_or_default())
            };
            let samples: Vec<(String, f64)> = values.iter().map(sample).collect();
            let samples: Vec<(&str, f64)> = samples.iter().map(|(name, value)| (name.as_str(), *value)).collect();
            self.family(&format!("{prefix}{name}"), kind, unit, help.trim_end_matches('.'), &samples);
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

    #[test]
    fn a_report_by_hand() {
        #[derive(Serialize, JsonSchema)]
        struct Report {
            /// Bytes
            /// read.
            read_bytes: u64,
            /// Its name.
            name: &'static str,
            /// The limit.
            #[schemars(extend("x-metric" = "gauge"))]
            limit: Option<u32>,
            busy_ns: u64,
        }
        let mut metrics = OpenMetrics::new("disk_", &[]);
        let report = |read_bytes| Report { read_bytes, name: "x", limit: Some(3), busy_ns: 1 };
        metrics.reports("a_", &[("disk=\"1\"".to_owned(), report(5)), ("disk=\"2\"".to_owned(), report(6))]);
        let expected = "# TYPE disk_a_read_bytes counter\n# UNIT disk_a_read_bytes bytes\n\
                        # HELP disk_a_read_bytes Bytes read\ndisk_a_read_bytes_total{disk=\"1\"} 5\n\
                        disk_a_read_bytes_total{disk=\"2\"} 6\n# TYPE disk_a_limit gauge\n# HELP disk_a_limit The limit\n\
                        disk_a_limit{disk=\"1\"} 3\ndisk_a_limit{disk=\"2\"} 3\n# EOF\n";
        assert_eq!(metrics.finish(), expected);
    }
}
