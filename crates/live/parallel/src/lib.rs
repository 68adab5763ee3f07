//! The live testbed of parallel programs: what the simulator simulates, as real threads (kotz-ellis, section 5.1).
//!
//! Each process is a thread, and so is each disk, which serves from memory after an artificial delay. Computing and
//! prefetch actions are sleeps, so that many more processors than the machine has can be played; everything else, above
//! all the contention for the shared structures of the cache, is real and takes the time that it takes.
//!
//! What happens at an instant is the machine's business, the same that the simulator drives (`headstart_engine`): one mutex
//! holds it. A thread that comes to its time, or a disk that is done, says so and lets the machine act; the machine says
//! whose times have changed.
//!
//! On a [`SteppedClock`](headstart_host::SteppedClock) nothing takes time but what takes time in the simulator too, and a run
//! comes out as the simulator's.
//!
//! Cost: a thread for each process and disk; memory: the whole file, and what the simulator takes.

mod blocks;
mod disks;
mod machine;
mod process;
mod run;
mod testbed;

pub use blocks::Numbered;
pub use run::{run, workers};

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
