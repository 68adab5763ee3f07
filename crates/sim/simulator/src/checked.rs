//! Runs that are checked after every step, for fuzzers.

use headstart_engine::Watch;
use headstart_scenario::Scenario;

use crate::progress::OnProgress;
use crate::report::Report;
use crate::run::{self, Machine};
use crate::simulate::report_with;
use crate::Error;

/// Runs a scenario as [`simulate`](crate::simulate()) does and checks the invariants after every step and at the end;
/// for fuzzers. `meddle` may change the machine after a step, before the check.
///
/// # Errors
/// As for [`simulate`](crate::simulate()).
///
/// # Panics
/// If an invariant does not hold, which is a bug.
pub fn checked(
    scenario: &Scenario,
    on_progress: OnProgress<'_>,
    meddle: &mut dyn FnMut(&mut Machine),
) -> Result<Report, Error> {
    let (mut watch, mut journal) = (Watch::default(), Vec::new());
    let mut finish = |machine: &mut Machine| {
        // One instant per step.
        machine.keep_journal();
        run::finish_with(machine, on_progress, |machine, now| {
            machine.take_journal(now, &mut journal);
            journal.clear();
            meddle(machine);
            let checked = watch.advance(now).and_then(|()| machine.check());
            checked.unwrap_or_else(|broken| panic!("at {now}: {broken}"));
            Ok(())
        })
    };
    let mut end = |machine: &mut Machine| machine.check_end().unwrap_or_else(|broken| panic!("{broken}"));
    report_with(scenario, &mut finish, &mut end).map_err(|error| scenario.as_written(error))
}
