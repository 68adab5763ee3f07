//! Predictors: prefetching that learns from past requests.
//!
//! A read-ahead continues a file; a predictor names blocks that followed earlier, wherever they are. Both implement
//! [`ReadAhead`](crate::ReadAhead), work with any replacement and at any level, and have their prefetches counted
//! alike: used, late, wasted. A request of several blocks counts as that many references in order. A key of each
//! predictor bounds its memory; the least recently used entries are forgotten first, unless its file says otherwise.
//!
//! One file each, which holds its row of [`crate::registry`].

mod last_successor;
mod leap;
mod libcachesim_graph;
mod mithril;
mod mithril_keys;
mod mithril_tables;
mod patterns;
mod ppm;
mod probability_graph;
mod stable_successor;

use headstart_types::{Chosen, KeyError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toml::Table;

use crate::readahead::{Asked, Make, ReadsAhead, Run};
use crate::row::{ByPosition, Family, PolicyRow};
use crate::ReadAhead;

pub use last_successor::Successors;
pub use leap::Leap;
pub use mithril::Mithril;
pub use patterns::Patterns;
pub use ppm::Ppm;
pub use probability_graph::ProbabilityGraph;

/// All predictors.
pub static ROWS: &[&PolicyRow] = &[
    &last_successor::ROW,
    &stable_successor::ROW,
    &probability_graph::ROW,
    &ppm::ROW,
    &mithril::ROW,
    &leap::ROW,
    &patterns::ROW,
];

/// A block's file, and its index in the file.
pub(crate) type FileBlock = (u32, u64);

/// Default number of remembered entries. A guess: a few megabytes.
pub(crate) const ENTRIES: u32 = 65_536;

/// Maximum number of processes whose last requests are remembered.
pub(crate) const CLIENTS: usize = 1024;

/// Which version of an algorithm a predictor follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Version {
    /// The paper's.
    #[default]
    Paper,
    /// libCacheSim's (aa0fc40, October 2024), with exactly its counts.
    #[serde(rename = "libcachesim")]
    LibCacheSim,
    /// libCacheSim's without its bugs.
    #[serde(rename = "libcachesim-fixed")]
    LibCacheSimFixed,
}

impl Version {
    /// libCacheSim fetches single blocks: a demanded block arrives before what is prefetched with it.
    pub(crate) fn order_max(self) -> u32 {
        if self == Version::Paper {
            u32::MAX
        } else {
            1
        }
    }
}

/// The family of a predictor built by `make` that does not depend on the blocks' positions.
pub(crate) const fn family(make: Make<dyn ReadAhead>) -> Family {
    family_with(make, |_| false)
}

/// The family of a predictor built by `make`.
pub(crate) const fn family_with(make: Make<dyn ReadAhead>, by_position: ByPosition) -> Family {
    Family::Predictor(ReadsAhead::new(make), by_position)
}

/// The predictor of that name, with the keys that were given.
///
/// # Errors
/// The predictor is unknown, or one of its keys is wrong.
pub fn named(name: &str, given: Table) -> Result<Chosen<PolicyRow>, KeyError> {
    let unknown = || KeyError::unknown("name", "predictor", name, ROWS.iter().map(|row| row.name));
    Chosen::read(ROWS.iter().find(|row| row.name == name).ok_or_else(unknown)?, given)
}

/// The blocks of a request, in order.
pub(crate) fn places(asked: &Asked) -> impl Iterator<Item = FileBlock> {
    let file = asked.file;
    (asked.first..asked.end()).map(move |index| (file, index))
}

/// Names one block.
pub(crate) fn name((file, index): FileBlock, prefetch: &mut Vec<Run>) {
    prefetch.push(Run { file, first: index, count: 1 });
}
