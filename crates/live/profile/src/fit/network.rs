//! The model `object-store`: random latency over independent connections.
//!
//! A connection's rate is the slope of the medians by size. The latency is the time of each short read less its share
//! of the rate; its logarithm's deviation comes from the quantiles one deviation off the median. The number of
//! connections is the one that gives the measured throughput in simulation. The request rate is not limited: stores
//! that limit it admit a burst first, and no measurement here is long enough.

use headstart_types::Nanos;
use toml::{Table, Value};

use super::super::lab::WIDTH;
use super::super::Error;
use super::curve::depths_off;
use super::line::{median_error, quantile, Line};
use super::{device_of, Fit, Parameter, Samples};

/// Largest reads, in bytes, that are used for the latency: 256 KiB.
const SHORT: u32 = 512;
/// The 99th percentile of the normal distribution in deviations, and the share below one deviation.
const P99: f64 = 2.326_347_9;
const DEVIATION: f64 = 0.841_344_7;
/// Relative standard error of such a deviation, times the root of the number of reads.
const OF_DEVIATION: f64 = 0.963;
/// Smaller deviations of the logarithm count as zero.
const CONSTANT: f64 = 1e-3;
/// Numbers of connections are tried in these steps and then one by one.
const STEP: f64 = 1.15;
/// Counts whose error is within this of the minimum fit as well.
const AS_GOOD: f64 = 0.01;
/// Rate that is assumed if longer reads take no longer.
const RATE_MOST: f64 = 1e12;

pub(in super::super) fn fit(samples: &Samples) -> Result<Fit, Error> {
    let line = Line::through(&samples.by_size);
    let short = samples.by_size.iter().filter(|timed| timed.sectors <= SHORT);
    let latencies: Vec<f64> = short
        .flat_map(|timed| timed.times_ns.iter().map(|ns| (ns - f64::from(timed.sectors) * line.sector_ns).max(1.0)))
        .collect();
    let median = quantile(&latencies, 0.5);
    let deviation = ((quantile(&latencies, DEVIATION) / quantile(&latencies, 1.0 - DEVIATION)).ln() / 2.0).max(0.0);
    let deviation = if deviation < CONSTANT { 0.0 } else { deviation };
    let count = (latencies.len() as f64).sqrt();
    // The error of the subtracted transfer time is common to all reads.
    let shared = f64::from(SHORT) / 2.0 * line.sector_error_ns;
    let median_error = (WIDTH * median_error(&latencies)).hypot(shared).max(1.0);
    let p99 = median * (P99 * deviation).exp();
    let spread_error = WIDTH * P99 * OF_DEVIATION * deviation / count;
    let p99_error = p99 * (median_error / median).hypot(spread_error);
    let (rate, rate_error) = line.rate().map_or((RATE_MOST, None), |(rate, error)| (rate.min(RATE_MOST), Some(error)));
    let keys = |connections: u32| -> Table {
        let time = |ns: f64| Value::String(Nanos(ns.round().max(1.0) as u64).to_string());
        let number = |number: f64| Value::Integer(number.round() as i64);
        [
            ("latency", time(median)),
            ("latency_p99", time(p99.max(median))),
            ("connection_bytes_per_second", number(rate.max(1_000.0))),
            ("connections", number(connections.into())),
            ("reads_per_second", number(0.0)),
            ("writes_per_second", number(0.0)),
            ("network_bytes_per_second", number(0.0)),
        ]
        .map(|(key, value)| (key.to_owned(), value))
        .into_iter()
        .collect()
    };
    let found = connections(samples, &keys)?;
    let parameters = vec![
        Parameter::new("latency", median, "ns", Some(median_error)),
        Parameter::new("latency_p99", p99.max(median), "ns", Some(p99_error)),
        Parameter::new("connection_bytes_per_second", rate, "bytes/s", rate_error),
        Parameter::new("connections", found.count.into(), "", found.error),
        Parameter::new("reads_per_second", 0.0, "", None),
        Parameter::new("writes_per_second", 0.0, "", None),
    ];
    Ok(Fit { model: "object-store", keys: keys(found.count), parameters })
}

/// Number of connections and its error; no error if as many were busy as reads were outstanding.
struct Connections {
    count: u32,
    error: Option<f64>,
}

fn connections(samples: &Samples, keys: &dyn Fn(u32) -> Table) -> Result<Connections, Error> {
    let deepest = samples.small.iter().map(|point| point.depth).max().unwrap_or(1) as u32;
    let mut tried: Vec<(u32, f64)> = Vec::new();
    let mut attempt = |count: u32| -> Result<(), Error> {
        if count >= 1 && count <= deepest && tried.iter().all(|(other, _)| *other != count) {
            let device = device_of("object-store", keys(count))?;
            tried.push((count, depths_off(&*device, &samples.small)?));
        }
        Ok(())
    };
    let mut count = 1.0;
    while count <= f64::from(deepest) {
        attempt(count as u32)?;
        count = (count * STEP).max(count + 1.0);
    }
    attempt(deepest)?;
    let best = |tried: &[(u32, f64)]| tried.iter().copied().min_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((1, 0.0));
    let (rough, _) = best(&tried);
    let mut attempt = |count: u32| -> Result<(), Error> {
        if tried.iter().all(|(other, _)| *other != count) {
            let device = device_of("object-store", keys(count))?;
            tried.push((count, depths_off(&*device, &samples.small)?));
        }
        Ok(())
    };
    for count in (f64::from(rough) / STEP) as u32..=((f64::from(rough) * STEP) as u32).min(deepest) {
        attempt(count.max(1))?;
    }
    let (count, least) = best(&tried);
    let as_good = |&&(_, off): &&(u32, f64)| off <= least + AS_GOOD;
    let farthest = tried.iter().filter(as_good).map(|(other, _)| other.abs_diff(count)).max().unwrap_or(0);
    // Throughput varies by chance, too: by the latencies of both.
    let reads = samples.small.last().map_or(1, |point| point.reads) as f64;
    let first = &samples.by_size[0];
    let mean = first.mean_ns().max(1.0);
    let variance =
        first.times_ns.iter().map(|ns| (ns / mean - 1.0).powi(2)).sum::<f64>() / first.times_ns.len().max(1) as f64;
    let chance =
        WIDTH * (2.0 * variance / reads + variance / first.times_ns.len().max(1) as f64).sqrt() * f64::from(count);
    let error = f64::from(farthest).max(0.5).hypot(chance);
    Ok(Connections { count, error: (count < deepest).then_some(error) })
}
