//! Replays a trace on one device, one request at a time: modelled times, their components, and measured times for
//! comparison.
//!
//! A trace with think times, or with issue and service times, is replayed closed: the next request is issued when the
//! previous one is done and the recorded pause is over (`headstart_device::replay` does the same for a list). A trace
//! with only issue times is replayed at those times, first come first served; one without any is replayed back to back.
//! Cost: 24 bytes per request; the trace is streamed.

use std::path::{Path, PathBuf};

use headstart_device::{rms_demerit, Device, Request, Service, SECTOR_BYTES};
use headstart_trace::{Carries, ErrorPosition, Record, RecordReader, TraceError};
use headstart_types::{check_regular, system_says, Nanos};
use pyo3::prelude::*;
use serde_json::{json, Value};

use crate::devices::{named, rounded};
use crate::errors::{outside, to_python};
use crate::traces::{opened, request_bytes, selection};

/// Levels of a cumulative curve: 0 to 1 by thousandths.
const LEVELS: usize = 1_000;

/// Maximum duration of a replay: sums of times stay far below 64 bits.
const TIME_MAX: Nanos = Nanos(1 << 62);

/// When a request is issued.
#[derive(Debug, Clone, Copy)]
enum Pace {
    /// After the previous one and the pause of the trace.
    Paused,
    /// At its time in the trace, or when the previous one is done.
    Timed,
    /// When the previous one is done.
    BackToBack,
}

impl Pace {
    fn of(carries: Carries) -> Self {
        match carries {
            Carries { think: true, .. } | Carries { time: true, duration: true, .. } => Pace::Paused,
            Carries { time: true, .. } => Pace::Timed,
            _ => Pace::BackToBack,
        }
    }

