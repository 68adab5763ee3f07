//! Access patterns of parallel programs: which blocks of one file the processes read, in what order.
//!
//! Source: D. Kotz and C. S. Ellis, "Prefetching in File Systems for MIMD Multiprocessors" (RAPID Transit, 1989-90),
//! section 5.2: six patterns of sequential *portions*, runs of consecutive blocks. In the local patterns each process
//! reads its own string of references; in the global ones all share a string and each process takes its next reference.
//! Section 5.4: 20 processes, 2000 reads in all of a file of 2000 blocks. The paper does not give the lengths of
//! portions and the distances between them: their defaults are guesses.
//!
//! The file is a ring: portions wrap at its end. Each pattern is a pure function of its keys, the number of processes
//! and a seed. Cost: constant per reference; memory: 4 bytes per reference.

mod fixed;
mod random;
mod strings;
mod whole;

use headstart_types::KeyError;

pub use strings::{Pattern, PatternContext, Strings};

/// All patterns. A constant, so that the generators can be built from its rows at compile time.
pub(crate) const ROWS: [Pattern; 6] =
    [fixed::LOCAL, random::LOCAL, whole::LOCAL, fixed::GLOBAL, random::GLOBAL, whole::GLOBAL];

pub static PATTERNS: &[Pattern] = &ROWS;

/// The row of pattern `name`.
///
/// # Errors
/// There is none; lists the names.
pub fn pattern(name: &str) -> Result<&'static Pattern, KeyError> {
    let unknown = || KeyError::unknown("pattern", "pattern", name, PATTERNS.iter().map(|row| row.name));
    PATTERNS.iter().find(|row| row.name == name).ok_or_else(unknown)
}
