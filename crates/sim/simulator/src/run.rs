//! The simulator's clock: it advances from one event to the next.

use headstart_engine::System;
use headstart_layout::Places;
use headstart_scenario::{too_long, TIME_MAX};
use headstart_types::Nanos;

use crate::progress::{OnProgress, Progress};
use crate::storage::Storage;
use crate::workload::Supplied;
use crate::Error;

/// The machine as the simulator drives it.
pub type Machine = System<Storage, Places, Supplied>;

/// Minimum number of steps between two progress reports: small, so that a run whose steps are slow can be stopped
/// quickly. The caller may report fewer.
const REPORT_EVERY: u64 = 1 << 10;

/// Runs until all processes are done and returns that time.
///
/// # Errors
/// An error of the trace, or that `on_progress` asked to stop.
///
/// # Panics
/// If a policy lets a process wait for a block that is never fetched, which is a bug.
pub fn finish(machine: &mut Machine, on_progress: OnProgress<'_>) -> Result<Nanos, Error> {
    finish_with(machine, on_progress, |_, _| Ok(()))
}

/// The same; `after` is called after each instant.
///
/// # Errors
/// As for [`finish`], or an error of `after`.
#[inline(always)]
pub fn finish_with(
    machine: &mut Machine,
    on_progress: OnProgress<'_>,
    mut after: impl FnMut(&mut Machine, Nanos) -> Result<(), Error>,
) -> Result<Nanos, Error> {
    // Computing the progress visits each process.
    let report_every = REPORT_EVERY.max(machine.clients.len() as u64);
    let mut steps = 0u64;
    while let Some(now) = machine.next_instant() {
        if now > TIME_MAX {
            return Err(too_long());
        }
        machine.step(now)?;
        after(machine, now)?;
        steps += 1;
        if steps.is_multiple_of(report_every) && !on_progress(progress(machine)) {
            return Err(Error::Stopped);
        }
    }
    let end = machine.end();
    // A report has the sum of the times of all processes.
    if end > TIME_MAX || end.0.checked_mul(machine.clients.len() as u64).is_none() {
        return Err(too_long());
    }
    machine.drain(end);
    Ok(end)
}

fn progress(machine: &Machine) -> Progress {
    let (done, total) = machine.progress();
    Progress { share: done as f64 / total.max(1) as f64, references: machine.references() }
}
