//! The model's answer for a scenario, as shown by the command and Python.

use headstart_analytic::file_system::{advise, disk_time, response, Prefetch, Scheduler, TERMS};
use headstart_scenario::Scenario;
use headstart_types::KeyError;
use serde_json::{json, Map, Value};

use super::scenario::{model, Model};
use crate::Error;

/// The response time with its terms, the disk time of a file, and their parameters; with `advice`, suggested changes as
/// keys of the scenario, best first.
///
/// # Errors
/// A key of the scenario that the equations do not cover, or that the simulation refuses.
pub fn answer(scenario: &Scenario, advice: bool) -> Result<Value, Error> {
    let mut model = model(scenario)?;
    let found = response(&model.parameters, &mut model.seeks)?;
    let terms: Map<String, Value> =
        TERMS.iter().zip(found.values()).map(|(term, value)| ((*term).into(), value.into())).collect();
    let disk = disk_time(&model.parameters, &mut model.seeks)?;
    let mut answer = json!({
        "response": terms,
        "disk": {
            "overhead_ns": disk.overhead,
            "seek_ns": disk.seek,
            "rotation_ns": disk.rotation,
            "transfer_ns": disk.transfer,
        },
        "parameters": parameters(&model),
    });
    if advice {
        answer["advice"] = list(scenario, &mut model)?;
    }
    Ok(answer)
}

/// In the terms of Python's `headstart.model.file_system`; sizes in bytes, times in nanoseconds.
fn parameters(model: &Model) -> Value {
    let (file_system, disk, work) = (&model.parameters.file_system, &model.parameters.disk, &model.parameters.work);
    let (first, limit) = match file_system.prefetch {
        Prefetch::Off => (file_system.block_bytes, 0),
        Prefetch::Doubling { first_bytes, limit_bytes } => (first_bytes, limit_bytes),
    };
    // JSON has no infinity: such a rate is unlimited.
    let rate = |rate: f64| rate.is_finite().then_some(rate);
    json!({
        "streams": work.streams,
        "file_size": work.file_bytes,
        "request": work.request_bytes,
        "think": work.think_ns,
        "lone_seek": work.lone_seek,
        "block_size": file_system.block_bytes,
        "direct_blocks": file_system.direct_blocks,
        "fragment": file_system.fragment_bytes,
        "prefetch_first": first,
        "prefetch_limit": limit,
        "system_call": file_system.system_call_ns,
        "copy_per_kib": file_system.copy_ns_per_kib,
        "overhead": disk.miss_overhead_ns,
        "hit_overhead": disk.hit_overhead_ns,
        "revolution": disk.revolution_ns,
        "disk_rate": rate(disk.disk_bytes_per_second),
        "bus_rate": rate(disk.bus_bytes_per_second),
        "cache_segments": disk.cache_segments,
        "read_ahead": disk.read_ahead,
        "read_ahead_on_sequence": disk.read_ahead_on_sequence,
        "read_during_overhead": disk.read_during_overhead,
        "scheduler": match disk.scheduler {
            Scheduler::Clook => "clook",
            Scheduler::Cscan => "cscan",
            Scheduler::Fcfs => "fcfs",
        },
    })
}

fn list(scenario: &Scenario, model: &mut Model) -> Result<Value, KeyError> {
    // Read-ahead is a key of each profile; contiguous clusters have no size.
    let mut but = vec!["read_ahead", "cluster"];
    if !model.divides {
        but.push("cache_segments");
    }
    let advice = advise(&model.parameters, &mut model.seeks, &but)?;
    let shown = advice.into_iter().map(|advice| {
        let mut set: Vec<String> = Vec::new();
        for (parameter, value) in &advice.set {
            let key = match *parameter {
                "prefetch_first" => "policy.first",
                "prefetch_limit" => "policy.max",
                "request" => "workload.request",
                "cache_segments" => "device.cache_segments",
                "scheduler" => "device.scheduler",
                other => other,
            };
            if key.starts_with("policy.")
                && scenario.policy.name() == "demand"
                && !set.iter().any(|set| set == "policy.name=ffs")
            {
                set.push("policy.name=ffs".to_owned());
            }
            set.push(format!("{key}={value}"));
        }
        json!({"set": set, "total_ns": advice.total_ns, "gain": advice.gain})
    });
    Ok(shown.collect())
}
