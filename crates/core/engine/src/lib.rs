//! The engine: cache levels, their surroundings, and the order of events at one instant.
//!
//! A [`Level`] owns residency, capacity, in-flight state, pins and all counting. A [`Stack`] is levels above levels,
//! with links and coordinators between them, above [`Devices`]. A [`System`] adds the processes that issue requests:
//! their waits, costs and think times, barriers, and prefetch actions of idle processors. None of it has a clock or
//! does I/O: the simulator drives it with a calendar and simulated drives, a live host with threads, a real clock and
//! real reads.

#![warn(missing_docs)]

/// The example program of the docs page for policy authors.
#[cfg(doctest)]
#[doc = include_str!("../../../../docs/your-own-policy.md")]
struct YourOwnPolicy;

mod backend;
pub mod conformance;
mod counts;
mod devices;
mod invariants;
mod journal;
mod level;
pub mod parallel;
mod pieces;
mod responses;
mod stack;
mod system;

pub use backend::{Backend, IoRequest, Kind};
pub use counts::{mean_ns, Counts, CountsReport, LevelCountsReport, Metric, METRICS};
pub use devices::{Devices, Ended, From, What};
pub use invariants::Watch;
pub use journal::Happening;
#[cfg(feature = "sabotage")]
pub use level::Sabotage;
pub use level::{Ask, Clusters, Leaving, Level, LookupCounts};
pub use pieces::Pieces;
pub use responses::{Responses, Summary};
pub use stack::{Link, Share, Stack, Tier};
pub use system::{
    Actions, Awaited, Client, Costs, Cursor, IssueMode, NoSupply, Parallel, Phase, Process, Reads, ReferenceCounts,
    Supply, System, TIME_MAX,
};
