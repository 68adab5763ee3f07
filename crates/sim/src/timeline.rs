//! A run as a list of events: what each process referenced and waited for, what each disk did and when, what went over
//! links and what was evicted. The result is that of a run without it.
//!
//! Memory: one entry an event, some 100 bytes. Only [`EVENTS_MAX`] of them are kept.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use headstart_engine::{Awaited, From, Happening, Kind};
use headstart_types::{Block, Disk, KeyError, Nanos, Outcome};
use serde::Serialize;

use crate::progress::OnProgress;
use crate::run::{self, Machine};
use crate::simulate::report_of;
use crate::{Error, Report, Scenario};

/// Events of a timeline at most.
pub const EVENTS_MAX: usize = 1_000_000;

/// Something that has happened. Times are nanoseconds since the start, `start..end`; blocks are numbered in the order in which
/// they are first named.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[allow(missing_docs)] // The fields are those of the columns in docs/timeline.md.
pub enum Event {
    /// A process has referenced blocks, found as `outcome` says.
    Reference { start_ns: u64, process: u32, blocks: Vec<u32>, outcome: &'static str },
    /// A process has waited, `time_ns` of it without doing work for the driver.
    Wait { start_ns: u64, end_ns: u64, time_ns: u64, process: u32, outcome: &'static str },
    /// A disk has served a request, which was issued at `issued_ns`.
    Service {
        start_ns: u64,
        end_ns: u64,
        issued_ns: u64,
        disk: u32,
        level: u32,
        process: Option<u32>,
        kind: &'static str,
        blocks: Vec<u32>,
        sector: u64,
        sectors: u32,
    },
    /// A disk was at a request when the run ended.
    Unfinished { start_ns: u64, end_ns: u64, disk: u32 },
    /// Blocks have gone up the link above `level`.
    Link { start_ns: u64, end_ns: u64, level: u32, count: u32 },
    /// A level has evicted a block.
    Eviction { start_ns: u64, blocks: Vec<u32> },
}

impl Event {
    fn start(&self) -> u64 {
        match self {
            Self::Reference { start_ns, .. }
            | Self::Wait { start_ns, .. }
            | Self::Service { start_ns, .. }
            | Self::Unfinished { start_ns, .. }
            | Self::Link { start_ns, .. }
            | Self::Eviction { start_ns, .. } => *start_ns,
        }
    }
}

/// A request of a disk that has not ended.
struct Open {
    from: From,
    kind: Kind,
    blocks: Vec<Block>,
}

/// What the disks do.
#[derive(Default)]
pub struct DiskJournal {
    /// By disk, sector and tag, in the order in which they came.
    open: BTreeMap<(u32, u64, u64), VecDeque<Open>>,
    /// What is in service: disk, end, start.
    serving: BTreeSet<(u32, Nanos, Nanos)>,
    events: Vec<Event>,
}

impl DiskJournal {
    /// A request has been queued.
    #[cold]
    pub fn queued(&mut self, from: From, disk: Disk, (sector, tag): (u64, u64), kind: Kind, blocks: &[Block]) {
        let open = Open { from, kind, blocks: blocks.to_vec() };
        self.open.entry((disk.0, sector, tag)).or_default().push_back(open);
    }

    /// A disk serves from `start` to `end`.
    #[cold]
    pub fn started(&mut self, disk: u32, start: Nanos, end: Nanos) {
        self.serving.insert((disk, end, start));
    }

    /// A request has ended, `service` after its start.
    #[cold]
    pub fn finished(
        &mut self,
        now: Nanos,
        disk: u32,
        request: &headstart_device::Request,
        arrived: Nanos,
        service: Nanos,
    ) {
        let start = now - service;
        self.serving.remove(&(disk, now, start));
        let key = (disk, request.sector, request.tag);
        let Some(waiting) = self.open.get_mut(&key) else { return };
        let Some(Open { from, kind, blocks }) = waiting.pop_front() else { return };
        if waiting.is_empty() {
            self.open.remove(&key);
        }
        self.events.push(Event::Service {
            start_ns: start.0,
            end_ns: now.0,
            issued_ns: arrived.0,
            disk,
            level: from.level,
            process: from.process,
            kind: match kind {
                Kind::Demand => "demand",
                Kind::Prefetch => "prefetch",
                Kind::Allocate | Kind::Write => "write",
            },
            blocks: numbers(&blocks),
            sector: request.sector,
            sectors: request.sectors,
        });
    }

    /// What is still in service at the `end` of the run has taken until then.
    fn cut(&mut self, end: Nanos) {
        for (disk, _, start) in std::mem::take(&mut self.serving) {
            if start < end {
                self.events.push(Event::Unfinished { start_ns: start.0, end_ns: end.0, disk });
            }
        }
    }
}

fn numbers(blocks: &[Block]) -> Vec<u32> {
    blocks.iter().map(|block| block.0).collect()
}

fn word(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::HitReady => "hit",
        Outcome::HitUnready => "late hit",
        Outcome::Miss => "miss",
    }
}

fn event(happening: Happening) -> Event {
    match happening {
        Happening::Referenced { process, at, blocks, outcome } => {
            Event::Reference { start_ns: at.0, process, blocks: numbers(&blocks), outcome: word(outcome) }
        }
        Happening::Waited { process, since, until, waited, what } => {
            let outcome = match what {
                Awaited::Read(outcome) => word(outcome),
                Awaited::Write => "write",
                Awaited::Others => "barrier",
            };
            Event::Wait { start_ns: since.0, end_ns: until.0, time_ns: waited.0, process, outcome }
        }
        Happening::Crossed { level, since, until, blocks } => {
            Event::Link { start_ns: since.0, end_ns: until.0, level, count: blocks }
        }
        Happening::Evicted { at, block } => Event::Eviction { start_ns: at.0, blocks: vec![block.0] },
    }
}

/// Runs a scenario; returns its report, and what has happened, by the time at which it began.
///
/// # Errors
/// As for [`simulate`](crate::simulate()), or that there are more than `events_max` events.
pub fn timeline(
    scenario: &Scenario,
    events_max: usize,
    on_progress: OnProgress<'_>,
) -> Result<(Report, Vec<Event>), Error> {
    let mut events = Vec::new();
    let mut scratch = Vec::new();
    let report = report_of(scenario, &mut |machine: &mut Machine| {
        machine.keep_journal();
        machine.stack.devices.journal = Some(Box::default());
        let end = run::finish_with(machine, on_progress, |machine, now| {
            machine.take_journal(now, &mut scratch);
            events.extend(scratch.drain(..).map(event));
            let of_disks = machine.stack.devices.journal.as_ref().map_or(0, |journal| journal.events.len());
            if events.len() + of_disks > events_max {
                Err(too_many(events_max))
            } else {
                Ok(())
            }
        })?;
        if let Some(mut journal) = machine.stack.devices.journal.take() {
            journal.cut(end);
            events.append(&mut journal.events);
        }
        Ok(end)
    });
    let report = report.map_err(|error| scenario.as_written(error))?;
    events.sort_by_key(Event::start);
    Ok((report, events))
}

#[cold]
fn too_many(events_max: usize) -> Error {
    let problem = format!("the run has more than {events_max} events");
    KeyError::new("workload", problem, "a shorter run: workload.limit, or fewer requests").into()
}
