//! The metrics of a server.

use headstart_engine::METRICS;
use headstart_hints::FollowReport;
use headstart_types::{escaped, OpenMetrics};

use crate::conductor::Conductor;
use crate::server::Server;
use crate::spill::SpillTotals;
use crate::statistics::{Histogram, Totals};

/// A gauge of each export: name, help, value.
type Gauge = (&'static str, &'static str, fn(&Conductor) -> usize);
/// A histogram of each export: name, help, value.
type Times = (&'static str, &'static str, fn(&Conductor) -> &Histogram);

#[must_use]
pub fn text(server: &Server) -> String {
    let mut metrics = OpenMetrics::new("headstart_serve_", &[]);
    let (connections, total) = server.connections();
    metrics.gauge("connections", "", "Clients", connections as f64);
    metrics.counter("connections_accepted", "", "Clients so far", total as f64);
    let exports: Vec<(String, &Conductor)> =
        server.exports().map(|(name, conductor)| (format!("export=\"{}\"", escaped(name)), conductor)).collect();
    let family =
        |metrics: &mut OpenMetrics, (name, kind, unit, help): (&str, &str, &str, &str), samples: Vec<(String, f64)>| {
            let samples: Vec<(&str, f64)> = samples.iter().map(|(name, value)| (name.as_str(), *value)).collect();
            metrics.family(name, kind, unit, help, &samples);
        };
    let of_each = |of: &dyn Fn(&Conductor) -> f64, suffix: &str| -> Vec<(String, f64)> {
        exports.iter().map(|(label, conductor)| (format!("{suffix} {label}"), of(conductor))).collect()
    };
    let totals: Vec<(String, Totals)> =
        exports.iter().map(|(label, conductor)| (label.clone(), conductor.statistics().totals.clone())).collect();
    metrics.reports("", &totals);
    for metric in METRICS {
        let Some(counter) = metric.counter.filter(|_| !metric.name.contains("_ns")) else { continue };
        // The level's blocks are the server's pages.
        let name = metric.name.replace("blocks", "pages");
        let samples = of_each(&|conductor| counter(conductor.counts()) as f64, "_total");
        family(&mut metrics, (&name, "counter", "", metric.summary.trim_end_matches('.')), samples);
    }
    let hinted: Vec<(String, FollowReport)> =
        exports.iter().filter_map(|(label, conductor)| Some((label.clone(), conductor.hints()?))).collect();
    metrics.reports("hints_", &hinted);
    let spilling: Vec<(String, SpillTotals)> = exports
        .iter()
        .filter_map(|(label, conductor)| Some((label.clone(), conductor.spill_report()?.totals)))
        .collect();
    metrics.reports("spill_", &spilling);
    let gauges: [Gauge; 4] = [
        ("outstanding_requests", "Requests without a reply", Conductor::open_requests),
        ("unstable", "Whether acknowledged changes may be lost", |conductor| conductor.unstable().is_some().into()),
        ("backing_reads_waiting", "Reads of the backing that wait", |conductor| conductor.reads().0),
        ("backing_reads_under_way", "Reads of the backing under way", |conductor| conductor.reads().1 as usize),
    ];
    for (name, help, value) in gauges {
        family(&mut metrics, (name, "gauge", "", help), of_each(&|conductor| value(conductor) as f64, ""));
    }
    let histograms: [Times; 2] = [
        ("response_seconds", "From request to reply", |conductor| &conductor.statistics().response_times),
        ("service_seconds", "Reads of the backing", |conductor| &conductor.statistics().service_times),
    ];
    for (name, help, value) in histograms {
        let of = |(label, conductor): &(String, &Conductor)| {
            let histogram = value(conductor);
            let bucket = |(bound, count): (Option<f64>, u64)| {
                let bound = bound.map_or("+Inf".to_owned(), |bound| bound.to_string());
                (format!("_bucket {label},le=\"{bound}\""), count as f64)
            };
            let mut samples: Vec<(String, f64)> = histogram.cumulative().map(bucket).collect();
            samples.push((format!("_count {label}"), histogram.count() as f64));
            samples.push((format!("_sum {label}"), histogram.sum_seconds()));
            samples
        };
        family(&mut metrics, (name, "histogram", "seconds", help), exports.iter().flat_map(of).collect());
    }
    metrics.finish()
}
