//! Policies for parallel programs: idle processors prefetch, guided by reference strings known in advance or by a
//! predictor.

mod ahead;
mod predicted;
mod rapid_transit;

pub use rapid_transit::{PrefetchFor, RapidTransit, RapidTransitKeys, RapidTransitSetting};

use crate::row::PolicyRow;
use ahead::Ahead;
use predicted::Predicted;

/// All policies for parallel programs.
pub(crate) static ROWS: &[&PolicyRow] = &[&rapid_transit::ROW];

#[cfg(test)]
mod tests;
