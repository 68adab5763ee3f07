//! Policies as state machines without I/O: `(now, event, view) -> decisions`.
//!
//! A policy never reads a clock, draws a random number, starts a thread or touches a file. A *host* (the simulator, or
//! a live system) owns time and I/O: it reports what happened ([`Event`]), shows the level's state ([`View`]) and
//! carries out the [`Fetch`]es that the policy decides on. So the code that is tested in one host is the code that runs
//! in the other.
//!
//! Families that share the interface [`Policy`]:
//! - demand: [`OnLine`] fetches on demand under a [`Replacement`];
//! - hinted: a [`hinted::Strategy`] chooses fetch and victim together from disclosed future references;
//! - [`readahead`] and [`predictor`]: prefetch from the current requests, or from patterns in earlier ones;
//! - [`parallel`]: idle processors prefetch what the processes of a parallel program will read.
//!
//! To add a policy, write one file, which holds its row, and add its `mod` line and its line of `ROWS` to the folder.

#![warn(missing_docs)]

pub mod conformance;
pub mod coordinator;
mod demand;
pub mod hinted;
mod hints;
mod interface;
mod lists;
mod named;
mod online;
pub mod parallel;
pub mod predictor;
pub mod readahead;
pub mod registry;
pub mod replacement;
mod request_policy;
mod row;
mod separate_read_ahead;

pub use coordinator::Coordinator;
pub use hints::{Disclosure, Hints};
pub use interface::{BlockMap, BlockState, Event, Fetch, NoSpace, Policy, View};
pub use online::OnLine;
pub use readahead::ReadAhead;
pub use replacement::Replacement;
pub use request_policy::RequestPolicy;
pub use separate_read_ahead::SeparateReadAhead;
