//! Helpers shared by the constructors of replacements.

use headstart_types::KeyError;

use crate::Replacement;

pub(super) fn boxed<R: Replacement + 'static>(made: Result<R, KeyError>) -> Result<Box<dyn Replacement>, KeyError> {
    Ok(Box::new(made?))
}

/// Maximum number of ghosts, as a multiple of the frames.
pub(super) const GHOSTS_MAX: f64 = 1000.0;
