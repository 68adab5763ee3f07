//! Devices: their properties, their response times, and replays of traces.

use std::path::{Path, PathBuf};

use headstart_device::limits::PROFILE_BYTES_MAX;
use headstart_device::{
    build_device, build_scheduler, model, overlay, probe, sequential_read, Band, Device, DeviceError, Load, Mechanics,
    Pattern, Probed,
};
use headstart_diskspecs::Imported;
use headstart_types::{read_text, KeyError, Nanos};
use pyo3::prelude::*;
use serde_json::{json, Value};
use toml::Table;

use crate::errors::{from_json, outside, to_python};

/// Random requests per figure of `device_show`: their mean has a standard error of about 0.2 %.
const SHOWN_REQUESTS: u32 = 20_000;
/// Requests per point of `device_survey`.
const SURVEYED_REQUESTS: u32 = 4_000;
/// Writes of 4 KiB before those that are measured: 256 MiB, more than the write buffers of devices hold.
const WARM_UP: u32 = 65_536;
/// Seed of the random places.
const SEED: u64 = 1;
/// Sectors of 8 KiB and of 4 KiB.
const READ_SECTORS: u32 = 16;
const DEPTH_SECTORS: u32 = 8;
/// Sectors of a long read: 1 MiB.
const LONG_SECTORS: u32 = 2_048;
/// Sizes of `device_survey`: powers of two from 4 KiB to 16 MiB.
const SIZES: std::ops::RangeInclusive<u32> = 3..=15;
/// Queue depths of `device_survey`, as powers of two.
const DEPTHS: std::ops::RangeInclusive<u32> = 0..=8;
/// Maximum points of a seek curve: more than the columns of a picture.
const SEEK_POINTS: usize = 1_500;

/// A device, its keys with every default, and its origin.
pub(crate) struct Named {
    pub(crate) device: Box<dyn Device>,
    keys: Table,
    summary: Option<&'static str>,
    source: Option<&'static str>,
}

/// Keys from a JSON object.
pub(crate) fn table(keys: &str) -> Result<Table, KeyError> {
    from_json("keys", keys)
}

pub(crate) fn named(name: &str, over: &str) -> Result<Named, DeviceError> {
    let over = table(over)?;
    let device = build_device(name, over.clone())?;
    let row = model(name);
    // The device was made from this profile, so it exists and is TOML.
    let base = match row {
        Some(row) => row.keys.defaults(),
        None => {
            read_text(Path::new(name), PROFILE_BYTES_MAX).ok().and_then(|text| text.parse().ok()).unwrap_or_default()
        }
    };
    Ok(Named {
        device,
        keys: overlay(base, over),
        summary: row.map(|row| row.summary),
        source: row.map(|row| row.source),
    })
}

fn run(device: &dyn Device, load: &Load) -> Result<Probed, DeviceError> {
    Ok(probe(device.clone_box(), build_scheduler("fcfs", Table::new())?, load))
}

/// Rounds to whole nanoseconds.
pub(crate) fn rounded(ns: f64) -> u64 {
    ns.round() as u64
}

/// Properties and response times of a device, as JSON. `keys` is a JSON object that overrides the model's own keys.
#[pyfunction]
#[pyo3(signature = (name, *, keys="{}"))]
pub fn device_show(py: Python<'_>, name: &str, keys: &str) -> PyResult<String> {
    let shown = outside(py, || format!("device {name}, keys {keys}"), || show(name, keys))?;
    Ok(shown.map_err(to_python)?.to_string())
}

fn show(name: &str, keys: &str) -> Result<Value, DeviceError> {
    let Named { device, keys, summary, source } = named(name, keys)?;
    let mechanics = device.mechanics();
    let random = run(&*device, &Load::random(fitting(&*device, READ_SECTORS), SHOWN_REQUESTS, SEED))?;
    let sequential = match &mechanics {
        Some(mechanics) => json!({
            "outer": mechanics.bands.first().map(|band| rounded(band.bytes_per_second)),
            "inner": mechanics.bands.last().map(|band| rounded(band.bytes_per_second)),
        }),
        None => {
            let load = Load::sequential(fitting(&*device, LONG_SECTORS), SURVEYED_REQUESTS);
            let deep = run(&*device, &load.at_depth(device.concurrency()))?;
            json!({
                "one_at_a_time": rounded(run(&*device, &load)?.bytes_per_second()),
                "all_in_parallel": rounded(deep.bytes_per_second()),
            })
        }
    };
    Ok(json!({
        "name": name,
        "profile": model(name).is_none().then(|| Path::new(name).file_name().map(|file| file.to_string_lossy())),
        "summary": summary,
        "source": source,
        "keys": keys,
        "capacity_bytes": device.capacity_sectors().map(|sectors| sectors * headstart_device::SECTOR_BYTES),
        "concurrency": device.concurrency(),
        "nominal_service_ns": device.nominal_service(),
        "mechanics": mechanics.as_ref().map(mechanics_facts),
        "random_read_8kib": parts(&random),
        "sequential_bytes_per_s": sequential,
        "sequential_reads": mechanics.as_ref().map_or_else(Vec::new, |mechanics| sequential_reads(&*device, mechanics)),
    }))
}

