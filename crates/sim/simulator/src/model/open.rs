//! Model parameters of a scenario with open arrivals: generator `runs` on one disk, first come, first served.
//!
//! The cache must not serve requests, because the model has none: it holds at most a hundredth of the span. Everything
//! else that the equations do not cover is refused at its key.

use headstart_analytic::file_system::{open_response, Arrivals, OpenResponse, Seeks, Timing};
use headstart_layout::Placement;
use headstart_scenario::{Arrival, CacheSegments, CacheSize, Input, Scenario};
use headstart_types::{Bytes, KeyError, Nanos};
use serde_json::{json, Value};

use super::drive::{of_mechanics, without_arm, Modelled};
use super::scenario::{cut, generator_key};
use crate::storage::Storage;
use crate::Error;

/// Maximum size of the cache as a share of the span: at most this share of the requests hit.
const CACHED_MAX: f64 = 0.01;

/// The model's answer for the mean request of `scenario`, as JSON.
///
/// # Errors
/// A key that the equations do not cover, or that the simulation refuses; requests that arrive too fast.
pub fn open_answer(scenario: &Scenario) -> Result<Value, Error> {
    let OpenResponse { response_ns, wait_ns, service, busy } = open(scenario)?;
    Ok(json!({
        "response_ns": response_ns,
        "wait_ns": wait_ns,
        "service_ns": service.sum(),
        "overhead_ns": service.overhead,
        "seek_ns": service.seek,
        "rotation_ns": service.rotation,
        "transfer_ns": service.transfer,
        "busy": busy,
    }))
}

/// The model of the mean request of `scenario`.
///
/// # Errors
/// As for [`open_answer`].
pub fn open(scenario: &Scenario) -> Result<OpenResponse, Error> {
    known(scenario).map_err(|error| scenario.as_written(error.into()))?;
    let Bytes(span) = generator_key(scenario, "span")?;
    let Bytes(request_bytes) = generator_key(scenario, "request")?;
    let block_bytes = scenario.workload.block_bytes();
    if request_bytes % block_bytes != 0 {
        let problem = format!("{} is not a whole number of blocks", Bytes(request_bytes));
        return Err(KeyError::new("workload.request", problem, format!("a multiple of {}", Bytes(block_bytes))).into());
    }
    uncached(scenario, span)?;
    let mut storage = Storage::try_new(&scenario.device, block_bytes, scenario.seed)?;
    if let Some(CacheSegments::Count(count)) = scenario.device.cache_segments {
        storage.divide_buffers(count)?;
    }
    let device = storage.drives()[0].device();
    let Modelled { disk, curve, .. } = match device.mechanics() {
        Some(mut mechanics) => {
            cut(&mut mechanics, span.div_ceil(headstart_device::SECTOR_BYTES));
            of_mechanics(&mechanics)
        }
        None => without_arm(device).map_err(|error| error.within("device.model"))?,
    };
    let arrivals = Arrivals { places: (span / request_bytes) as f64, request_bytes, ..arrivals(scenario)? };
    let found = open_response(&disk, &arrivals, &mut Seeks::new(curve));
    Ok(found.map_err(|error| error.within("workload"))?)
}

fn arrivals(scenario: &Scenario) -> Result<Arrivals, KeyError> {
    let Nanos(interval) = generator_key(scenario, "interval")?;
    let scale = if let Arrival::Open(scale) = scenario.workload.arrival { scale } else { 1.0 };
    let interval_ns = interval as f64 * scale;
    if interval_ns <= 0.0 {
        return Err(KeyError::new("workload.interval", "all requests arrive at once", "a time above 0"));
    }
    let timing: String = generator_key(scenario, "timing")?;
    let timing = match timing.as_str() {
        "constant" => Timing::Constant,
        "bursty" => Timing::Bursty(generator_key(scenario, "burst")?),
        _ => Timing::Poisson,
    };
    let run_length = generator_key(scenario, "run_length")?;
    Ok(Arrivals { timing, interval_ns, run_length, request_bytes: 1, places: 1.0 })
}

/// Refuses a cache that serves requests.
fn uncached(scenario: &Scenario, span: u64) -> Result<(), KeyError> {
    let CacheSize::Blocks(frames) = scenario.cache.size else {
        return Err(KeyError::new("cache.footprint", "the model has no cache that serves requests", "cache.blocks"));
    };
    let most = (span as f64 * CACHED_MAX / scenario.workload.block_bytes() as f64) as u64;
    if u64::from(frames) <= most {
        return Ok(());
    }
    let problem = format!("a cache of {frames} blocks serves requests, which the model does not cover");
    Err(KeyError::new("cache.blocks", problem, format!("at most {most}, a hundredth of the span")))
}

/// Refuses what the equations do not cover.
fn known(scenario: &Scenario) -> Result<(), KeyError> {
    let Scenario { workload, device, policy, .. } = scenario;
    let refuse = |wrong: bool, key: &str, problem: &str, allowed: &str| match wrong {
        true => Err(KeyError::new(key, problem, allowed)),
        false => Ok(()),
    };
    let runs = matches!(&workload.input, Input::Generator(name, _) if name == "runs");
    refuse(!runs, "workload.generator", "the model of open arrivals has runs of requests", "\"runs\"")?;
    refuse(workload.arrival == Arrival::Closed, "workload.arrival", "the model has open arrivals", "\"open\"")?;
    let addresses = matches!(workload.placement, None | Some(Placement::Address));
    refuse(!addresses, "workload.placement", "requests have addresses", "\"address\"")?;
    refuse(!scenario.lower.is_empty(), "level", "the model has no levels", "one [[level]]")?;
    refuse(policy.name() != "demand", "policy.name", "the model has only a disk", "\"demand\"")?;
    refuse(device.count > 1, "device.count", "the model has one disk", "1")?;
    refuse(!device.array.is_independent(), "device.array", "the model has one disk", "no array, and count = 1")?;
    let queue = "the model's disk takes one command at a time";
    refuse(device.commands.is_some(), "device.queue_depth", queue, "no queue")?;
    let order = "the model serves requests in the order of their arrival";
    refuse(device.scheduler != "fcfs", "device.scheduler", order, "\"fcfs\"")?;
    let segments = "with one stream of requests only a fixed number of segments makes sense";
    let follows = matches!(device.cache_segments, Some(CacheSegments::Streams | CacheSegments::OpenFiles));
    refuse(follows, "device.cache_segments", segments, "a number")?;
    refuse(device.shared_bus.is_some(), "device.shared_bus", "the model has one disk", "no shared bus")
}
