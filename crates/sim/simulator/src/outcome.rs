//! Checks a run's invariants and builds its report.

use headstart_assemble::{check, of_counts, LevelReport};
use headstart_device::{Drive, Statistics};
use headstart_engine::parallel::{Ended, Node};
use headstart_engine::{mean_ns, Client, Counts, CountsReport, Level, Process, ReferenceCounts, Summary};
use headstart_scenario::{Arrival, Scenario};
use headstart_types::Nanos;

use crate::report::{DeviceReport, IntervalReport, ProcessReport};
use crate::run::Machine;
use crate::storage::Storage;
use crate::workload::Supplied;

pub struct Totals {
    /// When all processes were done.
    pub elapsed: Nanos,
    /// Requests of the application.
    pub requests: u64,
    pub responses: Summary,
    /// Time without a request, for open arrivals.
    pub idle: Nanos,
    /// The application's counts: of all first levels together.
    pub counts: CountsReport,
    pub levels: Vec<LevelReport>,
    pub devices: Vec<DeviceReport>,
    pub processes: Vec<ProcessReport>,
    /// From one barrier of a parallel program's processes to the next.
    pub intervals: Vec<IntervalReport>,
    /// Bytes requested.
    pub bytes: u128,
}

impl Totals {
    /// From a finished run.
    ///
    /// # Panics
    /// If the counts do not add up, which is a bug.
    #[must_use]
    pub fn new(scenario: &Scenario, machine: &Machine, frames: &[u32], elapsed: Nanos) -> Self {
        machine.stack.tiers.iter().for_each(|tier| check(tier.level.counts()));
        let block_bytes = scenario.workload.block_bytes();
        let names = names(scenario, machine.stack.first);
        let tiers = machine.stack.tiers.iter().zip(names).zip(frames);
        let levels = tiers
            .map(|((tier, name), frames)| of_level(&tier.level, (&name, *frames), tier.link_time, block_bytes))
            .collect();
        let mut counts = machine.stack.tiers[0].level.counts().clone();
        for tier in &machine.stack.tiers[1..machine.stack.first] {
            counts.add(tier.level.counts());
        }
        let open = scenario.workload.arrival != Arrival::Closed;
        let processes = match open {
            true => vec![by_the_clock(&counts, elapsed, machine.idle)],
            false => {
                machine.clients.iter().enumerate().map(|(at, client)| of_client(machine, at, client, elapsed)).collect()
            }
        };
        let idle = if open { machine.idle } else { Nanos(processes.iter().map(|process| process.idle_ns).sum()) };
        assert!(machine.clients.len() > 1 || open || idle == Nanos::ZERO);
        if !scenario.needs_places() {
            let fetched = counts.demand_fetches + counts.write_misses;
            assert_eq!(counts.misses, fetched, "one process: each miss is fetched once, or written whole");
        }
        Self {
            elapsed,
            requests: machine.clients.iter().map(|client| client.requests).sum(),
            responses: machine.responses.summary(),
            idle,
            counts: counts.report(),
            levels,
            devices: of_devices(&machine.stack.devices, elapsed),
            processes,
            intervals: machine.parallel.as_ref().map_or(Vec::new(), |parallel| intervals(&parallel.intervals.ended)),
            bytes: u128::from(counts.references) * u128::from(scenario.workload.block_bytes()),
        }
    }
}

/// The intervals of a parallel program.
#[must_use]
pub fn intervals(ended: &[Ended]) -> Vec<IntervalReport> {
    ended.iter().map(IntervalReport::from).collect()
}

/// The name of each level; levels of a tier are numbered if there are several.
#[must_use]
pub fn names(scenario: &Scenario, first: usize) -> Vec<String> {
    let mut count = first;
    let mut names = Vec::new();
    let mut tier = |name: &str, count: usize| {
        let numbered = (1..=count).map(|number| if count > 1 { format!("{name}.{number}") } else { name.to_owned() });
        names.extend(numbered);
    };
    tier(&scenario.cache.section.name, count);
    for lower in &scenario.lower {
        count = lower.spread.map_or(count / lower.section.clients as usize, |spread| spread.servers as usize);
        tier(lower.name(), count);
    }
    names
}

