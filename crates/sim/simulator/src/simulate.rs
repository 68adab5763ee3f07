//! From a scenario to a report.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread;

use headstart_assemble::needs_future;
use headstart_device::Device;
use headstart_layout::{FfsKeys, Opens, Placement, Places};
use headstart_policy::registry::Context;
use headstart_scenario::{Arrival, CacheSegments, ComputeKey, HintsKeys, HostKeys, Input, Issue, Scenario};
use headstart_trace::{Carries, ConcurrencyStats};
use headstart_types::{Chunk, KeyError, Nanos, Position, Think};
use sha2::{Digest, Sha256};
use toml::{Table, Value};

use crate::build::{self, MachineParts};
use crate::disclosing::disclose;
use crate::known::{disclosed, each, mean, merge};
use crate::outcome::Totals;
use crate::progress::OnProgress;
use crate::read_ahead_env::read_ahead_env;
use crate::report::{ProcessReport, Report, SCHEMA};
use crate::run;
use crate::storage::Storage;
use crate::workload::{Opened, RecordedThink, References};
use crate::Error;

/// Runs a scenario.
///
/// # Errors
/// An offending key, an error of the trace or the device's profile, or that `on_progress` asked to stop.
pub fn simulate(scenario: &Scenario, on_progress: OnProgress<'_>) -> Result<Report, Error> {
    let report = report_of(scenario, &mut |machine| run::finish(machine, on_progress));
    report.map_err(|error| scenario.as_written(error))
}

/// The report of a scenario whose machine `finish` runs to its end.
pub(crate) fn report_of(
    scenario: &Scenario,
    finish: &mut dyn FnMut(&mut run::Machine) -> Result<Nanos, Error>,
) -> Result<Report, Error> {
    report_with(scenario, finish, &mut |_| ())
}

/// The same; `end` gets the machine after everything was counted.
pub(crate) fn report_with(
    scenario: &Scenario,
    finish: &mut dyn FnMut(&mut run::Machine) -> Result<Nanos, Error>,
    end: &mut dyn FnMut(&mut run::Machine),
) -> Result<Report, Error> {
    // The trace is hashed on another core while it is simulated on this one.
    let hashing = match &scenario.workload.input {
        Input::Trace(path, _) => {
            let (path, traces) = (path.clone(), scenario.traces.clone());
            Some(thread::spawn(move || traces.sha256(&path)))
        }
        _ => None,
    };
    let (parts, mut facts) = ready(scenario, prepare(scenario)?)?;
    let (mut machine, frames) = build::machine(scenario, parts)?;
    let elapsed = finish(&mut machine)?;
    let outcome = Totals::new(scenario, &machine, &frames, elapsed);
    end(&mut machine);
    facts.notes.extend(note_of_writes(outcome.counts.writes, outcome.counts.references));
    let trace_sha256 = match hashing {
        Some(hashing) => hashing.join().expect("hashing does not panic")?,
        None => hash_input(scenario, facts.placement),
    };
    Ok(report(scenario, outcome, &facts, trace_sha256))
}

/// Everything that does not depend on the policy.
pub(crate) struct Prepared {
    pub references: References,
    pub places: Places,
    pub storage: Storage,
}

pub(crate) fn prepare(scenario: &Scenario) -> Result<Prepared, Error> {
    let mut storage = Storage::try_new(&scenario.device, scenario.workload.block_bytes(), scenario.seed)?;
    match scenario.device.cache_segments {
        Some(CacheSegments::Count(count)) => storage.divide_buffers(count)?,
        Some(CacheSegments::OpenFiles) => storage.follow_open_files()?,
        Some(CacheSegments::Streams) | None => {}
    }
    let (references, places) = References::try_new(scenario, storage.drives()[0].device())?;
    if scenario.device.cache_segments == Some(CacheSegments::Streams) {
        storage.divide_buffers(processes(scenario, &references))?;
    }
    Ok(Prepared { references, places, storage })
}

/// Number of reading processes.
fn processes(scenario: &Scenario, references: &References) -> u64 {
    match scenario.process.as_ref().and_then(|process| process.pattern.as_ref()) {
        Some(pattern) => u64::from(pattern.count),
        None => references.pids.len().max(1) as u64,
    }
}

