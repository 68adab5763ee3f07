//! Processes from a scenario's keys: their costs, prefetch actions and barriers.

use headstart_engine::parallel::{ActionSetup, Draws, Scope};
use headstart_engine::Costs;
use headstart_policy::replacement::RuSetKeys;
use headstart_scenario::{ActionIssues, Issue, Meets, ProcessKeys, Scenario};
use headstart_types::{Chosen, Meetings, Program};

/// The costs charged to a process.
#[must_use]
pub fn costs(scenario: &Scenario) -> Costs {
    let host = &scenario.host;
    Costs {
        driver: host.driver_overhead,
        hit: host.hit_time,
        request: host.system_call,
        copy_per_kib: host.copy_per_kib,
        block_bytes: scenario.workload.block_bytes(),
    }
}

/// The prefetch actions of processors.
#[must_use]
pub fn actions(scenario: &Scenario, keys: &ProcessKeys, processes: usize, frames: u32) -> ActionSetup {
    let length = |process| -> Draws {
        let mut draws = keys.action.draws(scenario.seed, process);
        Box::new(move || draws.next_action())
    };
    ActionSetup {
        lengths: (0..processes as u32 + keys.section.io_processors).map(length).collect(),
        io_processors: keys.section.io_processors,
        issues_at_start: keys.section.action_issues == ActionIssues::Start,
        idle_min: keys.section.min_time,
        slack_min: keys.section.min_slack,
        order: keys.section.idle_order,
        alike: keys.section.for_others,
        unused_max: unused_max(scenario, keys, processes, frames),
    }
}

/// Where processes synchronise.
pub fn barrier(keys: &ProcessKeys, shared: bool) -> Option<Scope> {
    match keys.meets {
        Meets::Never => None,
        Meets::Process(every) => Some(Scope::Process(every)),
        Meets::All(every) => Some(Scope::All(every)),
        Meets::Portion if shared => Some(Scope::SharedPortion),
        Meets::Portion => Some(Scope::OwnPortion),
    }
}

/// The barriers among the readers of a string, as far as the string determines them; `shared`: all `processes` read the
/// same string.
pub fn meetings(keys: &ProcessKeys, shared: bool, processes: u32) -> Meetings {
    match keys.meets {
        Meets::Process(every) if shared => Meetings::Every(every.saturating_mul(processes)),
        Meets::Process(every) => Meetings::Every(every),
        Meets::All(every) if shared => Meetings::Every(every),
        Meets::Portion => Meetings::Portion,
        Meets::All(_) | Meets::Never => Meetings::AtEnd,
    }
}

/// The maximum number of prefetched and unused blocks, if the counts determine it: if `frames` are enough for the
/// replacement to keep prefetched blocks until they are used. A request issued as a whole may need more frames than its
/// process's list has, and takes those of prefetched blocks.
pub fn unused_max(scenario: &Scenario, keys: &ProcessKeys, processes: usize, frames: u32) -> Option<u64> {
    let processes = processes as u64;
    let buffers = if keys.section.buffers == 0 { processes } else { u64::from(keys.section.buffers) };
    let Chosen { row, keys: replacement } = &scenario.policy.replacement;
    if row.name != "ru-set" {
        return None;
    }
    let kept = processes.saturating_mul(replacement.get::<RuSetKeys>().size.into()).saturating_add(buffers);
    let by_blocks = scenario.workload.section.issue == Issue::Blocks;
    // A wrongly predicted block leaves without having been used.
    let certain = keys.predictor.is_none();
    (by_blocks && certain && kept <= u64::from(frames)).then_some(buffers)
}

/// Whether several processes read one string.
pub fn shares(program: &Program) -> bool {
    program.string_ends.len() < program.string_of.len()
}
