//! Model parameters of a scenario, as far as the simulated file system and the equations overlap.
//!
//! Files of one size, each read from start to end, concurrently or one after another; an empty file system with
//! contiguous clusters; one disk. Everything else is refused at its key. The form is that of 4.4BSD's code, which the
//! simulated file system follows.
//!
//! Interpretations: without a rotational delay, contiguous data is not divided into clusters: the cluster size has no
//! effect, and `policy.max` limits requests. A single process that reads several files finds the arm at the previous
//! file, except for the first, unless it reads each inode, which moves the arm.

use headstart_analytic::file_system::{
    Disk, FileSystem, Form, Geometry, Parameters, Prefetch, Scheduler, SeekCurve, Seeks, Work,
};
use headstart_device::{Device, Mechanics, Request};
use headstart_layout::{FfsKeys, Opens, Placement};
use headstart_policy::readahead::{self, Size};
use headstart_scenario::{Arrival, CacheSegments, CacheSize, Input, Issue, Processes, Scenario};
use headstart_types::{read_table, Bytes, KeyError, Nanos};
use serde::de::DeserializeOwned;
use toml::{Table, Value};

use super::drive::{of_mechanics, without_arm, Modelled};
use super::question::scheduler;
use crate::open_files::SEGMENTS_MAX;
use crate::storage::Storage;
use crate::Error;

/// A scenario in the model's terms.
#[derive(Debug)]
pub struct Model {
    pub parameters: Parameters,
    /// Its drive's seeks.
    pub seeks: Seeks,
    /// Whether the drive's buffer can be divided into as many segments as there are streams.
    pub divides: bool,
}

/// The size of contiguous data, practically unlimited: the maximum of the model's parameters.
const UNCUT_BYTES: u64 = 1 << 30;

/// The model of `scenario`.
///
/// # Errors
/// A key that the equations do not cover, or that the simulation refuses.
pub fn model(scenario: &Scenario) -> Result<Model, Error> {
    let placement = known(scenario).map_err(|error| scenario.as_written(error.into()))?;
    let (streams, work) = work(scenario, &placement)?;
    let ModelledMachine { file_system, disk, curve, divides, .. } = machine(scenario, &placement, streams)?;
    fits(scenario, streams, &work, &file_system)?;
    let parameters = Parameters { file_system, disk, work };
    parameters.check()?;
    Ok(Model { parameters, seeks: Seeks::new(curve), divides })
}

/// A scenario's file system and disk in the model's terms.
#[derive(Debug)]
pub(super) struct ModelledMachine {
    pub file_system: FileSystem,
    pub disk: Disk,
    pub curve: SeekCurve,
    pub geometry: Geometry,
    /// See [`Model::divides`].
    divides: bool,
}

/// The machine of `scenario`, for this number of streams.
pub(super) fn machine(scenario: &Scenario, placement: &FfsKeys, streams: u32) -> Result<ModelledMachine, Error> {
    let block_bytes = scenario.workload.block_bytes();
    let file_system = FileSystem {
        block_bytes,
        direct_blocks: placement.direct_blocks.into(),
        cluster_bytes: UNCUT_BYTES / block_bytes * block_bytes,
        fragment_bytes: placement.fragment.0,
        prefetch: prefetch(scenario)?,
        first_alone: false,
        system_call_ns: scenario.host.system_call.0 as f64,
        copy_ns_per_kib: scenario.host.copy_per_kib.0 as f64,
        form: Form::Bsd,
    };
    let mut storage = Storage::try_new(&scenario.device, block_bytes, scenario.seed)?;
    match scenario.device.cache_segments {
        None => {}
        Some(CacheSegments::Count(count)) => storage.divide_buffers(count)?,
        Some(CacheSegments::Streams) => storage.divide_buffers(streams.into())?,
        // All streams have a file open until they end.
        Some(CacheSegments::OpenFiles) => storage.divide_buffers(streams.min(SEGMENTS_MAX).into())?,
    }
    let device = storage.drives()[0].device();
    let Modelled { disk, curve, geometry } = drive(device, placement)?;
    let disk = Disk { scheduler: order(scenario)?, ..disk };
    let divides = device.clone_box().divide_buffer(streams.into()).is_ok();
    Ok(ModelledMachine { file_system, disk, curve, geometry, divides })
}