    fn words(self) -> &'static str {
        match self {
            Pace::Paused => "each after the recorded pause (closed)",
            Pace::Timed => "at the recorded times of issue, first come first served",
            Pace::BackToBack => "back to back",
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct Served {
    modelled: Nanos,
    measured: Nanos,
    write: bool,
    hit: bool,
}

/// Selects requests of a kind.
type Belongs = fn(&Served) -> bool;

#[derive(Default)]
struct Tally {
    served: Vec<Served>,
    /// Sums of seek, rotation, transfer, overhead, wait.
    parts: [Nanos; 5],
    /// When the last request was done.
    end: Nanos,
}

impl Tally {
    fn add(&mut self, start: Nanos, record: &Record, service: &Service) {
        let modelled = service.end - start;
        let Service { seek, rotation, transfer, overhead, wait, buffer_hit: hit, .. } = *service;
        self.served.push(Served { modelled, measured: record.duration, write: record.write, hit });
        for (sum, part) in self.parts.iter_mut().zip([seek, rotation, transfer, overhead, wait]) {
            *sum += part;
        }
        self.end = service.end;
    }
}

/// The request of a record, or the problem with it.
fn request(record: &Record, first_file: u32, capacity: Option<u64>) -> Result<Request, String> {
    if record.file != first_file {
        return Err("belongs to another file or device than the first request; allowed: a trace of one device".into());
    }
    let sector = record.offset / SECTOR_BYTES;
    let end = (record.offset + record.size).div_ceil(SECTOR_BYTES);
    let Ok(sectors) = u32::try_from(end - sector) else {
        return Err(format!("has {} sectors; allowed: fewer than 2^32", end - sector));
    };
    match capacity {
        Some(capacity) if end > capacity => {
            Err(format!("ends at sector {end}, beyond the device; allowed: up to {capacity}"))
        }
        _ => Ok(Request { write: record.write, ..Request::read(sector, sectors, 0) }),
    }
}

/// Replays the trace at `trace` on a device and returns the times as JSON. `on_progress(share_done, requests)` is
/// called regularly; the replay stops with the exception that it raises, and on Ctrl-C.
#[allow(clippy::too_many_arguments)] // They are Python's, by name.
#[pyfunction]
#[pyo3(signature = (name, trace, *, keys="{}", format="auto", request_size=None, limit=None, select="{}", on_progress=None))]
pub fn device_replay(
    py: Python<'_>,
    name: &str,
    trace: PathBuf,
    keys: &str,
    format: &str,
    request_size: Option<&str>,
    limit: Option<u64>,
    select: &str,
    on_progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let selection = selection(select)?;
    let mut tell = |share: f64, requests: usize| {
        Python::with_gil(|py| {
            py.check_signals()?;
            on_progress.as_ref().map_or(Ok(()), |on_progress| on_progress.call1(py, (share, requests)).map(drop))
        })
    };
    let request_bytes = request_bytes(request_size)?;
    let replayed = outside(
        py,
        || format!("trace {} on {name}, keys {keys}", trace.display()),
        || {
            let mut device = named(name, keys).map_err(to_python)?.device;
            // Opening a pipe without a writer would block forever, and a device such as /dev/zero never ends.
            check_regular(&trace).map_err(|error| {
                bad(&trace, ErrorPosition::File, format!("{}; allowed: a trace in a regular file", system_says(&error)))
            })?;
            let mut reader = opened(&trace, format, request_bytes, &selection).map_err(to_python)?;
            let carries = reader.carries();
            if !carries.addresses {
                let problem = "carries no addresses; allowed: a trace that says where on the device its requests go";
                return Err(bad(&trace, ErrorPosition::File, problem.to_owned()));
            }
            let tally = run(&mut *device, &mut *reader, &trace, limit.unwrap_or(u64::MAX), &mut tell)?;
            Ok(facts(&tally, carries))
        },
    )?;
    Ok(replayed?.to_string())
}

fn bad(trace: &Path, place: ErrorPosition, problem: String) -> PyErr {
    to_python(TraceError::Bad { file: trace.to_owned(), place, problem })
}

fn run(
    device: &mut dyn Device,
    reader: &mut dyn RecordReader,
    trace: &Path,
    limit: u64,
    tell: &mut dyn FnMut(f64, usize) -> PyResult<()>,
) -> PyResult<Tally> {
    let pace = Pace::of(reader.carries());
    let thinks = reader.carries().think;
    let capacity = device.capacity_sectors();
    let mut tally = Tally::default();
    let mut batch = Vec::new();
    let mut now = Nanos::ZERO;
    let mut before: Option<Record> = None;
    'trace: while reader.read(&mut batch).map_err(to_python)? {
        for record in &batch {
            if tally.served.len() as u64 >= limit {
                break 'trace;
            }
            let place = || ErrorPosition::Record(tally.served.len() as u64 + 1);
            let first_file = before.map_or(record.file, |before| before.file);
            let request = request(record, first_file, capacity).map_err(|problem| bad(trace, place(), problem))?;
            now = match (pace, &before) {
                (Pace::Paused, Some(before)) if thinks => Nanos(now.0.saturating_add(before.think.0)),
                (Pace::Paused, Some(before)) => now + (record.time - before.time).saturating_sub(before.duration),
                (Pace::Timed, _) => now.max(record.time),
                (Pace::Paused, None) | (Pace::BackToBack, _) => now,
            };
            if now > TIME_MAX {
                let problem = "is issued after more than 146 years; allowed: less".to_owned();
                return Err(bad(trace, place(), problem));
            }
            let service = device.serve(now, &request);
            tally.add(now, record, &service);
            now = service.end;
            before = Some(*record);
        }
        let (done, total) = reader.progress();
        tell(done as f64 / total.max(1) as f64, tally.served.len())?;
    }
    Ok(tally)
}

fn facts(tally: &Tally, carries: Carries) -> Value {
    let kinds: [(&str, Belongs); 5] = [
        ("all", |_| true),
        ("reads", |each| !each.write),
        ("writes", |each| each.write),
        ("buffer_hits", |each| each.hit),
        ("others", |each| !each.hit),
    ];
    let mut modelled = serde_json::Map::new();
    let mut measured = serde_json::Map::new();
    let mut demerit = serde_json::Map::new();
    let mut curves = json!({"measured_ns": Value::Null});
    for (kind, belongs) in kinds {
        let chosen: Vec<&Served> = tally.served.iter().filter(|each| belongs(each)).collect();
        let times = sorted(chosen.iter().map(|each| each.modelled));
        modelled.insert(kind.into(), summary(&times));
        if kind == "all" {
            curves["modelled_ns"] = curve(&times);
        }
        if !carries.duration {
            continue;
        }
        let recorded = sorted(chosen.iter().map(|each| each.measured));
        measured.insert(kind.into(), summary(&recorded));
        demerit.insert(kind.into(), json!(rounded(rms_demerit(&recorded, &times))));
        if kind == "all" {
            curves["measured_ns"] = curve(&recorded);
        }
    }
    let count = tally.served.len().max(1) as f64;
    let names = ["seek_ns", "rotation_ns", "transfer_ns", "overhead_ns", "wait_ns"];
    let means =
        names.iter().zip(tally.parts).map(|(name, sum)| ((*name).to_owned(), json!(rounded(sum.0 as f64 / count))));
    json!({
        "pace": Pace::of(carries).words(),
        "requests": tally.served.len(),
        "elapsed_ns": tally.end,
        "modelled": modelled,
        "measured": carries.duration.then_some(measured),
        "parts_ns_mean": means.collect::<serde_json::Map<_, _>>(),
        "rms_demerit_ns": carries.duration.then_some(demerit),
        "curves": curves,
    })
}

fn sorted(times: impl Iterator<Item = Nanos>) -> Vec<Nanos> {
    let mut times: Vec<Nanos> = times.collect();
    times.sort_unstable();
    times
}

/// Number, mean and percentiles of sorted times.
fn summary(times: &[Nanos]) -> Value {
    let Some(max) = times.last() else { return json!({"requests": 0}) };
    let mean = times.iter().map(|time| time.0 as f64).sum::<f64>() / times.len() as f64;
    let percentile = |percent: usize| times[(times.len() * percent).div_ceil(100).max(1) - 1];
    json!({
        "requests": times.len(),
        "mean_ns": rounded(mean),
        "p50_ns": percentile(50),
        "p90_ns": percentile(90),
        "p99_ns": percentile(99),
        "max_ns": max,
    })
}

/// The times at `LEVELS + 1` evenly spaced levels of a cumulative distribution, from minimum to maximum.
fn curve(times: &[Nanos]) -> Value {
    let last = times.len().saturating_sub(1);
    (0..=LEVELS).filter_map(|level| times.get((last * level + LEVELS / 2) / LEVELS)).map(|time| json!(time)).collect()
}
