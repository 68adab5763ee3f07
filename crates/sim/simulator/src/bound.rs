//! A lower bound on the elapsed time of a scenario under any policy.

use std::sync::Arc;

use headstart_analytic::{elapsed_lower_bound, LowerBound, Work};
use headstart_device::{Drive, Wanted};
use headstart_engine::Process;
use headstart_layout::Places;
use headstart_scenario::{Arrival, Issue, Processes, Scenario};
use headstart_types::{Block, Chunk, KeyError, Nanos};

use crate::simulate::{prepare, Prepared};
use crate::storage::Storage;
use crate::Error;

/// A lower bound on the elapsed time of a scenario under any policy.
///
/// # Errors
/// An offending key, or an error of the trace or the device's profile.
pub fn lower_bound(scenario: &Scenario) -> Result<LowerBound, Error> {
    bound_of(scenario).map_err(|error| scenario.as_written(error))
}

fn bound_of(scenario: &Scenario) -> Result<LowerBound, Error> {
    let Prepared { mut references, places, storage } = prepare(scenario)?;
    one_process_on_one_level(scenario)?;
    let chunk = references.reading.rest(&places)?;
    let count = chunk.blocks.len();
    let mut process = Process::new(headstart_assemble::costs(scenario));
    for at in 0..count {
        process.served(Nanos::ZERO, chunk.think.after(at), chunk.ends_request(at), chunk.bytes_of(at));
    }
    let any_order = in_any_order(scenario, &chunk);
    // Think times before the first read may follow writes.
    let thinking = if chunk.writes.is_empty() { process.compute } else { Nanos::ZERO };
    let last_think = chunk.think.after(count.saturating_sub(1));
    let blocks: Arc<[Block]> = if chunk.writes.is_empty() { chunk.blocks.into() } else { first_reads(&chunk) };
    let drive = &storage.drives()[0];
    // A merged request fetches several blocks, and takes at least as long as one.
    let merged = (drive.merges_up_to() / storage.block_sectors()).max(1);
    // A read-ahead, or a policy that gathers blocks, fetches up to as many blocks with one request as there are frames.
    let by_runs = scenario.needs_places() || scenario.policy.row().gathers();
    let (driver, least_service, together) = match by_runs {
        true => (Nanos::ZERO, least_share(drive, storage.block_sectors(), references.frames), 1),
        false => (scenario.host.driver_overhead, drive.device().least_service(storage.block_sectors()), merged),
    };
    let frames = references.frames.saturating_add(any_order);
    let at_once = drive.device().concurrency().min(frames);
    let runs = runs_to_read(&references.initial, &places, &storage, &blocks);
    let transfer = |disk: usize, misses: u64| {
        let Some(runs) = runs.get(disk).filter(|runs| !runs.is_empty()) else { return Nanos::ZERO };
        // One request fetches up to `together` blocks, or as many as there are frames.
        let requests = if by_runs { 1 } else { misses.div_ceil(together.into()) };
        storage.drives()[disk].device().least_reads(&Wanted { runs, requests, at_once })
    };
    let universe = places.universe();
    let first_sectors = blocks.first().and_then(|first| universe.short(*first)).unwrap_or(storage.block_sectors());
    let bound = elapsed_lower_bound(&Work {
        references: &blocks,
        frames,
        initial: &references.initial,
        disk_of: &universe.disk_of,
        disks: scenario.device.disks() as usize,
        processor: process.compute + process.overhead,
        thinking,
        last_think,
        driver,
        least_service,
        least_first: drive.device().least_service(first_sectors),
        at_once: drive.device().concurrency().saturating_mul(together).min(frames),
        transfer: &transfer,
    });
    Ok(bound)
}

/// The blocks that are read before they are written: each is fetched at least once. Others may be in the cache whenever
/// they are read, since a write needs no fetch.
fn first_reads(chunk: &Chunk) -> Arc<[Block]> {
    let mut seen = vec![false; chunk.blocks.iter().map(|block| block.index() + 1).max().unwrap_or(0)];
    let references = chunk.blocks.iter().enumerate();
    let first = references.filter(|(_, block)| !std::mem::replace(&mut seen[block.index()], true));
    first.filter(|(at, _)| !chunk.is_write(*at)).map(|(_, block)| *block).collect()
}

/// By disk: the runs of sectors that must be read from it, ascending.
fn runs_to_read(initial: &[Block], places: &Places, storage: &Storage, blocks: &[Block]) -> Vec<Vec<(u64, u64)>> {
    let universe = places.universe();
    let mut runs = vec![Vec::new(); storage.drives().len()];
    let mut counted = vec![false; universe.disk_of.len()];
    initial.iter().for_each(|block| counted[block.index()] = true);
    for block in blocks {
        if !std::mem::replace(&mut counted[block.index()], true) {
            let sectors = universe.short(*block).unwrap_or(storage.block_sectors());
            let first = universe.sector_of[block.index()];
            runs[universe.disk_of[block.index()].index()].push((first, first + u64::from(sectors)));
        }
    }
    for each in &mut runs {
        each.sort_unstable();
        // Blocks of a file system's fragments may share sectors.
        each.dedup_by(|next, before| {
            let joins = next.0 <= before.1;
            before.1 = if joins { before.1.max(next.1) } else { before.1 };
            joins
        });
    }
    runs
}

/// The blocks of a request that is issued whole are served in any order. For any order, a cache with room for one more
/// request can serve them in the trace's order with the same fetches; the result is the largest request in blocks.
fn in_any_order(scenario: &Scenario, chunk: &Chunk) -> u32 {
    if scenario.workload.section.issue != Issue::Whole {
        return 0;
    }
    let (mut largest, mut blocks) = (0u32, 0u32);
    for at in 0..chunk.blocks.len() {
        blocks += 1;
        largest = largest.max(blocks);
        if chunk.ends_request(at) {
            blocks = 0;
        }
    }
    largest
}

/// A lower bound of the cost per block in a request of up to `blocks` blocks: service time over blocks, rounded down.
fn least_share(drive: &Drive, block_sectors: u32, blocks: u32) -> Nanos {
    let most = blocks.min(u32::MAX / block_sectors).max(1);
    let (mut from, mut least) = (1u32, Nanos::MAX);
    while from <= most {
        // More sectors take at least as long, so no length up to the next one inspected has a smaller share.
        let next = from.saturating_add((from / 16).max(1));
        let share = drive.device().least_service(from * block_sectors).0 / u64::from(next - 1);
        least = least.min(Nanos(share));
        from = next;
    }
    least
}

/// Checks that the lower bound applies.
fn one_process_on_one_level(scenario: &Scenario) -> Result<(), KeyError> {
    let refused = |key: &str, problem: &str, allowed: &str| Err(KeyError::new(key, problem, allowed));
    if !scenario.lower.is_empty() {
        return refused("level", "the bound holds for one level", "one [[level]], or [cache] and [policy]");
    }
    if scenario.workload.arrival != Arrival::Closed {
        return refused("workload.arrival", "the bound holds for a process that waits", "\"closed\"");
    }
    if scenario.workload.section.processes != Processes::Merged {
        return refused("workload.processes", "the bound holds for one process", "\"merged\"");
    }
    Ok(())
}
