//! A scenario for the live testbed: the sections are read and built as for the simulator, played there, and the
//! measurements are reported in the simulator's format.
//!
//! Not everything can be played: disks have a constant service time and serve first come, first served, and every
//! process and disk is a thread.

use headstart_assemble::{check, of_counts, LevelReport};
use headstart_device::Statistics;
use headstart_engine::parallel::{DiskTimes, Member, Played, Setup};
use headstart_engine::Counts;
use headstart_layout::Places;
use headstart_scenario::{Contends, Input, ProcessKeys, Scenario};
use headstart_types::{Bytes, KeyError, Nanos};

use crate::build::{self, MachineParts};
use crate::outcome::{intervals, names, of_member, Totals};
use crate::report::{DeviceReport, ProcessReport, Report};
use crate::simulate::{hash_input, prepare, ready, report, Facts};
use crate::Error;

/// Maximum number of threads of a run.
const THREADS_MAX: u64 = 2_048;
/// Maximum number of references of a run: each takes real time.
const REFERENCES_MAX: usize = 1_000_000;
/// Maximum size of all disks together.
const BYTES_MAX: u64 = 1 << 30;

/// The parts of a scenario that the live testbed does not need, but its report does.
pub struct Description {
    facts: Facts,
    frames: Vec<u32>,
    first: usize,
    trace_sha256: String,
    block_sectors: u32,
}

/// The input of the live testbed, and the places of its blocks.
///
/// # Errors
/// A key that is wrong, or asks for something that cannot be played.
pub fn playable(scenario: &Scenario) -> Result<(Setup, Places, Description), Error> {
    let keys = can_be_played(scenario)?;
    let (parts, facts) = ready(scenario, prepare(scenario)?)?;
    let trace_sha256 = hash_input(scenario, facts.placement);
    let MachineParts { references, places, storage, context, env, .. } = parts;
    let block_sectors = storage.block_sectors();
    let block_bytes = scenario.workload.block_bytes();
    let Some(program) = context.program.clone() else { return Err(no_program().into()) };
    if program.blocks.len() > REFERENCES_MAX {
        let problem = format!("{} reads, each of which takes real time", program.blocks.len());
        return Err(refused("process.pattern", problem, format!("at most {REFERENCES_MAX} reads")).into());
    }
    let blocks = context.disk_of.len() as u64;
    if blocks.saturating_mul(block_bytes) > BYTES_MAX {
        let problem = format!("{blocks} blocks of {} do not fit in memory", Bytes(block_bytes));
        return Err(refused("workload.block_size", problem, format!("{} in all", Bytes(BYTES_MAX))).into());
    }
    let first = headstart_assemble::first_levels(scenario);
    let about = (storage.drives().len(), references.distinct);
    let (tiers, frames) = headstart_assemble::tiers(scenario, (&context, &env), (first, true), about)?;
    let processes = program.string_of.len() as u32;
    let setup = Setup {
        tiers,
        first,
        block_sectors: u64::from(block_sectors),
        disks: context.disks,
        block_bytes: block_bytes as usize,
        service: context.nominal_service,
        barrier: headstart_assemble::barrier(keys, headstart_assemble::shares(&program)),
        thinks: (0..processes).map(|process| build::thinks(scenario, process)).collect(),
        costs: headstart_assemble::costs(scenario),
        contention: keys.section.contention,
        actions_contend: keys.section.contention_scope == Contends::All,
        actions: scenario
            .has_actions()
            .then(|| headstart_assemble::actions(scenario, keys, processes as usize, context.frames)),
        program,
    };
    Ok((setup, places, Description { facts, frames, first, trace_sha256, block_sectors }))
}

fn refused(key: &str, problem: impl Into<String>, allowed: impl Into<String>) -> KeyError {
    KeyError::new(key, format!("{} (live runs)", problem.into()), allowed)
}

fn no_program() -> KeyError {
    refused("process.pattern", "there is no parallel program to play", "[process] with a pattern")
}

