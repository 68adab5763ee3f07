//! Metrics in the text format of OpenMetrics 1.0: in a file that is replaced every second, or over HTTP.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use headstart_engine::METRICS;
use headstart_hints::FollowReport;
use headstart_host::owned::replace;
use headstart_types::{escaped, KeyError, Nanos, OpenMetrics};

use crate::conductor::Conductor;
use crate::error::Error;
use crate::server::Server;
use crate::spill::SpillTotals;
use crate::statistics::{Histogram, Totals};

/// Time between updates of the text.
const EVERY: Nanos = Nanos::from_millis(1_000);
/// Mode of the file: collectors run as other users.
const MODE: u32 = 0o644;
/// How long a collector may take to send its request.
const PATIENCE: Duration = Duration::from_secs(1);

/// Where the text goes.
enum Target {
    File(PathBuf),
    Address(SocketAddr, Option<Arc<Mutex<String>>>),
}

pub struct Metrics {
    target: Target,
    due: Nanos,
}

impl Metrics {
    /// Writes to a file or, if `target` is an address, serves HTTP there.
    ///
    /// # Errors
    /// The address is in use, or other machines can reach it.
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
                    // Every request gets the same answer.
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

    /// Updates the text if it is due.
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
                // Replaced atomically: a collector sees either the old or the new text. A full disk does not stop the
                // server.
                let _ = replace(path, text.as_bytes(), MODE, false);
            }
        }
    }
}

impl Drop for Metrics {
    fn drop(&mut self) {
        if let Target::Address(address, text) = &mut self.target {
            *text = None;
            // Wakes the thread, so that it ends.
            let _ = TcpStream::connect_timeout(address, PATIENCE);
        }
    }
}

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
    let spilling: Vec<(String, SpillTotals)> =
        exports.iter().filter_map(|(label, conductor)| Some((label.clone(), conductor.spill()?.totals))).collect();
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
