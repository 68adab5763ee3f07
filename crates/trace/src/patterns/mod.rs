//! Access patterns of parallel programs: which blocks of one file the processes read, in what order.
//!
//! Source: D. Kotz and C. S. Ellis, "Prefetching in File Systems for MIMD Multiprocessors" (RAPID Transit, 1989-90),
//! section 5.2: six patterns of sequential *portions*, runs of consecutive blocks. In the local ones each process
//! reads a string of its own; in the global ones all share a string and each process takes its next reference.
//! Section 5.4: 20 processes, 2000 reads in all of a file of 2000 blocks. The lengths of portions and the distances
//! between them are not printed: their defaults are guesses.
//!
//! The file is a ring here: what goes beyond its end goes on at its beginning. Each pattern is a pure function of its
//! keys, the number of processes and a seed. Cost: constant a reference; memory: 4 bytes a reference.

mod fixed;
mod random;
mod strings;
mod whole;

use headstart_types::KeyError;

pub use strings::{Pattern, PatternContext, Strings};

/// All patterns. A constant, so that the generators can be made of its rows.
pub(crate) const ROWS: [Pattern; 6] =
    [fixed::LOCAL, random::LOCAL, whole::LOCAL, fixed::GLOBAL, random::GLOBAL, whole::GLOBAL];

/// All patterns.
pub static PATTERNS: &[Pattern] = &ROWS;

/// The row of pattern `name`.
///
/// # Errors
/// There is none; lists the names.
pub fn pattern(name: &str) -> Result<&'static Pattern, KeyError> {
    let unknown = || KeyError::unknown("pattern", "pattern", name, PATTERNS.iter().map(|row| row.name));
    PATTERNS.iter().find(|row| row.name == name).ok_or_else(unknown)
}
