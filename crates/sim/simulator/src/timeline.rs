//! A run as a list of events: references and waits of each process, service times of each disk, link transfers and
//! evictions. The result is the same as without it.
//!
//! Memory: one entry per event, some 100 bytes. At most [`EVENTS_MAX`] are kept.

use headstart_engine::{Awaited, Happening};
use headstart_types::{KeyError, Outcome};

use crate::journal::{numbers, Event};
use crate::progress::OnProgress;
use crate::run::{self, Machine};
use crate::simulate::report_of;
use crate::{Error, Report, Scenario};

/// Maximum number of events of a timeline.
pub const EVENTS_MAX: usize = 1_000_000;

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
        Happening::Waited { process, since, over, until, waited, what } => {
            let outcome = match what {
                Awaited::Read(outcome) => word(outcome),
                Awaited::Write => "write",
                Awaited::Others => "barrier",
            };
            let (start_ns, ready_ns, end_ns) = (since.0, over.0, until.0);
            Event::Wait { start_ns, ready_ns, end_ns, time_ns: waited.0, process, outcome }
        }
        Happening::Acted { process, since, until, block } => {
            Event::Action { start_ns: since.0, end_ns: until.0, process, blocks: vec![block.0] }
        }
        Happening::Held { process, since, until } => Event::Hold { start_ns: since.0, end_ns: until.0, process },
        Happening::Crossed { level, since, until, blocks } => {
            Event::Link { start_ns: since.0, end_ns: until.0, level, count: blocks }
        }
        Happening::Evicted { at, block } => Event::Eviction { start_ns: at.0, blocks: vec![block.0] },
    }
}

/// Runs a scenario; returns its report and its events, sorted by start time.
///
/// # Errors
/// As for [`simulate`](crate::simulate()), or if there are more than `events_max` events.
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
