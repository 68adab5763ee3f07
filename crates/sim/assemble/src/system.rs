//! The machine of a scenario: levels, processes, barriers and prefetch actions around devices that the host provides.

use headstart_engine::parallel::{Barrier, Strings};
use headstart_engine::{Actions, Client, Cursor, Devices, IssueMode, Parallel, Process, Reads, Stack, Supply, System};
use headstart_layout::Places;
use headstart_policy::registry::Context;
use headstart_scenario::{Arrival, Error, Issue, Scenario};
use headstart_types::{Chunk, KeyError};

use crate::{actions, barrier, costs, first_levels, shares, tiers, ReadAheadEnv};

/// What a host provides for a machine.
pub struct SystemParts<D, R> {
    /// The processes, assigned to the first levels.
    pub clients: Vec<Client<R>>,
    pub devices: D,
    /// Number of disks.
    pub disks: usize,
    /// The places of the blocks.
    pub places: Places,
    /// Number of distinct blocks, if a level's size depends on it.
    pub distinct: usize,
    /// Whether blocks have addresses; otherwise each is fetched by a request of its own.
    pub addresses: bool,
    /// The context from which the first level's policy is built.
    pub context: Context,
    /// The additional input of read-aheads.
    pub env: ReadAheadEnv,
}

/// A machine, and the frames of each level in the order of its tiers.
pub type Built<D, R> = (System<D, Places, R>, Vec<u32>);

/// Builds the machine of `scenario`.
///
/// # Errors
/// An offending key, or an error of the references.
pub fn system<D, R>(scenario: &Scenario, parts: SystemParts<D, R>) -> Result<Built<D, R>, Error>
where
    D: Devices<Places>,
    R: Supply<Places, Error = Error>,
{
    let SystemParts { mut clients, devices, disks, places, distinct, addresses, context, env } = parts;
    let first = first_levels(scenario);
    let mode = IssueMode {
        whole: scenario.workload.section.issue == Issue::Whole,
        open: scenario.workload.arrival != Arrival::Closed,
        write_delay: scenario.cache.section.write_delay,
    };
    let shared = context.program.as_ref().is_some_and(|program| shares(program));
    let processes = clients.len();
    let actions_of = scenario.process.as_ref().filter(|_| scenario.has_actions());
    let io_processors = actions_of.map_or(0, |keys| keys.section.io_processors);
    clients.extend((0..io_processors).map(|_| idle_client(scenario)));
    let parallel = scenario.process.as_ref().map(|keys| {
        let barrier = barrier(keys, shared).map(|scope| Barrier::new(scope, processes as u32));
        let actions = actions_of.map(|keys| Actions::new(actions(scenario, keys, processes, context.frames)));
        let strings = context.program.clone().filter(|_| keys.pattern.is_some()).map(Strings::new);
        let buffers = keys.buffers_of(processes);
        Parallel::new(clients.len(), strings, barrier, actions, keys.contends(), buffers)
    });
    // Several processes on one level, parallel programs, and whole requests need policies that act on requests.
    let program = parallel.is_some() && context.hints.is_none();
    let asking = mode.whole || mode.open || clients.len() > first || program;
    let (mut tiers, frames) = tiers(scenario, (&context, &env), (first, asking), (disks, distinct))?;
    if !addresses {
        tiers.iter_mut().for_each(|tier| tier.level.order_singly());
    }
    if clients.len() > first && !tiers[0].level.takes_requests() {
        let problem = format!("{} follows one process", scenario.policy.name());
        return Err(KeyError::new("policy.name", problem, "another policy, or workload.processes = \"merged\"").into());
    }
    let stack = Stack::new(tiers, first, devices, places, scenario.workload.block_bytes());
    Ok((System::try_new(stack, clients, mode, parallel)?, frames))
}

/// A processor that runs no process: it has no references.
fn idle_client<R>(scenario: &Scenario) -> Client<R> {
    Client::new(Process::new(costs(scenario)), 0, Reads::Own(Cursor::known(Chunk::empty())))
}
