//! The equations for a recorded program that reads files through the file system.
//!
//! The paper names web servers, scientific programs and databases as future applications of its model (section 6), and
//! has a request's size "computed by simulating the algorithm to determine the amount of data prefetched" (section
//! 4.4). We therefore pass over the trace once ([`walk`]): the file system's own read-ahead gives what is fetched, the
//! layout gives where it lies, and equations (1) to (3) how long the disk takes ([`TracedDisk`]). The disk's angle is
//! averaged, not simulated; the order of its queue is ignored.
//!
//! One process reads with a cache that holds everything fetched. Everything else is refused at its key.

mod walk;
mod writing;

use headstart_analytic::file_system::{Parameters, TracedDisk, Work};
use headstart_engine::Clusters;
use headstart_layout::{FfsKeys, Opens};
use headstart_policy::readahead::{self, Ffs, Size};
use headstart_scenario::{CacheSize, ComputeKey, Input, Scenario, Writes};
use headstart_types::{KeyError, Nanos};
use serde_json::{json, Value};

use self::walk::{Costs, Walk};
use self::writing::Writing;
use super::scenario::{known_machine, machine, ModelledMachine};
use crate::storage::Storage;
use crate::workload::{placing, survey, Cutter, Opened};
use crate::Error;

/// The model's answer for the mean request of a trace, as JSON.
///
/// # Errors
/// A key that the equations do not cover, or that the simulation refuses; a trace that is wrong or empty.
pub fn traced_answer(scenario: &Scenario) -> Result<Value, Error> {
    let keys = known(scenario).map_err(|error| scenario.as_written(error.into()))?;
    let walk = walked(scenario, &keys)?;
    fits(scenario, walk.fetched())?;
    let (requests, total) = (walk.tally.requests as f64, walk.disk.total);
    let block_bytes = scenario.workload.block_bytes();
    Ok(json!({
        "response_ns": walk.response_ns / requests,
        "elapsed_ns": walk.now,
        "disk_requests": walk.disk.requests,
        "disk_writes": walk.disk.writes,
        "buffer_hits": walk.disk.hits,
        "disk": {
            "overhead_ns": total.overhead,
            "seek_ns": total.seek,
            "rotation_ns": total.rotation,
            "transfer_ns": total.transfer,
        },
        "parameters": {
            "requests": walk.tally.requests,
            "request": walk.tally.bytes as f64 / requests,
            "data_span": walk.tally.blocks * block_bytes,
            "runs": walk.tally.runs,
            "run_length": walk.tally.bytes as f64 / walk.tally.runs as f64,
            "switches": walk.tally.switches,
            "writes": walk.tally.writes,
        },
    }))
}

/// Passes over the trace.
fn walked(scenario: &Scenario, keys: &FfsKeys) -> Result<Walk, Error> {
    let Some(opened) = Opened::new(scenario) else { return Err(no_trace().into()) };
    let carries = opened.read()?.carries();
    if !carries.files {
        return Err(KeyError::new("workload.trace", "the trace does not distinguish files", "one with files").into());
    }
    let ModelledMachine { file_system, disk, curve, geometry, .. } = machine(scenario, keys, 1)?;
    let work = Work { streams: 1, file_bytes: 1, request_bytes: 1, think_ns: 0.0, lone_seek: 0.0 };
    Parameters { file_system, disk, work }.check()?;
    let cutter = Cutter::new(&scenario.workload, carries, true);
    let found = survey(&opened, &cutter, false)?;
    let storage = Storage::try_new(&scenario.device, scenario.workload.block_bytes(), scenario.seed)?;
    let device = storage.drives()[0].device();
    let placement = headstart_layout::Placement::Ffs(*keys);
    let placing = placing(scenario, placement, scenario.workload.addresses, device, &found)?;
    let read_ahead = read_ahead(scenario);
    let costs = Costs {
        system_call_ns: file_system.system_call_ns,
        copy_ns_per_kib: file_system.copy_ns_per_kib,
        think_scale: match scenario.workload.compute {
            ComputeKey::Trace => scenario.workload.section.compute_scale,
            _ => 0.0,
        },
        opens: keys.opens == Opens::Read,
    };
    let writing = writing(scenario);
    if writing.is_some() && disk.parallel {
        let problem = "the model does not cover writes of flash";
        return Err(KeyError::new("workload.writes", problem, "\"as-read\" or \"skip\", or a drive with an arm").into());
    }
    let disk = TracedDisk::new(&disk, curve, geometry);
    let mut walk = Walk::new((placing, &found.contents), read_ahead, writing, disk, costs);
    walk.through(&opened, &cutter)?;
    if walk.tally.requests == 0 {
        return Err(KeyError::new("workload.trace", "nothing is read", "a trace with a read").into());
    }
    Ok(walk)
}

/// The file system's read-ahead, if it is the policy.
fn read_ahead(scenario: &Scenario) -> Option<Ffs> {
    if scenario.policy.name() != "ffs" {
        return None;
    }
    let keys: &readahead::FfsKeys = scenario.policy.policy.keys.get();
    let blocks = |size: Size| size.blocks(scenario.workload.block_bytes());
    Some(Ffs::new(blocks(keys.first), blocks(keys.max), keys.files as usize))
}

/// The write-back state, if writes do not count as reads.
fn writing(scenario: &Scenario) -> Option<Writing> {
    let block_bytes = scenario.workload.block_bytes();
    let clusters = scenario.cache.write_cluster.map(|blocks| Clusters::new(blocks, block_bytes));
    scenario.cache.section.write_delay.map(|delay| Writing::new(delay.0 as f64, clusters))
}

fn no_trace() -> KeyError {
    KeyError::new("workload", "the model of a trace reads a trace", "workload.trace, or a generator of files")
}

/// Refuses what the equations do not cover; returns the layout of files.
fn known(scenario: &Scenario) -> Result<FfsKeys, KeyError> {
    let keys = known_machine(scenario)?;
    let workload = &scenario.workload;
    if !matches!(workload.input, Input::Trace(..) | Input::Generator(..)) {
        return Err(no_trace());
    }
    if workload.section.processes.are_several() {
        return Err(KeyError::new("workload.processes", "the model of a trace has one process", "\"merged\""));
    }
    if workload.section.writes == Writes::Through {
        let problem = "the model of a trace does not wait for writes";
        return Err(KeyError::new("workload.writes", problem, "\"as-read\", \"skip\" or \"back\""));
    }
    if scenario.device.shared_bus.is_some() {
        return Err(KeyError::new("device.shared_bus", "the model has one disk", "no shared bus"));
    }
    match workload.compute {
        ComputeKey::Constant(Nanos::ZERO) | ComputeKey::Trace => Ok(keys),
        _ => {
            let problem = "the model of a trace uses the trace's think times, or none";
            Err(KeyError::new("workload.compute", problem, "\"trace\" or \"0ms\""))
        }
    }
}

/// Checks that the cache holds everything that is fetched: the model evicts nothing.
fn fits(scenario: &Scenario, fetched: u64) -> Result<(), KeyError> {
    let CacheSize::Blocks(frames) = scenario.cache.size else {
        return Err(KeyError::new(
            "cache.footprint",
            "the model evicts nothing",
            "cache.blocks, as large as all that is read",
        ));
    };
    if u64::from(frames) >= fetched {
        return Ok(());
    }
    let problem = format!("{frames} blocks do not hold what is fetched, and the model evicts nothing");
    Err(KeyError::new("cache.blocks", problem, format!("at least {fetched}")))
}