/// The checks that precede building anything.
fn can_be_played(scenario: &Scenario) -> Result<&ProcessKeys, KeyError> {
    let Some(keys) = &scenario.process else { return Err(no_program()) };
    let (Some(pattern), Input::Pattern) = (&keys.pattern, &scenario.workload.input) else { return Err(no_program()) };
    let device = &scenario.device;
    if device.model != "uniform" {
        let problem = format!("\"{}\" does not have a constant service time", device.model);
        return Err(refused("device.model", problem, "{name = \"uniform\", fetch_time = ...}"));
    }
    if device.scheduler != "fcfs" || device.commands.is_some() {
        let problem = format!("\"{}\" is not the scheduler of played disks", device.scheduler);
        return Err(refused("device.scheduler", problem, "\"fcfs\""));
    }
    if !device.array.is_independent() || device.array.name == "mirror" {
        let problem = format!("\"{}\" cannot be played", device.array.name);
        return Err(refused("device.array", problem, "\"stripe\" or \"concat\""));
    }
    if keys.section.io_processors > 0 {
        return Err(refused("process.io_processors", "I/O processors cannot be played", "0"));
    }
    if keys.section.remote_cost > Nanos::ZERO {
        return Err(refused("process.remote_cost", "memory is uniform", "0s"));
    }
    if scenario.spread().is_some() {
        return Err(refused("level.servers", "servers cannot be played", "1"));
    }
    if scenario.host.driver_overhead > Nanos::ZERO {
        let problem = "there is no driver whose work could be played";
        return Err(refused("host.driver_overhead", problem, "0s"));
    }
    let threads = u64::from(pattern.count) + u64::from(device.disks());
    if threads > THREADS_MAX {
        let problem = format!("{threads} threads, one for each process and disk");
        return Err(refused("process.count", problem, format!("at most {THREADS_MAX} processes and disks")));
    }
    Ok(keys)
}

/// The report of a live run of `scenario`.
///
/// # Panics
/// If the counts do not add up, which is a bug.
#[must_use]
pub fn played(scenario: &Scenario, description: Description, outcome: &Played) -> Report {
    let Description { facts, frames, first, trace_sha256, block_sectors } = description;
    let elapsed = outcome.elapsed;
    let block_bytes = scenario.workload.block_bytes();
    let levels = outcome.levels.iter().zip(names(scenario, first)).zip(&frames);
    let of_level = |(((counts, link), name), frames): ((&(Counts, Nanos), String), &u32)| {
        check(counts);
        LevelReport { link_ns: link.0, ..of_counts(counts, (&name, *frames), block_bytes) }
    };
    let levels = levels.map(of_level).collect();
    let processes: Vec<_> = outcome.processes.iter().map(|member| of_process(member, elapsed)).collect();
    let of = Totals {
        elapsed,
        requests: outcome.requests,
        responses: outcome.responses.summary(),
        idle: Nanos(processes.iter().map(|process| process.idle_ns).sum()),
        counts: outcome.counts.report(),
        levels,
        devices: outcome.disks.iter().map(|disk| of_disk(disk, elapsed, block_sectors)).collect(),
        processes,
        intervals: intervals(&outcome.intervals),
        bytes: u128::from(outcome.counts.references) * u128::from(block_bytes),
    };
    report(scenario, of, &facts, trace_sha256)
}

/// A process in the simulator's accounting; the machine's own work for the testbed is overhead.
fn of_process(member: &Member, elapsed: Nanos) -> ProcessReport {
    of_member(&member.process, member.references, &member.found, Some(&member.node), elapsed)
}

fn of_disk(disk: &DiskTimes, elapsed: Nanos, block_sectors: u32) -> DeviceReport {
    let DiskTimes { requests, blocks, service, busy, queue, response } = *disk;
    let sectors = blocks * u64::from(block_sectors);
    let parts = requests;
    // A constant time is all transfer, as for the uniform device.
    let transfer = service;
    let (queue_ns, response_ns) = (u128::from(queue.0), u128::from(response.0));
    let of_all = Statistics { requests, parts, sectors, busy, transfer, service, ..Statistics::default() };
    let statistics = Statistics { queue_ns, response_ns, ..of_all };
    DeviceReport::new(&statistics, elapsed.0, block_sectors)
}
