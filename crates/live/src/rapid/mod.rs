//! The live testbed of parallel programs: what the simulator simulates, as real threads (kotz-ellis, section 5.1).
//!
//! Each process is a thread, and so is each disk, which serves from memory after an artificial delay. Computing and
//! prefetch actions are sleeps, so that many more processors than the machine has can be played; everything else, above
//! all the contention for the shared structures of the cache, is real and takes the time that it takes.
//!
//! The policy, the cache level, the barriers, the rules of idle processors and the reference strings are those of the
//! simulator (`headstart_engine`): one mutex holds them all. Whoever does something that may give idle processors
//! something to do offers it to them, in the order in which they became free.
//!
//! On a [`SteppedClock`](crate::SteppedClock) nothing takes time but what takes time in the simulator too, and a run
//! comes out as the simulator's.
//!
//! Cost: a thread for each process and disk; memory: the whole file, and what the simulator takes.

mod blocks;
mod disks;
mod files;
mod process;
mod testbed;

pub use testbed::{run, workers};

/// Why a run has no outcome.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Progress was answered with false.
    #[error("stopped")]
    Stopped,
    /// Nothing will ever happen: a bug, and what everybody waits for.
    #[error("the live run is stuck: {0}")]
    Stuck(String),
    /// The machine gives no more threads.
    #[error("{count} threads are more than this machine gives: {problem}")]
    Threads {
        /// A thread for each process and disk.
        count: usize,
        /// What it says.
        problem: String,
    },
}
