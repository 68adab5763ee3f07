//! The input of read-aheads besides their level: the disks below, the processes above.

use std::sync::Arc;

use headstart_assemble::{needs_future, ReadAheadEnv};
use headstart_layout::Places;
use headstart_policy::readahead::{streams, Needs, Stream};
use headstart_policy::BlockMap;
use headstart_scenario::Scenario;
use headstart_types::{Chunk, DriveFacts};

use crate::storage::Storage;
use crate::workload::References;

/// For `scenario`, whose processes read `chunks`, which are only needed if [`needs_future`].
#[must_use]
pub fn read_ahead_env(
    scenario: &Scenario,
    storage: &Storage,
    references: &References,
    places: &Places,
    chunks: &[Chunk],
) -> ReadAheadEnv {
    let lower = scenario.lower.iter().map(|level| &level.policy);
    let mut policies = std::iter::once(&scenario.policy).chain(lower);
    let drive = policies.any(|policy| policy.needs() == Needs::Drive).then(|| drive_facts(storage, places));
    let frames = references.frames;
    let each = |chunk: &Chunk| streams_of(chunk, places, frames);
    let future = needs_future(scenario).then(|| chunks.iter().map(each).collect());
    let initial_places = references.initial.iter().map(|block| places.place(*block)).collect();
    ReadAheadEnv { block_bytes: scenario.workload.block_bytes(), drive: drive.flatten(), future, initial_places }
}

/// Of a disk, or of an array behind one controller; if independent disks share long runs, at their combined rate.
fn drive_facts(storage: &Storage, places: &Places) -> Option<Arc<DriveFacts>> {
    let facts = storage.drives()[0].device().drive_facts()?;
    Some(Arc::new(facts.abreast(places.disks_abreast())))
}

/// The streams of one process in a level of `frames` frames.
fn streams_of(chunk: &Chunk, places: &Places, frames: u32) -> Vec<Stream> {
    let reads = chunk.blocks.iter().enumerate().filter(|(at, _)| !chunk.is_write(*at));
    streams(reads.map(|(_, block)| places.place(*block)), frames)
}
