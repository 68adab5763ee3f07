//! Live hints: runs a command while what a recorded run of it read is prefetched into the page cache.
//!
//! ```text
//! command --- tracefs ---> references ---> machine (level + hinted policy) ---> orders ---> disks' threads ---> page cache
//!                                             ^                                                  |
//!                                             +------------------- has been read ----------------+
//! ```
//!
//! - `list.rs`, `recorded.rs`: the content of a recording; `universe.rs`: its pages as the machine's blocks;
//! - `machine.rs`: the machine around a command that is only watched;
//! - `disk.rs`, `queue.rs`, `pieces.rs`: where files lie, what is read next, and reading it; `threads.rs`: the reading
//!   threads; `system.rs`: the system calls for that;
//! - `trace.rs`: what the command references;
//! - `worth.rs`: whether a command is helped at all; `plan.rs`: how far hints are trusted; `pace.rs`: how fast they are
//!   followed; `head_start.rs`: when the command is started; `account.rs`: how much disk time may be wasted; `guard.rs`: when to stop; `budget.rs`: how much memory may be used; `report.rs`: the statistics;
//! - `conductor.rs`: connects them; `run.rs`: the loop around it;
//! - `follow.rs`: the same for a host that does its own reads, such as a block server; `waiting.rs`: the reads for such
//!   a host;
//! - `command/`: the command `headstart run`; `store.rs`: the recordings of earlier runs.

mod account;
mod budget;
pub mod command;
pub(crate) mod conductor;
pub(crate) mod disk;
mod follow;
pub mod forecast;
mod guard;
pub(crate) mod head_start;
pub(crate) mod list;
pub(crate) mod machine;
#[cfg(test)]
mod machine_tests;
mod pace;
mod page_trace;
pub(crate) mod pieces;
#[cfg(test)]
mod pieces_tests;
mod plan;
pub(crate) mod queue;
pub mod record;
mod recorded;
pub(crate) mod report;
mod run;
mod store;
pub(crate) mod system;
mod threads;
pub(crate) mod trace;
pub(crate) mod universe;
mod waiting;
mod worth;

use std::io;

use headstart_types::{system_says, KeyError};

pub use budget::Room;
pub use follow::{Expected, FollowReport, Follower, Prepared};
pub use headstart_host::child::Status;
pub use list::{device_number, HintList, HintedFile, HintedRange, PAGE_BYTES};
pub use machine::{MODE, WATCHED};
pub use report::Report;
pub use run::{run, Settings};
pub use universe::HintedSpace;

/// Why a command is not run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The policy or one of its keys.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The program.
    #[error("{program}: {}; allowed: a program that can be run", system_says(source))]
    Start {
        /// As it was named.
        program: String,
        /// What the system says.
        source: io::Error,
    },
    /// A recording of another machine.
    #[error("a recording of pages of {0} bytes; allowed: pages of {PAGE_BYTES} bytes")]
    Pages(u64),
    /// The recording.
    #[error("{0}")]
    Hints(String),
    /// The end of the command cannot be waited for.
    #[error("waiting for the command: {}", system_says(source))]
    Wait {
        /// What the system says.
        source: io::Error,
    },
}

impl Error {
    /// Whether the program does not exist.
    #[must_use]
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Start { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }
}
