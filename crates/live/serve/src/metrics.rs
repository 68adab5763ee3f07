//! Metrics for collectors, in the text format of OpenMetrics 1.0: in a file that is replaced every second, or over HTTP.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use headstart_engine::Counts;
use headstart_hints::FollowReport;
use headstart_host::owned::replace;
use headstart_types::{escaped, KeyError, Nanos, OpenMetrics};

use crate::conductor::Conductor;
use crate::error::Error;
use crate::server::Server;
use crate::spill::SpillTotals;
use crate::statistics::{Histogram, Totals};

/// How often the text is made anew.
const EVERY: Nanos = Nanos::from_millis(1_000);
/// Of the file: collectors are other users.
const MODE: u32 = 0o644;
/// How long a collector may take to ask.
const PATIENCE: Duration = Duration::from_secs(1);

/// Where the text goes.
enum Target {
    File(PathBuf),
    Address(SocketAddr, Option<Arc<Mutex<String>>>),
}

/// Metrics of a server.
pub struct Metrics {
    target: Target,
    due: Nanos,
}

impl Metrics {
    /// To a file, or, where `target` is an address, to those who ask there.
    ///
    /// # Errors
    /// The address is taken, or can be reached from other machines.
    pub fn start(target: &str) -> Result<Self, Error> {
        let due = Nanos::ZERO;
        let Ok(address) = target.parse::<SocketAddr>() else {
            return Ok(Self { target: Target::File(target.into()), due });
        };
        if !address.ip().is_loopback() {
            let problem = format!("{target} can be reached from other machines");
            return Err(KeyError::new("openmetrics", problem, "an address of this machine, or a file").into());
        }
        let listener = TcpListener::bind(address).map_err(Error::io(target))?;
        let bound = listener.local_addr().map_err(Error::io(target))?;
        let text = Arc::new(Mutex::new(String::new()));
        let shared = Arc::downgrade(&text);
        thread::Builder::new()
            .name("serve-metrics".to_owned())
            .spawn(move || {
                for stream in listener.incoming() {
                    let (Ok(mut stream), Some(text)) = (stream, shared.upgrade()) else { break };
                    let _ = stream.set_read_timeout(Some(PATIENCE));
                    let _ = stream.set_write_timeout(Some(PATIENCE));
                    // Whatever is asked for, there is but one answer.
                    let _ = stream.read(&mut [0; 4096]);
                    let body = text.lock().unwrap_or_else(PoisonError::into_inner).clone();
                    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
                    let _ = write!(
                        stream,
                        "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
                        body.len()
                    );
                }
            })
            .map_err(Error::io("threads"))?;
        Ok(Self { target: Target::Address(bound, Some(text)), due })
    }

    /// Makes the text anew, if it is time.
    pub fn update(&mut self, server: &Server) {
        if server.now() < self.due {
            return;
        }
        self.due = server.now() + EVERY;
        let text = text(server);
        match &self.target {
            Target::Address(_, Some(shared)) => *shared.lock().unwrap_or_else(PoisonError::into_inner) = text,
            Target::Address(_, None) => {}
            Target::File(path) => {
                // Replaced as a whole: a collector sees the one or the other. A full disk does not stop serving.
                let _ = replace(path, text.as_bytes(), MODE, false);
            }
        }
    }
}

impl Drop for Metrics {
    fn drop(&mut self) {
        if let Target::Address(address, text) = &mut self.target {
            *text = None;
            // The thread ends with the next that asks.
            let _ = TcpStream::connect_timeout(address, PATIENCE);
        }
    }
}

/// Of each export: name, help, value.
type Gauge = (&'static str, &'static str, fn(&Conductor) -> usize);
/// The same of times.
type Times = (&'static str, &'static str, fn(&Conductor) -> &Histogram);