/// Sequential reads of 8 KiB and of 1 MiB, in the outer and in the inner zone.
fn sequential_reads(device: &dyn Device, mechanics: &Mechanics) -> Vec<Value> {
    let ends = [("outer", mechanics.bands.first()), ("inner", mechanics.bands.last())];
    let read = |sectors: u32, (zone, band): (&str, Option<&Band>)| {
        let sectors = fitting(device, sectors);
        let found = sequential_read(device, mechanics, band?, sectors);
        Some(json!({
            "zone": zone,
            "bytes": u64::from(sectors) * headstart_device::SECTOR_BYTES,
            "bytes_per_s": rounded(found.bytes_per_second),
            "limit": found.limit.name(),
        }))
    };
    [READ_SECTORS, LONG_SECTORS].into_iter().flat_map(|sectors| ends.map(|end| read(sectors, end))).flatten().collect()
}

/// `sectors`, or fewer if the device is smaller.
fn fitting(device: &dyn Device, sectors: u32) -> u32 {
    device.capacity_sectors().map_or(sectors, |capacity| capacity.min(u64::from(sectors)) as u32)
}

fn mechanics_facts(mechanics: &Mechanics) -> Value {
    let band = |band: &Band| {
        json!({
            "first_sector": band.first,
            "sectors": band.sectors,
            "first_cylinder": band.first_cylinder,
            "cylinders": band.cylinders,
            "sectors_per_track": band.sectors_per_track,
            "bytes_per_s": rounded(band.bytes_per_second),
        })
    };
    json!({
        "rpm": mechanics.rpm,
        "revolution_ns": mechanics.revolution(),
        "cylinders": mechanics.seek.len(),
        "surfaces": mechanics.surfaces,
        "seek_ns": {
            "single_cylinder": mechanics.seek.get(1),
            "mean": rounded(mechanics.mean_seek_ns()),
            "full_stroke": mechanics.seek.last(),
        },
        "head_switch_ns": mechanics.head_switch,
        "write_settle_ns": mechanics.write_settle,
        "zones": mechanics.bands.iter().map(band).collect::<Vec<_>>(),
    })
}

/// Mean service time of a load with one outstanding request, and its components.
fn parts(probed: &Probed) -> Value {
    let statistics = &probed.statistics;
    let mean = |sum: Nanos| rounded(sum.0 as f64 / statistics.requests.max(1) as f64);
    json!({
        "requests": statistics.requests,
        "mean_ns": mean(statistics.service),
        "seek_ns": mean(statistics.seek),
        "rotation_ns": mean(statistics.rotation),
        "transfer_ns": mean(statistics.transfer),
        "overhead_ns": mean(statistics.overhead),
        "wait_ns": mean(statistics.wait),
    })
}

/// Response times of a device behind `scheduler` for `requests` random or sequential requests of `sectors` sectors,
/// with `depth` of them outstanding at all times, after `warm_up` others, as JSON.
#[pyfunction]
#[pyo3(signature = (name, *, keys="{}", requests=20_000, warm_up=0, sectors=16, depth=1, write=false, sequential=false, scheduler="fcfs", seed=1))]
#[allow(clippy::too_many_arguments)] // They are Python's, by name.
pub fn device_probe(
    py: Python<'_>,
    name: &str,
    keys: &str,
    requests: u32,
    warm_up: u32,
    sectors: u32,
    depth: u32,
    write: bool,
    sequential: bool,
    scheduler: &str,
    seed: u64,
) -> PyResult<String> {
    let above_zero = |key: &str, number: u32| match number {
        0 => Err(to_python(KeyError::new(key, "is 0", "a whole number from 1"))),
        _ => Ok(()),
    };
    [("requests", requests), ("sectors", sectors), ("depth", depth)]
        .into_iter()
        .try_for_each(|(key, number)| above_zero(key, number))?;
    outside(
        py,
        || format!("device {name}, keys {keys}, seed {seed}"),
        || {
            let device = named(name, keys)?.device;
            let queue = build_scheduler(scheduler, Table::new())?;
            let sectors = fitting(&*device, sectors);
            let load = match sequential {
                true => Load::sequential(sectors, requests),
                false => Load::random(sectors, requests, seed),
            };
            let load = Load { write, warm_up, ..load.at_depth(depth) };
            Ok(point(&probe(device, queue, &load), &load, scheduler).to_string())
        },
    )?
    .map_err(|error: DeviceError| to_python(error))
}

