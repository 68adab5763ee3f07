//! What the constructors of replacements share.

use headstart_types::KeyError;

use crate::{OnLine, Policy, Replacement};

pub(super) fn boxed<R: Replacement + 'static>(made: Result<R, KeyError>) -> Result<Box<dyn Replacement>, KeyError> {
    Ok(Box::new(made?))
}

pub(super) fn on_demand<R: Replacement + 'static>(made: Result<R, KeyError>) -> Result<Box<dyn Policy>, KeyError> {
    Ok(Box::new(OnLine::new(made?)))
}

/// The most ghosts, as a multiple of the frames.
pub(super) const GHOSTS_MAX: f64 = 1000.0;