/// The families of counters: name, unit, help, value.
type Counter = (&'static str, &'static str, &'static str, fn(&Totals, &Counts, u64) -> u64);

const COUNTERS: &[Counter] = &[
    ("read_requests", "", "Requests to read", |totals, _, _| totals.read_requests),
    ("read_bytes", "bytes", "Bytes of requests to read", |totals, _, _| totals.read_bytes),
    ("write_requests", "", "Requests to write", |totals, _, _| totals.write_requests),
    ("write_bytes", "bytes", "Bytes of requests to write", |totals, _, _| totals.write_bytes),
    ("trim_requests", "", "Trims and writes of zeroes", |totals, _, _| totals.trim_requests),
    ("flush_requests", "", "Flushes", |totals, _, _| totals.flush_requests),
    ("failed_requests", "", "Requests that failed", |totals, _, _| totals.failed_requests),
    ("backing_demand_reads", "", "Reads of the backing for a waiting client", |totals, _, _| {
        totals.backing_demand_reads
    }),
    ("backing_prefetch_reads", "", "Other reads of the backing", |totals, _, _| totals.backing_prefetch_reads),
    ("backing_read_bytes", "bytes", "Bytes of reads of the backing", |totals, _, _| totals.backing_read_bytes),
    ("backing_failed_reads", "", "Reads of the backing that failed", |totals, _, _| totals.backing_failed_reads),
    ("hits_ready", "", "Pages found in the cache", |_, counts, _| counts.hits_ready),
    ("hits_unready", "", "Pages found on their way", |_, counts, _| counts.hits_unready),
    ("misses", "", "Pages found neither", |_, counts, _| counts.misses),
    ("prefetches", "", "Pages prefetched", |_, counts, _| counts.prefetches),
    ("prefetches_used", "", "Prefetched pages that were read", |_, counts, _| counts.prefetches_used),
    ("prefetches_late", "", "Those that were still on their way", |_, counts, _| counts.prefetches_late),
    ("evictions", "", "Pages evicted", |_, counts, _| counts.evictions),
    ("bypass_pages", "", "Pages that bypassed the cache", |_, counts, _| counts.bypass_blocks),
    ("readmore_pages", "", "Pages that the coordinator added", |_, counts, _| counts.readmore_blocks),
];

/// The same of exports with hints, and of those with a spill file.
type HintCounter = (&'static str, &'static str, &'static str, fn(&FollowReport) -> u64);
type SpillCounter = (&'static str, &'static str, &'static str, fn(&SpillTotals) -> u64);

const HINT_COUNTERS: &[HintCounter] = &[
    ("hints_prefetched_bytes", "bytes", "Bytes read ahead because hints name them", |hints| hints.prefetched_bytes),
    ("hints_used_bytes", "bytes", "Bytes of those that clients have read", |hints| hints.used_bytes),
    ("hints_late_bytes", "bytes", "Bytes of those that were asked for before they were there", |hints| {
        hints.late_bytes
    }),
];

const SPILL_COUNTERS: &[SpillCounter] = &[
    ("spill_missed_pages", "", "Pages wanted that the spill file had not", |spill| spill.missed_pages),
    ("spill_stored_pages", "", "Pages stored in the spill file", |spill| spill.stored_pages),
    ("spill_corrupt_pages", "", "Pages of the spill file with a wrong checksum", |spill| spill.corrupt_pages),
    ("spill_failed_requests", "", "Reads and writes of the spill file that failed", |spill| spill.failed_requests),
];

/// The metrics of a server.
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
    for (name, unit, help, value) in COUNTERS {
        let of = |(label, conductor): &(String, &Conductor)| {
            let value = value(&conductor.statistics().totals, conductor.counts(), conductor.setting().page_bytes);
            (format!("_total {label}"), value as f64)
        };
        family(&mut metrics, (name, "counter", unit, help), exports.iter().map(of).collect());
    }
    let hinted: Vec<(&String, FollowReport)> =
        exports.iter().filter_map(|(label, conductor)| Some((label, conductor.hints()?))).collect();
    for (name, unit, help, value) in HINT_COUNTERS.iter().filter(|_| !hinted.is_empty()) {
        let of = |(label, hints): &(&String, FollowReport)| (format!("_total {label}"), value(hints) as f64);
        family(&mut metrics, (name, "counter", unit, help), hinted.iter().map(of).collect());
    }
    let spilling: Vec<(&String, SpillTotals)> =
        exports.iter().filter_map(|(label, conductor)| Some((label, conductor.spill()?.totals))).collect();
    for (name, unit, help, value) in SPILL_COUNTERS.iter().filter(|_| !spilling.is_empty()) {
        let of = |(label, spill): &(&String, SpillTotals)| (format!("_total {label}"), value(spill) as f64);
        family(&mut metrics, (name, "counter", unit, help), spilling.iter().map(of).collect());
    }
    let gauges: [Gauge; 4] = [
        ("outstanding_requests", "Requests without a reply", Conductor::open_requests),
        ("unstable", "Whether acknowledged changes may be lost", |conductor| conductor.unstable().is_some().into()),
        ("backing_reads_waiting", "Reads of the backing that wait", |conductor| conductor.reads().0),
        ("backing_reads_under_way", "Reads of the backing under way", |conductor| conductor.reads().1 as usize),
    ];
    for (name, help, value) in gauges {
        let of = |(label, conductor): &(String, &Conductor)| (format!(" {label}"), value(conductor) as f64);
        family(&mut metrics, (name, "gauge", "", help), exports.iter().map(of).collect());
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