/// The profile of a drive that DiskSim's parameter files describe, as JSON: `name`, `profile` (TOML), `warnings`,
/// `files`, `sectors`. `disk` names one of several.
#[pyfunction]
#[pyo3(signature = (path, *, disk=None))]
pub fn device_import_diskspecs(py: Python<'_>, path: PathBuf, disk: Option<&str>) -> PyResult<String> {
    let imported = outside(
        py,
        || format!("parameters {}", path.display()),
        || {
            let imported = match disk {
                Some(disk) => headstart_diskspecs::import_disk(&path, disk),
                None => headstart_diskspecs::import(&path),
            };
            imported.map_err(to_python)
        },
    )?;
    let Imported { name, profile, warnings, files, sectors } = imported?;
    let files: Vec<_> = files.iter().map(|file| file.to_string_lossy()).collect();
    Ok(json!({"name": name, "profile": profile, "warnings": warnings, "files": files, "sectors": sectors}).to_string())
}

/// The data of a device's picture, as JSON: the seek curve (`distance_cylinders`, `ns`) and the zones if it has an arm,
/// otherwise response time and throughput of random reads `by_size` and `by_depth`.
#[pyfunction]
#[pyo3(signature = (name, *, keys="{}"))]
pub fn device_survey(py: Python<'_>, name: &str, keys: &str) -> PyResult<String> {
    let surveyed = outside(py, || format!("device {name}, keys {keys}"), || survey(name, keys))?;
    Ok(surveyed.map_err(to_python)?.to_string())
}

fn survey(name: &str, keys: &str) -> Result<Value, DeviceError> {
    let device = named(name, keys)?.device;
    if let Some(mechanics) = device.mechanics() {
        let seek: Vec<Value> = distances(mechanics.seek.len())
            .map(|distance| json!({"distance_cylinders": distance, "ns": mechanics.seek[distance]}))
            .collect();
        let zones = mechanics_facts(&mechanics)["zones"].take();
        return Ok(json!({"seek": seek, "zones": zones}));
    }
    // A device that serves one request at a time has one series.
    let series = device.concurrency().min(2) as usize;
    let mut by_size = Vec::new();
    for sectors in SIZES.map(|power| 1u32 << power) {
        if device.capacity_sectors().is_some_and(|capacity| capacity < u64::from(sectors)) {
            break;
        }
        for (depth, name) in [(1, "one at a time"), (device.concurrency(), "all in parallel")].into_iter().take(series)
        {
            let pattern = Pattern::Random { seed: SEED };
            let load = Load { pattern, sectors, depth, warm_up: 0, requests: SURVEYED_REQUESTS, write: false };
            by_size.push(point(&run(&*device, &load)?, &load, name));
        }
    }
    let mut by_depth = Vec::new();
    for depth in DEPTHS.map(|power| 1u32 << power) {
        for write in [false, true] {
            let load = Load::random(fitting(&*device, DEPTH_SECTORS), SURVEYED_REQUESTS, SEED).at_depth(depth);
            let load = Load { write, warm_up: if write { WARM_UP } else { 0 }, ..load };
            by_depth.push(point(&run(&*device, &load)?, &load, if write { "writes" } else { "reads" }));
        }
    }
    Ok(json!({"by_size": by_size, "by_depth": by_depth}))
}

fn point(probed: &Probed, load: &Load, name: &str) -> Value {
    json!({
        "name": name,
        "request_bytes": u64::from(load.sectors) * headstart_device::SECTOR_BYTES,
        "depth": load.depth,
        "response_ns_mean": rounded(probed.mean_ns()),
        "response_ns_p50": probed.percentile(50),
        "response_ns_p90": probed.percentile(90),
        "response_ns_p99": probed.percentile(99),
        "response_ns_max": probed.percentile(100),
        "requests_per_s": probed.requests_per_second(),
        "bytes_per_s": probed.bytes_per_second(),
    })
}

/// Distances whose seek time a picture shows: all short ones, then evenly spaced ones, and always the last.
fn distances(cylinders: usize) -> impl Iterator<Item = usize> {
    let short = cylinders.clamp(1, 200);
    let last = cylinders.saturating_sub(1);
    let long = (short..last).step_by((cylinders / SEEK_POINTS).max(1));
    (1..short).chain(long).chain((last >= short).then_some(last))
}
