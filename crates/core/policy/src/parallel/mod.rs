//! Policies for parallel programs: idle processors prefetch, guided by reference strings known in advance or by a
//! predictor.

mod ahead;
mod predicted;
pub(crate) mod rapid_transit;

pub use rapid_transit::{PrefetchFor, RapidTransit, RapidTransitKeys, RapidTransitSetting};

use ahead::Ahead;
use predicted::Predicted;

#[cfg(test)]
mod tests;
