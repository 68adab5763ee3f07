//! How far times may go: what keeps sums of nanoseconds within 64 bits.

use headstart_types::{KeyError, Nanos};

use super::Error;

/// A run ends with an error when its clock passes this. No single think time is longer either.
pub use headstart_engine::TIME_MAX;

/// The longest cost of one act of processor or link: with 2^32 of them sums stay within 64 bits.
pub const COST_MAX: Nanos = Nanos(3_600_000_000_000);

/// The clock has passed [`TIME_MAX`], or the times of all processes do not fit into one sum.
#[cold]
pub fn too_long() -> Error {
    KeyError::new(
        "workload",
        "the run takes more than 146 simulated years, or its processes more than 584 in all",
        "shorter think times or costs, or a limit",
    )
    .into()
}