/// Refuses what the equations do not cover.
fn known(scenario: &Scenario) -> Result<FfsKeys, KeyError> {
    let files = matches!(&scenario.workload.input, Input::Generator(name, _) if name == "files");
    if !files {
        let problem = "the model reads files of one size from start to end";
        return Err(KeyError::new("workload.generator", problem, "\"files\""));
    }
    let placement = known_machine(scenario)?;
    if placement.full > 0.0 {
        return Err(KeyError::new("workload.placement.full", "the model has an empty file system", "0"));
    }
    if placement.directory_files > 1 {
        let problem = "the model spreads files over the disk one by one";
        return Err(KeyError::new("workload.placement.directory_files", problem, "1"));
    }
    if scenario.workload.section.limit.is_some() {
        return Err(KeyError::new("workload.limit", "the model reads files to their end", "no limit"));
    }
    Ok(placement)
}

/// The same checks for everything but the workload; returns the layout of files.
pub(super) fn known_machine(scenario: &Scenario) -> Result<FfsKeys, KeyError> {
    let Scenario { workload, device, host, .. } = scenario;
    let refuse = |wrong: bool, key: &str, problem: &str, allowed: &str| match wrong {
        true => Err(KeyError::new(key, problem, allowed)),
        false => Ok(()),
    };
    let Some(Placement::Ffs(placement)) = workload.placement else {
        return Err(KeyError::new("workload.placement", "the model has a Fast File System", "\"ffs\""));
    };
    let behind = "the model lays clusters one after another";
    refuse(placement.rotational_delay > Nanos::ZERO, "workload.placement.rotational_delay", behind, "\"0ms\"")?;
    let processes = "\"merged\" or \"per-pid\"";
    refuse(
        workload.section.processes == Processes::Dealt,
        "workload.processes",
        "each file has its own process",
        processes,
    )?;
    refuse(scenario.process.is_some(), "process", "the model's processes read files, not patterns", "no [process]")?;
    refuse(!scenario.lower.is_empty(), "level", "the model has one cache", "one [[level]]")?;
    refuse(workload.arrival != Arrival::Closed, "workload.arrival", "the model has closed arrivals", "\"closed\"")?;
    refuse(workload.section.issue == Issue::Whole, "workload.issue", "the model reads block by block", "\"blocks\"")?;
    let total = "the model's think time follows each request";
    refuse(workload.section.compute_total.is_some(), "workload.compute_total", total, "workload.compute")?;
    let none = "\"0ms\": the model has system calls and copies";
    refuse(host.driver_overhead > Nanos::ZERO, "host.driver_overhead", "the model has no such cost", none)?;
    refuse(host.hit_time > Nanos::ZERO, "host.hit_time", "the model has no such cost", none)?;
    refuse(device.count > 1, "device.count", "the model has one disk", "1")?;
    refuse(!device.array.is_independent(), "device.array", "the model has one disk", "no array, and count = 1")?;
    refuse(
        device.commands.is_some(),
        "device.queue_depth",
        "the model's disk takes one command at a time",
        "no queue",
    )?;
    Ok(placement)
}

/// The streams and what they read.
fn work(scenario: &Scenario, placement: &FfsKeys) -> Result<(u32, Work), KeyError> {
    let files: u32 = generator_key(scenario, "files")?;
    let Bytes(file_bytes) = generator_key(scenario, "file_size")?;
    let Bytes(request_bytes) = generator_key(scenario, "request")?;
    let text: String = generator_key(scenario, "compute")?;
    let constant = |_| KeyError::new("workload.compute", format!("\"{text}\" is not a constant"), Nanos::ALLOWED);
    let think: Nanos = text.parse().map_err(constant)?;
    let several = scenario.workload.section.processes.are_several();
    // The arm is at the previous file, except for the first file; reading an inode has moved it.
    let lone_seek = match placement.opens {
        Opens::Read => 0.0,
        Opens::Before if several => 0.0,
        Opens::Before => f64::from(files - 1) / f64::from(files),
    };
    let streams = if several { files } else { 1 };
    let think_ns = think.0 as f64 * scenario.workload.section.compute_scale;
    Ok((streams, Work { streams, file_bytes, request_bytes, think_ns, lone_seek }))
}

