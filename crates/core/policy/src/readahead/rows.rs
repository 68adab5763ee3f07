//! What a read-ahead's row declares in addition to a policy's row.

use headstart_types::{KeyError, TypedKeys};
use serde::Serialize;

use super::{Integrated, ReadAhead, ReadAheadContext};

/// Builds a policy from its keys.
pub type Make<P> = &'static (dyn Fn(&TypedKeys, &ReadAheadContext) -> Result<Box<P>, KeyError> + Sync);

/// How a row builds its read-ahead.
#[derive(Clone, Copy)]
pub enum BuildReadAhead {
    /// Combined with a replacement that the scenario chooses.
    Separate(Make<dyn ReadAhead>),
    /// With its own replacement.
    WithReplacement(Make<dyn Integrated>),
}

/// What a read-ahead needs to know besides what a level knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Needs {
    /// Nothing.
    Nothing,
    /// [`ReadAheadContext::drive`]: only for devices with an arm.
    Drive,
    /// [`ReadAheadContext::future`]: only for the first level, and for processes whose references are known.
    Future,
}

/// What a row declares about its read-ahead.
pub struct ReadsAhead {
    /// Whether it only names blocks after the current request.
    pub only_ahead: bool,
    /// Whether a first request of one block, away from the start of its file, prefetches nothing.
    pub spares_random: bool,
    /// What the host must provide.
    pub needs: Needs,
    /// Builds it from its keys.
    ///
    /// # Errors
    /// A key that does not fit the level, or that the host does not provide what it needs.
    pub build: BuildReadAhead,
}

impl ReadsAhead {
    /// A read-ahead built by `make` that may name blocks before the request, prefetches nothing for single random blocks,
    /// and needs nothing more.
    pub const fn new(make: Make<dyn ReadAhead>) -> Self {
        Self { only_ahead: false, spares_random: true, needs: Needs::Nothing, build: BuildReadAhead::Separate(make) }
    }
}
