//! Limits of times, which keep sums of nanoseconds within 64 bits.

use headstart_types::{KeyError, Nanos};

use super::Error;

/// A run fails when its clock passes this. A single think time is no longer either.
pub use headstart_engine::TIME_MAX;

/// Maximum cost of one operation of a processor or link: 2^32 of them sum to less than 64 bits.
pub const COST_MAX: Nanos = Nanos(3_600_000_000_000);

/// The clock has passed [`TIME_MAX`], or the sum of the times of all processes overflows.
#[cold]
pub fn too_long() -> Error {
    KeyError::new(
        "workload",
        "the run takes more than 146 simulated years, or its processes more than 584 in all",
        "shorter think times or costs, or a limit",
    )
    .into()
}
