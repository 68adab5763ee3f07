//! `addresses = "auto"`: by address if the trace fits on the device, otherwise compacted in chunks.

use std::sync::Arc;

use headstart_layout::{Addresses, Placing, DEFAULT_CHUNK};
use headstart_scenario::Survey;
use headstart_types::KeyError;

use super::cutting::Cutter;
use super::records::Opened;
use super::survey::survey;
use crate::Error;

/// The placing of a trace by `place`, with the required first pass, and a note if addresses were compacted. `found` is
/// the pass if it was already made.
///
/// The largest chunks are used, from [`DEFAULT_CHUNK`] downwards, with which all referenced blocks have a place:
/// smaller chunks need less space and leave fewer neighbours to a read-ahead.
///
/// # Errors
/// An error of the trace, or if its blocks alone exceed the device.
pub fn fitting(
    opened: &Opened,
    cutter: &Cutter,
    found: Arc<Survey>,
    place: impl Fn(Addresses, &Survey) -> Result<Placing, KeyError>,
) -> Result<(Placing, Arc<Survey>, Option<String>), Error> {
    let placing = place(Addresses::Error, &found)?;
    if !placing.is_limited() {
        return Ok((placing, found, None));
    }
    let found = if found.references == 0 { survey(opened, cutter, false)? } else { found };
    if found.contents.files.iter().all(|(file, blocks)| *blocks == 0 || placing.place(*file, blocks - 1).is_ok()) {
        return Ok((placing, found, None));
    }
    let found = if found.contents.blocks.is_empty() { survey(opened, cutter, true)? } else { found };
    let mut chunk_blocks = DEFAULT_CHUNK;
    loop {
        let placing = place(Addresses::Compact { chunk_blocks }, &found)?;
        let beyond = found.contents.blocks.iter().find_map(|(file, at)| placing.place(*file, *at).err());
        match beyond {
            None => return Ok((placing, found, Some(note(chunk_blocks)))),
            Some(error) if chunk_blocks == 1 => return Err(error.into()),
            Some(_) => chunk_blocks /= 2,
        }
    }
}

fn note(chunk_blocks: u64) -> String {
    format!(
        "addresses lie beyond the device: workload.addresses = \"compact-chunks\" is used, with chunk_blocks = \
         {chunk_blocks}; distances between chunks are not the recorded ones"
    )
}
