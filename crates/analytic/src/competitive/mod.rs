//! Prefetching with a bound: how deep to prefetch into streams of unknown length.
//!
//! C. Li, K. Shen and A. E. Papathanasiou, "Competitive prefetching for concurrent sequential I/O", EuroSys 2007, section
//! 4. Each prefetch of a stream costs the disk one switch (seek and rotation) and a transfer, and what the stream does not
//! use of the last one is wasted. A prefetch as deep as what passes the head in one switch keeps the two in balance: the
//! disk then works less than twice as long as one that knows each stream's length ([`competitive_depth`], equation (8)).
//! No depth, nor any schedule of depths, guarantees less than twice ([`defeat`], equations (9) to (13)).
//!
//! - `costs.rs`: what streams cost with a schedule and at best, (1) to (6); `bounds.rs`: (7), (8), (14), (15).
//! - `seeks.rs`: the seek to expect among n requests, (5).
//! - `worst.rs`, our addition: the most that a schedule costs beyond the optimum, over all lengths of a stream. It says how much
//!   of the room that (15) leaves a slow start really needs, and what rounding a depth to pages costs.
//! - `adversary.rs`: the proof that 2 is the least, as a generator of the stream that defeats a schedule.
//!
//! What the bound holds for, and nothing else: the switch takes the same time on average whatever the depth; what was
//! prefetched stays cached until it is used; data that are not used are worth nothing. Depths are real numbers here, not
//! whole pages ([`whole_pages`] rounds).
//!
//! Sizes are bytes, times nanoseconds, rates bytes a second, all in floating point; callers guarantee that they are above
//! zero and finite. Costs are closed forms: a step for each prefetch of a slow start, none for those behind it.

mod adversary;
mod bounds;
mod costs;
mod seeks;
mod worst;

pub use adversary::{defeat, latest_violation, Defeat};
pub use bounds::{competitive_depth, competitive_ratio, upper_bounds, whole_pages, UpperBounds};
pub use costs::{cost, optimum, Cost, Schedule, Stream, Switches};
pub use seeks::{expected_seek, expected_seek_by};
pub use worst::{worst, Worst};