/// A key of the generator, which the scenario always has.
pub(super) fn generator_key<K: DeserializeOwned>(scenario: &Scenario, key: &str) -> Result<K, KeyError> {
    let table = match &scenario.workload.input {
        Input::Generator(_, keys) => keys,
        _ => &Table::new(),
    };
    let value = table.get(key).cloned().unwrap_or(Value::Boolean(false));
    let alone = Table::from_iter([("value".to_owned(), value)]);
    let read: Alone<K> = read_table(alone).map_err(|error| KeyError { key: format!("workload.{key}"), ..error })?;
    Ok(read.value)
}

/// One value of a table.
#[derive(serde::Deserialize)]
struct Alone<K> {
    value: K,
}

fn prefetch(scenario: &Scenario) -> Result<Prefetch, KeyError> {
    let block_bytes = scenario.workload.block_bytes();
    match scenario.policy.name() {
        "demand" => Ok(Prefetch::Off),
        "ffs" => {
            let keys: &readahead::FfsKeys = scenario.policy.policy.keys.get();
            let bytes = |size: Size| size.blocks(block_bytes) * block_bytes;
            Ok(Prefetch::Doubling { first_bytes: bytes(keys.first), limit_bytes: bytes(keys.max) })
        }
        other => {
            let problem = format!("the model does not cover {other}");
            Err(KeyError::new("policy.name", problem, "\"ffs\", or \"demand\" for no prefetching"))
        }
    }
}

/// Checks that the cache holds prefetched blocks until they are read: the model evicts nothing.
fn fits(scenario: &Scenario, streams: u32, work: &Work, file_system: &FileSystem) -> Result<(), KeyError> {
    let CacheSize::Blocks(frames) = scenario.cache.size else { return Ok(()) };
    let limit = match file_system.prefetch {
        Prefetch::Off => file_system.block_bytes,
        Prefetch::Doubling { limit_bytes, .. } => limit_bytes,
    };
    let request = work.request_bytes.min(work.file_bytes);
    // Two windows, a request's blocks, an indirect block and those above it.
    let blocks = (2 * limit + request).div_ceil(file_system.block_bytes) + 4;
    let least = u64::from(streams) * blocks;
    if u64::from(frames) >= least {
        return Ok(());
    }
    let problem = format!("{frames} blocks may not hold what is prefetched until it is read");
    Err(KeyError::new("cache.blocks", problem, format!("at least {least}")))
}

/// The device, restricted to the cylinders used by the file system.
fn drive(device: &dyn Device, placement: &FfsKeys) -> Result<Modelled, KeyError> {
    let Some(mut mechanics) = device.mechanics() else {
        return without_arm(device).map_err(|error| error.within("device.model"));
    };
    if let Some(Bytes(bytes)) = placement.size {
        cut(&mut mechanics, bytes / headstart_device::SECTOR_BYTES);
    }
    let mut modelled = of_mechanics(&mechanics);
    modelled.geometry.writes_behind = writes_behind(device);
    Ok(modelled)
}

/// Whether a write to the idle device ends once its buffer has it.
fn writes_behind(device: &dyn Device) -> bool {
    let write = Request { write: true, ..Request::read(0, 1, 0) };
    device.clone_box().serve(Nanos::ZERO, &write).buffer_hit
}

/// Keeps the zones and seeks that the first `sectors` sectors need.
pub(super) fn cut(mechanics: &mut Mechanics, sectors: u64) {
    mechanics.bands.retain(|band| band.first < sectors);
    let Some(last) = mechanics.bands.last_mut() else { return };
    let share = (sectors - last.first).min(last.sectors) as f64 / last.sectors as f64;
    last.sectors = (last.sectors as f64 * share).ceil() as u64;
    last.cylinders = (f64::from(last.cylinders) * share).ceil() as u32;
    mechanics.seek.truncate((last.first_cylinder + last.cylinders).max(1) as usize);
}

fn order(scenario: &Scenario) -> Result<Scheduler, KeyError> {
    let keys = &scenario.device;
    let order = scheduler(&keys.scheduler).map_err(|error| error.within("device"))?;
    // Without the full stroke it equals CLOOK.
    let full_stroke = keys.scheduler_keys.get("full_stroke").and_then(Value::as_bool).unwrap_or(false);
    Ok(if order == Scheduler::Cscan && !full_stroke { Scheduler::Clook } else { order })
}