/// The fields that the trace or generator of a scenario carries; `None` if the scenario labels or places its blocks
/// itself.
///
/// # Errors
/// If the trace cannot be read, or a generator's key is wrong.
pub fn carries(scenario: &Scenario) -> Result<Option<Carries>, Error> {
    Opened::new(scenario).map(|opened| opened.carries()).transpose()
}

/// Whether the processes of a scenario's trace read concurrently; the trace is read to its end if it distinguishes
/// them.
///
/// # Errors
/// If the trace cannot be read.
pub fn reads_at_once(scenario: &Scenario) -> Result<bool, Error> {
    let Some(opened) = Opened::new(scenario) else { return Ok(false) };
    let mut records = opened.read()?;
    let Carries { time, duration, processes, .. } = records.carries();
    if !(time && duration && processes) {
        return Ok(false);
    }
    let mut found = ConcurrencyStats::default();
    while records.advance()? {
        records.batch().iter().for_each(|record| found.add(record));
    }
    Ok(found.is_parallel())
}

/// What the report needs besides the run.
pub(crate) struct Facts {
    pub placement: Option<Placement>,
    notes: Vec<String>,
}

/// The common input of both kinds of run.
pub(crate) fn ready(scenario: &Scenario, prepared: Prepared) -> Result<(MachineParts, Facts), Error> {
    let Prepared { mut references, places, storage } = prepared;
    let hinted = scenario.policy.needs_hints();
    let facts = Facts {
        placement: references.placement,
        notes: notes(scenario, &references, hinted || needs_future(scenario)),
    };
    if scenario.needs_places() {
        places.keep_places();
    }
    let device = storage.drives()[0].device();
    let sectors = storage.block_sectors();
    let alike = device.least_service(sectors) == device.nominal_service() && device.concurrency() == 1;
    let plain = storage.drives()[0].conserves_work() && only_fetches(scenario);
    let mut context = Context {
        frames: references.frames,
        initial: references.initial.clone(),
        disks: scenario.device.disks() as usize,
        disk_of: places.universe().disk_of.as_slice().into(),
        replacement: scenario.policy.replacement.clone(),
        hints: None,
        program: references.program.clone(),
        disclosed_by: Arc::new([]),
        whole: false,
        nominal_service: device.nominal_service(),
        block_transfer: block_transfer(device, sectors),
        concurrency: device.concurrency(),
        driver: scenario.host.driver_overhead,
        hit: scenario.host.hit_time,
        uniform: alike,
        mean_compute: references.reading.constant_think().unwrap_or(Nanos::ZERO),
        constant_compute: false,
    };
    // A hinted policy needs the whole reference string; for others it streams.
    let mut chunks = Vec::new();
    if scenario.has_actions() && context.program.is_none() {
        (context.program, chunks) = disclosed(scenario, &mut references, &places)?;
        context.disk_of = places.universe().disk_of.as_slice().into();
    }
    let mut positions = Vec::new();
    if hinted && scenario.workload.section.processes.are_several() {
        chunks = each(scenario, &references, &places)?;
        let keys = scenario.policy.hints.as_ref();
        there_are(keys, chunks.len())?;
        let merged;
        (merged, positions) = merge(&chunks, |process| keys.is_none_or(|keys| keys.are_of(process)))?;
        context.mean_compute = mean(chunks.iter().map(mean_think));
        context.disk_of = places.universe().disk_of.as_slice().into();
        let writes = written(&chunks, &positions, merged.blocks.len());
        let disclosed = Chunk { blocks: merged.blocks.to_vec(), writes, ..Chunk::empty() };
        context.hints = Some(Arc::new(disclose(&disclosed, keys)?));
        context.program = Some(Arc::new(merged));
        let reads = |(chunk, positions): (&Chunk, &Vec<Position>)| {
            let own = positions.iter().enumerate();
            own.filter(|(at, _)| !chunk.is_write(*at)).map(|(_, position)| *position).collect()
        };
        context.disclosed_by = chunks.iter().zip(&positions).map(reads).collect();
    } else if hinted {
        let all = references.reading.rest(&places)?;
        context.mean_compute = mean_think(&all);
        // The processes of a parallel program wait for one another too.
        let only_thinks = scenario.host == HostKeys::default() && scenario.process.is_none();
        context.whole = scenario.workload.section.issue == Issue::Whole && !all.request_ends.is_empty();
        context.constant_compute = thinks_alike(&all) && only_thinks && plain && !context.whole;
        context.disk_of = places.universe().disk_of.as_slice().into();
        context.hints = Some(Arc::new(disclose(&all, scenario.policy.hints.as_ref())?));
        chunks.push(all);
    }
    if needs_future(scenario) {
        chunks = match scenario.workload.section.processes.are_several() {
            true => each(scenario, &references, &places)?,
            false => vec![references.reading.rest(&places)?],
        };
        context.disk_of = places.universe().disk_of.as_slice().into();
    }
    let env = read_ahead_env(scenario, &storage, &references, &places, &chunks);
    Ok((MachineParts { references, places, chunks, positions, storage, context, env }, facts))
}

