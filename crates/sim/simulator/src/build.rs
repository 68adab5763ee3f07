//! Builds a machine from a scenario's sections.

use headstart_assemble::{actions, barrier, costs, first_levels, shares, tiers, ReadAheadEnv};
use headstart_engine::parallel::{Barrier, Draws, Strings};
use headstart_engine::{Actions, Client, Cursor, IssueMode, Parallel, Process, Reads, Stack, System};
use headstart_layout::Places;
use headstart_policy::registry::Context;
use headstart_scenario::{Arrival, Issue, Processes, Scenario};
use headstart_types::{Chunk, KeyError, Position};

use crate::run::Machine;
use crate::storage::Storage;
use crate::workload::{References, Supplied, Thinker};
use crate::Error;

/// The parts of a machine, besides the first level's policy context.
pub struct Parts {
    /// The references of all processes.
    pub references: References,
    /// The places of the blocks.
    pub places: Places,
    /// All references by process, if the first level's policy needs them in advance.
    pub chunks: Vec<Chunk>,
    /// By process: the positions of its references, if several share hints; else empty.
    pub positions: Vec<Vec<Position>>,
    pub storage: Storage,
    /// The context from which the first level's policy is built.
    pub context: Context,
    /// The additional input of read-aheads.
    pub env: ReadAheadEnv,
}

/// The machine, and the frames of each level in the order of its tiers.
///
/// # Errors
/// An offending key, or an error of the trace.
pub fn machine(scenario: &Scenario, parts: Parts) -> Result<(Machine, Vec<u32>), Error> {
    let Parts { references, places, chunks, positions, mut storage, context, env } = parts;
    if let Some(file) = references.opened_last {
        if let Some((disk, sector)) = places.inode(file)? {
            storage.stand_at(disk, sector);
        }
    }
    let distinct = references.distinct;
    let first = first_levels(scenario);
    let manner = IssueMode {
        whole: scenario.workload.issue == Issue::Whole,
        open: scenario.workload.arrival != Arrival::Closed,
        write_delay: scenario.cache.write_delay,
    };
    let shared = context.program.as_ref().is_some_and(|program| shares(program));
    let (hinted, program) = (context.hints.is_some(), context.program.clone());
    let objects = !references.carries.addresses;
    let mut clients = clients(scenario, references, chunks, first)?;
    let processes = clients.len();
    let io_processors =
        scenario.process.as_ref().filter(|_| scenario.has_actions()).map_or(0, |keys| keys.io_processors);
    clients.extend((0..io_processors).map(|_| idle_client(scenario)));
    for (client, positions) in clients.iter_mut().zip(positions) {
        client.positions = Some(positions);
    }
    let parallel = scenario.process.as_ref().map(|keys| {
        let barrier = barrier(keys, shared).map(|scope| Barrier::new(scope, processes as u32));
        let actions = scenario.has_actions().then(|| Actions::new(actions(scenario, keys, processes, context.frames)));
        let strings = program.filter(|_| keys.pattern.is_some()).map(Strings::new);
        let buffers = keys.buffers_of(processes);
        Parallel::new(clients.len(), strings, barrier, actions, keys.contends(), buffers)
    });
    // Several processes on one level, parallel programs, and whole requests need policies that act on requests.
    let asking = manner.whole || manner.open || clients.len() > first || (parallel.is_some() && !hinted);
    let (mut tiers, frames) = tiers(scenario, (&context, &env), (first, asking), (storage.drives().len(), distinct))?;
    if objects {
        tiers.iter_mut().for_each(|tier| tier.level.order_singly());
    }
    if clients.len() > first && !tiers[0].level.takes_requests() {
        let problem = format!("{} follows one process", scenario.policy.name);
        return Err(KeyError::new("policy.name", problem, "another policy, or workload.processes = \"merged\"").into());
    }
    let stack = Stack::new(tiers, first, storage, places, scenario.workload.block_bytes());
    Ok((System::try_new(stack, clients, manner, parallel)?, frames))
}

/// Think times of a process that takes its references from a string.
#[must_use]
pub fn thinks(scenario: &Scenario, process: u32) -> Draws {
    let mut thinker = Thinker::new(&scenario.workload, scenario.seed, process);
    Box::new(move || thinker.next_think())
}

/// The processes: one, or one for each of the trace's, assigned round-robin to the first levels.
fn clients(
    scenario: &Scenario,
    references: References,
    chunks: Vec<Chunk>,
    first: usize,
) -> Result<Vec<Client<Supplied>>, Error> {
    let process = || Process::new(costs(scenario));
    if let Some(pattern) = scenario.process.as_ref().and_then(|process| process.pattern.as_ref()) {
        let taken = |process| Reads::taking(thinks(scenario, process));
        return Ok((0..pattern.count).map(|at| Client::new(process(), at as usize % first, taken(at))).collect());
    }
    if !chunks.is_empty() {
        let mut position = 0;
        let known = |(index, chunk): (usize, Chunk)| {
            let mut process = process();
            process.position = position;
            position += chunk.blocks.len() as Position;
            Client::new(process, index % first, Reads::Own(Cursor::known(chunk)))
        };
        return Ok(chunks.into_iter().enumerate().map(known).collect());
    }
    if scenario.workload.processes == Processes::Merged {
        return Ok(vec![Client::new(
            process(),
            0,
            Reads::Own(Cursor::reading(Supplied::new(references.reading, !scenario.needs_places()))),
        )]);
    }
    let each = |(index, pid): (usize, &u32)| {
        let supply = Supplied::new(references.of_process(scenario, *pid)?, false);
        Ok(Client::new(process(), index % first, Reads::Own(Cursor::reading(supply))))
    };
    references.pids.iter().enumerate().map(each).collect()
}

/// A processor that runs no process: it has no references.
fn idle_client(scenario: &Scenario) -> Client<Supplied> {
    Client::new(Process::new(costs(scenario)), 0, Reads::Own(Cursor::known(Chunk::empty())))
}
