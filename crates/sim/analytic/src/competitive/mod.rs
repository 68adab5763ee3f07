//! Competitive prefetching: how deep to prefetch into streams of unknown length, with a guarantee.
//!
//! C. Li, K. Shen and A. E. Papathanasiou, "Competitive prefetching for concurrent sequential I/O", EuroSys 2007,
//! section 4. Each prefetch of a stream costs the disk one switch (seek and rotation) and a transfer, and the unused
//! part of the last one is wasted. A prefetch as deep as the data that passes the head in one switch balances the two:
//! the disk then works less than twice as long as with known stream lengths ([`competitive_depth`], equation (8)). No
//! depth, nor any schedule of depths, guarantees less than twice ([`defeat`], equations (9) to (13)).
//!
//! - `costs.rs`: the costs of streams with a schedule and at the optimum, (1) to (6); `bounds.rs`: (7), (8), (14),
//!   (15).
//! - `seeks.rs`: the expected seek among n requests, (5).
//! - `worst.rs`, our addition: the worst-case ratio of a schedule to the optimum, over all lengths of a stream. It
//!   shows how much of the room that (15) leaves a slow start really needs, and what rounding a depth to pages costs.
//! - `adversary.rs`: the proof that 2 is optimal, as a generator of the worst-case stream of a schedule.
//!
//! The bound assumes that the average switch time does not depend on the depth, that prefetched data stay cached until
//! they are used, and that unused data have no value. Depths are real numbers here, not whole pages ([`whole_pages`]
//! rounds).
//!
//! Sizes are bytes, times nanoseconds, rates bytes per second, all in floating point; callers guarantee that they are
//! above zero and finite. Costs are closed forms: a step per prefetch of a slow start, none for later ones.

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