fn of_level(level: &Level, (name, frames): (&str, u32), link: Nanos, block_bytes: u64) -> LevelReport {
    let report = of_counts(level.counts(), (name, frames), block_bytes);
    LevelReport { dirty_blocks: level.dirty_blocks() as u64, link_ns: link.0, ..report }
}

fn of_devices(storage: &Storage, elapsed: Nanos) -> Vec<DeviceReport> {
    let of_drive = |drive: &Drive| {
        let statistics = drive.statistics(elapsed);
        let report = DeviceReport::new(&statistics, elapsed.0, storage.block_sectors());
        check_device(&statistics, &report, elapsed, drive.device().concurrency());
        report
    };
    storage.drives().iter().map(of_drive).collect()
}

/// Checks the operational laws of a disk, for its exact statistics and for the report.
///
/// # Panics
/// If they do not hold, which is a bug.
fn check_device(statistics: &Statistics, report: &DeviceReport, elapsed: Nanos, concurrency: u32) {
    statistics.check(elapsed, concurrency).unwrap_or_else(|law| panic!("{law}"));
    if concurrency == 1 {
        // Utilisation is throughput times mean service time: for completed requests, and up to the mean's rounding.
        let ended_ns = report.utilization * elapsed.0 as f64 - statistics.unfinished.service_ns as f64;
        let by_mean_ns = report.requests as f64 * report.service_ns_mean as f64;
        let rounding_ns = 1.0 + elapsed.0 as f64 * 1e-12;
        let within = -rounding_ns..=report.requests as f64 + rounding_ns;
        assert!(within.contains(&(ended_ns - by_mean_ns)), "utilisation law: {ended_ns} ns is not {by_mean_ns} ns");
    }
}

/// A process's references by outcome.
fn found(counts: &Counts) -> ProcessReport {
    ProcessReport {
        references: counts.references,
        hits_ready: counts.hits_ready,
        hits_unready: counts.hits_unready,
        misses: counts.misses,
        ..ProcessReport::default()
    }
}

/// One of several processes.
fn of_client(machine: &Machine, index: usize, client: &Client<Supplied>, elapsed: Nanos) -> ProcessReport {
    let node = machine.parallel.as_ref().map(|parallel| &parallel.nodes[index]);
    if let (true, Some(node)) = (machine.parallel.as_ref().is_some_and(|parallel| parallel.is_io(index)), node) {
        return of_io_processor(&client.process, node, elapsed);
    }
    of_member(&client.process, client.references, &client.found, node, elapsed)
}

/// A process that made `references`, with its processor if it is part of a parallel program.
///
/// # Panics
/// If the counts do not add up, which is a bug.
#[must_use]
pub fn of_member(
    process: &Process,
    references: u64,
    found: &ReferenceCounts,
    node: Option<&Node>,
    elapsed: Nanos,
) -> ProcessReport {
    let ReferenceCounts { hits_ready, hits_unready, misses } = *found;
    assert_eq!(references, hits_ready + hits_unready + misses, "each reference is found in one way");
    let found = ProcessReport { references, hits_ready, hits_unready, misses, ..ProcessReport::default() };
    let mut report = of_process(process, found, elapsed, elapsed - process.free_at);
    if let Some(node) = node {
        assert_eq!(node.overrun, process.overrun, "overrun is the processor's");
        report.own_io_ns = (process.stall - process.other_io).0;
        report.other_io_ns = process.other_io.0;
        (report.actions, report.action_ns, report.overruns) = (node.actions, node.action_time.0, node.overruns);
        report.periods = node.into();
    }
    report
}

