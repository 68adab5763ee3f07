//! Policies for parallel programs: prefetching by the processors' idle time, from reference strings known beforehand or by a
//! predictor.

mod ahead;
mod predicted;
pub(crate) mod rapid_transit;

pub use rapid_transit::{PrefetchFor, RapidTransit, Setting};

use ahead::Ahead;
use predicted::Predicted;

#[cfg(test)]
mod tests;
