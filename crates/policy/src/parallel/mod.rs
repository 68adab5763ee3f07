//! Policies for parallel programs: prefetching by the processors' idle time, from reference strings known beforehand.

mod ahead;
pub(crate) mod rapid_transit;

pub use rapid_transit::{PrefetchFor, RapidTransit, Setting};

use ahead::Ahead;

#[cfg(test)]
mod tests;