/// A processor that runs no process. It is idle except for the driver's work, which is cut at the end of the run.
fn of_io_processor(process: &Process, node: &Node, elapsed: Nanos) -> ProcessReport {
    let driver = process.driver - process.free_at.saturating_sub(elapsed);
    ProcessReport {
        elapsed_ns: elapsed.0,
        driver_ns: driver.0,
        idle_ns: (elapsed - driver).0,
        actions: node.actions,
        action_ns: node.action_time.0,
        ..ProcessReport::default()
    }
}

/// A process that ended `after` before the end of the run; `found` is its references by outcome.
fn of_process(process: &Process, found: ProcessReport, elapsed: Nanos, after: Nanos) -> ProcessReport {
    let idle = process.idle + after;
    let parts = process.compute + process.driver + process.overhead + process.stall + process.barrier + idle;
    assert_eq!(parts, elapsed, "every nanosecond of a process is accounted for");
    ProcessReport {
        hit_wait_ns_mean: process.hit_wait.0.checked_div(found.hits_unready).unwrap_or(0),
        read_ns_mean: process.read_time.0.checked_div(found.references).unwrap_or(0),
        elapsed_ns: elapsed.0,
        compute_ns: process.compute.0,
        driver_ns: process.driver.0,
        overhead_ns: process.overhead.0,
        stall_ns: process.stall.0,
        barrier_ns: process.barrier.0,
        idle_ns: idle.0,
        own_io_ns: process.stall.0,
        overrun_ns: process.overrun.0,
        remote_reads: process.remote_reads,
        ..found
    }
}

/// Open arrivals as one process: it stalls while any request is outstanding.
fn by_the_clock(counts: &Counts, elapsed: Nanos, idle: Nanos) -> ProcessReport {
    let stall = (elapsed - idle).0;
    ProcessReport {
        hit_wait_ns_mean: mean_ns(counts.hit_wait_ns, counts.hits_unready),
        elapsed_ns: elapsed.0,
        stall_ns: stall,
        idle_ns: idle.0,
        own_io_ns: stall,
        ..found(counts)
    }
}

#[cfg(test)]
mod tests {
    use headstart_device::{build_device, build_scheduler, Request, Started};
    use toml::Table;

    use super::*;

    /// Three reads of 16 sectors of an HP 97560; the last one has not ended when the run does.
    fn drive() -> (Drive, Nanos) {
        let device = build_device("hp97560", Table::new()).expect("shipped");
        let mut drive = Drive::new(device, build_scheduler("fcfs", Table::new()).expect("there"));
        let mut now = Nanos::ZERO;
        for sector in [1_000, 500_000, 64] {
            drive.submit(now, Request::read(sector, 16, 0));
        }
        while let (Started::Ends(end), true) = (drive.start(now), now < Nanos::from_millis(25)) {
            now = end;
            drive.finish(now, |_| {});
        }
        (drive, now + Nanos(1_000))
    }

    #[test]
    fn what_a_disk_counts_and_reports_agrees() {
        let (drive, elapsed) = drive();
        let statistics = drive.statistics(elapsed);
        assert_eq!((statistics.requests, statistics.unfinished.parts, statistics.unfinished.service_ns), (2, 1, 1_000));
        let report = DeviceReport::new(&statistics, elapsed.0, 16);
        check_device(&statistics, &report, elapsed, 1);
        let doctored: [fn(&mut DeviceReport); 4] = [
            |report| report.utilization *= 1.001,
            |report| report.requests += 1,
            |report| report.service_ns_mean -= 2,
            |report| report.service_ns_mean += 1_000,
        ];
        for doctor in doctored {
            let mut wrong = report.clone();
            doctor(&mut wrong);
            assert!(std::panic::catch_unwind(|| check_device(&statistics, &wrong, elapsed, 1)).is_err());
        }
        let lost = Statistics { response_ns: 0, queue_ns: 0, ..statistics };
        assert!(std::panic::catch_unwind(|| check_device(&lost, &report, elapsed, 1)).is_err());
    }
}
