//! The replacements: a line each, their rows stand in their files.

use toml::Table;

use headstart_types::{KeyError, KeyTable};

use super::{arc, clock, fifo, lfu, lirs, lru, min, mru, ru_set, s3_fifo, sieve, two_q};
use crate::registry::{Build, Context};
use crate::{OnLine, Policy, Replacement};

/// How a row makes its replacement.
pub type BuildReplacement = fn(Table, &Context) -> Result<Box<dyn Replacement>, KeyError>;

/// A replacement's row.
pub struct ReplacementRow {
    /// The name in scenarios.
    pub name: &'static str,
    /// One line for help.
    pub summary: &'static str,
    /// Where it comes from.
    pub source: &'static str,
    /// Whether it needs disclosed references.
    pub hinted: bool,
    /// Its keys.
    pub keys: KeyTable,
    /// Builds it from its keys (without `name`).
    ///
    /// # Errors
    /// An unknown key or a value out of range.
    pub build: BuildReplacement,
    /// Joins it to demand fetching. One row, one monomorphic policy: its calls are inlined.
    ///
    /// # Errors
    /// As `build`.
    pub on_demand: Build,
}

/// The replacement policies.
pub static REPLACEMENTS: &[&ReplacementRow] = &[
    &lru::ROW,
    &fifo::ROW,
    &arc::ROW,
    &min::ROW,
    &two_q::ROW,
    &sieve::ROW,
    &s3_fifo::ROW,
    &lirs::ROW,
    &mru::ROW,
    &clock::ROW,
    &lfu::ROW,
    &ru_set::ROW,
];

/// The row of replacement `name`.
///
/// # Errors
/// There is none; lists the names.
pub fn replacement(name: &str) -> Result<&'static ReplacementRow, KeyError> {
    let unknown = || KeyError::unknown("replacement", "replacement", name, REPLACEMENTS.iter().map(|row| row.name));
    REPLACEMENTS.iter().copied().find(|row| row.name == name).ok_or_else(unknown)
}

pub(super) fn boxed<R: Replacement + 'static>(made: Result<R, KeyError>) -> Result<Box<dyn Replacement>, KeyError> {
    Ok(Box::new(made?))
}

pub(super) fn on_demand<R: Replacement + 'static>(made: Result<R, KeyError>) -> Result<Box<dyn Policy>, KeyError> {
    Ok(Box::new(OnLine::new(made?)))
}

/// The most ghosts, as a multiple of the frames.
pub(super) const GHOSTS_MAX: f64 = 1000.0;