/// By position in the merged order of all processes: whether the reference writes; empty if none does.
fn written(chunks: &[Chunk], positions: &[Vec<Position>], references: usize) -> Vec<bool> {
    if chunks.iter().all(|chunk| chunk.writes.is_empty()) {
        return Vec::new();
    }
    let mut writes = vec![false; references];
    for (chunk, positions) in chunks.iter().zip(positions) {
        positions.iter().enumerate().for_each(|(at, position)| writes[*position as usize] = chunk.is_write(at));
    }
    writes
}

/// Checks that the processes named to give hints are among `count`.
fn there_are(keys: Option<&HintsKeys>, count: usize) -> Result<(), KeyError> {
    let numbers = keys.and_then(|keys| keys.processes.as_deref()).unwrap_or_default();
    let Some(absent) = numbers.iter().find(|number| **number as usize >= count) else { return Ok(()) };
    let problem = format!("there is no process {absent}");
    Err(KeyError::new("policy.hints.processes", problem, format!("0 to {}, the processes of the workload", count - 1)))
}

/// A lower bound of the time of one more block in a request.
fn block_transfer(device: &dyn Device, sectors: u32) -> Nanos {
    const BLOCKS: u32 = 64;
    let many = sectors.saturating_mul(BLOCKS);
    let request = device.least_service(many).saturating_sub(device.least_service(sectors)).0 / u64::from(BLOCKS - 1);
    Nanos(request.max(device.least_transfer(many.into()).0 / u64::from(BLOCKS)))
}

/// Whether the fetches of the first level are all that its disks do: no lower level holds some of its blocks, and there
/// are no writes and no reads of inodes.
fn only_fetches(scenario: &Scenario) -> bool {
    let Scenario { workload, lower, .. } = scenario;
    let inodes = matches!(workload.placement, Some(Placement::Ffs(FfsKeys { opens: Opens::Read, .. })));
    lower.is_empty() && !workload.section.writes.reach_devices() && !inodes
}

fn notes(scenario: &Scenario, references: &References, hinted: bool) -> Vec<String> {
    let mut notes = references.notes.clone();
    notes.extend(note_of_think_times(scenario, references));
    if hinted && scenario.policy.hints.is_none() {
        let what = if scenario.workload.section.writes.reach_devices() { "read" } else { "reference" };
        notes.push(format!("every {what} is disclosed in advance"));
    }
    notes
}

/// The note about writes that are distinguished from reads.
pub(crate) fn note_of_writes(writes: u64, references: u64) -> Option<String> {
    (writes > 0).then(|| {
        let (writes, references) = (grouped(writes), grouped(references));
        format!(
            "{writes} of {references} references are writes: they use frames, need no fetch and do not trigger \
            read-ahead"
        )
    })
}

/// A count with thousands separators.
fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let groups = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy);
    groups.collect::<Vec<_>>().join(",")
}

