//! What a read-ahead's row says beside what every policy's does.

use serde::Serialize;
use toml::Table;

use headstart_types::KeyError;

use super::{Integrated, ReadAhead, ReadAheadContext};

/// Makes a policy from its keys.
pub type Make<P> = &'static (dyn Fn(Table, &ReadAheadContext) -> Result<Box<P>, KeyError> + Sync);

/// How a row makes its read-ahead.
#[derive(Clone, Copy)]
pub enum BuildReadAhead {
    /// Beside a replacement that the scenario chooses.
    Apart(Make<dyn ReadAhead>),
    /// With a replacement of its own.
    WithReplacement(Make<dyn Integrated>),
}

/// What a read-ahead has to be told beside what a level has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Needs {
    /// Nothing.
    Nothing,
    /// [`ReadAheadContext::drive`]: it is for devices with an arm.
    Drive,
    /// [`ReadAheadContext::future`]: it is for the level that processes ask, and for processes whose references are
    /// known.
    Future,
}

/// What is special to a read-ahead.
pub struct ReadsAhead {
    /// Whether it names only blocks after the request that it is told of.
    pub only_ahead: bool,
    /// Whether a first request of one block, away from the start of its file, makes it prefetch nothing.
    pub spares_random: bool,
    /// What the host has to tell it.
    pub needs: Needs,
    /// Builds it from its keys (without `name` and `replacement`).
    ///
    /// # Errors
    /// An unknown key or a value out of range.
    pub build: BuildReadAhead,
}
