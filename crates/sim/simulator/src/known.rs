//! The future reads of a trace's processes, for policies that need them in advance.

use std::sync::Arc;

use headstart_layout::Places;
use headstart_scenario::{Processes, Scenario};
use headstart_types::{Chunk, KeyError, Meetings, Nanos, Position, Program, NEVER};

use crate::workload::{References, KNOWN_REFERENCES_MAX};
use crate::Error;

/// The future reads of a trace's processes, each a separate string that is one portion; and each one's chunk.
///
/// # Errors
/// An error of the trace, or too many references to number.
pub fn disclosed(
    scenario: &Scenario,
    references: &mut References,
    places: &Places,
) -> Result<(Option<Arc<Program>>, Vec<Chunk>), Error> {
    let chunks = match scenario.workload.section.processes {
        Processes::Merged => vec![references.reading.rest(places)?],
        Processes::PerPid | Processes::Dealt => each(scenario, references, places)?,
    };
    number(&chunks)?;
    let mut end = 0;
    let ends = chunks.iter().map(|chunk| {
        end += chunk.blocks.len() as Position;
        end
    });
    let ends: Arc<[Position]> = ends.collect();
    let meetings = |keys| headstart_assemble::meetings(keys, false, chunks.len() as u32);
    let meetings = scenario.process.as_ref().map_or(Meetings::AtEnd, meetings);
    let program = Program {
        blocks: chunks.iter().flat_map(|chunk| chunk.blocks.iter().copied()).collect(),
        string_ends: ends.clone(),
        portion_ends: ends,
        string_of: (0..chunks.len() as u32).collect(),
        regular: true,
        meetings,
    };
    Ok((Some(Arc::new(program)), chunks))
}

/// All references of each process of a trace.
///
/// # Errors
/// An error of the trace.
pub fn each(scenario: &Scenario, references: &References, places: &Places) -> Result<Vec<Chunk>, Error> {
    let mut most = KNOWN_REFERENCES_MAX;
    let known = references.pids.iter().map(|pid| {
        let chunk = references.of_process(scenario, *pid)?.rest_within(most, places)?;
        most -= chunk.blocks.len();
        Ok(chunk)
    });
    known.collect()
}

/// Checks that the references of all processes can be numbered.
fn number(chunks: &[Chunk]) -> Result<(), Error> {
    if chunks.iter().map(|chunk| chunk.blocks.len()).sum::<usize>() < NEVER as usize {
        return Ok(());
    }
    let problem = "more references than a program can number";
    Err(KeyError::new("workload.limit", problem, "fewer than 4294967295 references").into())
}

/// The expected order of the references of several processes: round-robin over the processes for which `discloses`
/// holds, as long as they have any. Returns them as one shared string, and by process the positions of its references
/// in it: none for a process that does not disclose them.
///
/// # Errors
/// Too many references to number.
pub fn merge(chunks: &[Chunk], discloses: impl Fn(usize) -> bool) -> Result<(Program, Vec<Vec<Position>>), Error> {
    number(chunks)?;
    let mut positions = vec![Vec::new(); chunks.len()];
    let mut blocks = Vec::new();
    let mut left: Vec<usize> = (0..chunks.len()).filter(|at| discloses(*at)).collect();
    let mut round = 0;
    while !left.is_empty() {
        left.retain(|at| round < chunks[*at].blocks.len());
        for at in &left {
            positions[*at].push(blocks.len() as Position);
            blocks.push(chunks[*at].blocks[round]);
        }
        round += 1;
    }
    let ends: Arc<[Position]> = [blocks.len() as Position].into();
    let string_of = vec![0; chunks.len()].into();
    let program = Program {
        blocks: blocks.into(),
        string_ends: ends.clone(),
        portion_ends: ends,
        string_of,
        regular: true,
        meetings: Meetings::AtEnd,
    };
    Ok((program, positions))
}

#[must_use]
pub fn mean(times: impl ExactSizeIterator<Item = Nanos>) -> Nanos {
    let count = times.len().max(1) as u128;
    Nanos((times.map(|time| u128::from(time.0)).sum::<u128>() / count) as u64)
}
