//! Policies as state machines without I/O: `(now, event, view) -> decisions`.
//!
//! A policy never reads a clock, draws a random number, starts a thread or touches a file. A *host* (the
//! simulator, or a live system) owns time and I/O: it tells the policy what happened ([`Event`]), shows it the
//! level's state ([`View`]) and carries out the [`Fetch`]es that it decides on. What is proven in one host is
//! therefore what runs in the other.
//!
//! Families that share the one interface [`Policy`]:
//! - on-line: [`OnLine`] joins read-ahead (so far: none) to a [`Replacement`];
//! - hinted: a [`hinted::Strategy`] chooses fetch and victim together from disclosed future references;
//! - [`readahead`] and [`predictor`]: what is prefetched follows from the requests, at once or as they have come before;
//! - [`parallel`]: processors prefetch in their idle time what the processes of a parallel program will read.
//!
//! Adding a policy is one file, which holds its row, and its line in [`registry`].

#![warn(missing_docs)]

mod apart;
mod asking;
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
mod row;

pub use apart::Apart;
pub use asking::Asking;
pub use coordinator::Coordinator;
pub use hints::{Disclosure, Hints};
pub use interface::{BlockState, Event, Fetch, NoSpace, Policy, Space, View};
pub use online::OnLine;
pub use readahead::ReadAhead;
pub use replacement::Replacement;
