//! Builds a machine from a scenario's sections.

use headstart_assemble::{costs, first_levels, system, ReadAheadEnv, SystemParts};
use headstart_engine::parallel::Draws;
use headstart_engine::{Client, Cursor, Process, Reads};
use headstart_layout::Places;
use headstart_policy::registry::Context;
use headstart_scenario::{Processes, Scenario};
use headstart_types::{Chunk, Position};

use crate::run::Machine;
use crate::storage::Storage;
use crate::workload::{References, Supplied, Thinker};
use crate::Error;

/// The parts of a machine, besides the first level's policy context.
pub struct MachineParts {
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
pub fn machine(scenario: &Scenario, parts: MachineParts) -> Result<(Machine, Vec<u32>), Error> {
    let MachineParts { references, places, chunks, positions, mut storage, context, env } = parts;
    if let Some(file) = references.opened_last {
        if let Some((disk, sector)) = places.inode(file)? {
            storage.stand_at(disk, sector);
        }
    }
    let (distinct, addresses, disks) = (references.distinct, references.carries.addresses, storage.drives().len());
    let mut clients = clients(scenario, references, chunks, first_levels(scenario))?;
    for (client, positions) in clients.iter_mut().zip(positions) {
        client.positions = Some(positions);
    }
    let devices = storage;
    system(scenario, SystemParts { clients, devices, disks, places, distinct, addresses, context, env })
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
    if scenario.workload.section.processes == Processes::Merged {
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
