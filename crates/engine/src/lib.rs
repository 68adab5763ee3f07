//! The engine: a cache level that owns residency, capacity, in-flight state, pins and all counting.
//!
//! It has no clock and does no I/O. A host calls it with the time and gives it a [`Backend`] that takes fetches;
//! the simulator's backend is a set of simulated drives, a live one would read from real ones. The order of calls
//! at one instant is the host's duty and always the same: [`Level::arrived`] or [`Level::written`] for each
//! completion, [`Level::flush`] and [`Level::decide`], then [`Level::reference`], [`Level::resume`] and
//! [`Level::write`].

mod counts;
mod dirty;
mod ledger;
mod level;
pub mod parallel;
mod requests;

pub use counts::Counts;
pub use level::{Access, Backend, Kind, Level, Order};
pub use requests::{Ask, Looked};