/// The note about recorded think times that are not think times.
fn note_of_think_times(scenario: &Scenario, references: &References) -> Option<String> {
    let Scenario { workload, .. } = scenario;
    let recorded = matches!(workload.compute, ComputeKey::Trace | ComputeKey::Gaps);
    let of_a_trace = !matches!(workload.input, Input::References(_) | Input::Pattern);
    if !recorded || !of_a_trace || workload.arrival != Arrival::Closed {
        return None;
    }
    let carries = references.carries;
    let note = match references.recorded {
        RecordedThink::Own | RecordedThink::Rests => return None,
        RecordedThink::Gaps => "think times are whole gaps between requests, including waits for I/O",
        RecordedThink::Nothing if carries.time => {
            "the trace gives when requests began, not how long they took: think times cannot be distinguished from \
            waits for I/O and are zero; set workload.compute to a time, or to \"gaps\" for the whole time between \
            requests"
        }
        RecordedThink::Nothing => "the trace carries no times: think times are zero; set workload.compute",
    };
    Some(note.to_owned())
}

fn mean_think(chunk: &Chunk) -> Nanos {
    match &chunk.think {
        Think::Constant(think) => *think,
        Think::Each(each) if each.is_empty() => Nanos::ZERO,
        Think::Each(each) => {
            let sum: u128 = each.iter().map(|think| u128::from(think.0)).sum();
            Nanos((sum / each.len() as u128) as u64)
        }
    }
}

/// Whether all think times are equal.
fn thinks_alike(chunk: &Chunk) -> bool {
    match &chunk.think {
        Think::Constant(_) => true,
        Think::Each(each) => each.windows(2).all(|pair| pair[0] == pair[1]),
    }
}

/// Generated and inline references have no file, so their description, which determines them, is hashed: every key with
/// its default, sorted by key, so that the order in the scenario does not matter. Defaults that the first results did
/// not list are omitted, so that a workload keeps its hash.
pub(crate) fn hash_input(scenario: &Scenario, placement: Option<Placement>) -> String {
    let mut digest = Sha256::new();
    digest.update(format!("seed = {}\n", scenario.seed));
    let resolved = resolved(scenario, placement);
    let (issue, arrival) = (scenario.workload.section.issue, scenario.workload.arrival);
    let unlisted = |key: &str| match key {
        "issue" => issue == Issue::Blocks || arrival != Arrival::Closed,
        "time_scale" => matches!(arrival, Arrival::Closed | Arrival::Open(1.0)),
        _ => false,
    };
    let mut add = |table: Option<&Value>| {
        if let Some(Value::Table(table)) = table {
            let keys: BTreeMap<&String, &Value> = table.iter().filter(|(key, _)| !unlisted(key)).collect();
            keys.into_iter().for_each(|(key, value)| digest.update(format!("{key} = {value}\n")));
        }
    };
    add(resolved.get("workload"));
    if let Some(pattern) = scenario.process.as_ref().and_then(|process| process.pattern.as_ref()) {
        add(Some(&Table::from_iter([("count".to_owned(), Value::from(i64::from(pattern.count)))]).into()));
        add(resolved.get("process").and_then(|process| process.get("pattern")));
    }
    digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(crate) fn report(scenario: &Scenario, outcome: Totals, facts: &Facts, trace_sha256: String) -> Report {
    let Totals { elapsed, requests, responses, idle, counts, levels, devices, processes, intervals, bytes } = outcome;
    let throughput = if elapsed.0 == 0 { 0 } else { bytes * 1_000_000_000 / u128::from(elapsed.0) };
    let sum = |part: fn(&ProcessReport) -> u64| processes.iter().map(part).sum();
    Report {
        schema: SCHEMA,
        version: env!("CARGO_PKG_VERSION"),
        scenario: resolved(scenario, facts.placement),
        seed: scenario.seed,
        trace_sha256,
        notes: facts.notes.clone(),
        elapsed_ns: elapsed.0,
        compute_ns: sum(|process| process.compute_ns),
        driver_ns: sum(|process| process.driver_ns),
        overhead_ns: sum(|process| process.overhead_ns),
        stall_ns: sum(|process| process.stall_ns),
        barrier_ns: sum(|process| process.barrier_ns),
        idle_ns: idle.0,
        requests,
        counts,
        throughput_bytes_per_s: u64::try_from(throughput).unwrap_or(u64::MAX),
        response_ns: responses,
        levels,
        devices,
        processes,
        intervals,
    }
}

/// The scenario with every default, including those that depend on the trace.
fn resolved(scenario: &Scenario, placement: Option<Placement>) -> Table {
    let mut scenario = scenario.clone();
    scenario.workload.placement = placement.or(scenario.workload.placement);
    scenario.table()
}
