//! The live testbed of parallel programs: runs with real threads what the simulator simulates (kotz-ellis, section
//! 5.1).
//!
//! Each process is a thread, and so is each disk, which serves from memory after an artificial delay. Computation and
//! prefetch actions are sleeps, so that many more processors can be emulated than the machine has; everything else,
//! above all the contention for the shared structures of the cache, is real and takes real time.
//!
//! The machine, which the simulator also uses (`headstart_engine`), decides what happens at an instant; one mutex
//! protects it. A thread whose time has come, or a disk that has completed a request, notifies the machine and lets it
//! act; the machine reports whose times have changed.
//!
//! On a [`SteppedClock`](headstart_host::SteppedClock) only that takes time which also does in the simulator, so a run
//! gives the simulator's result.
//!
//! Cost: a thread per process and disk. Memory: the whole file, and the simulator's memory.

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
    /// The progress callback returned false.
    #[error("stopped")]
    Stopped,
    /// Nothing will ever happen, which is a bug; the text says who waits for what.
    #[error("the live run is stuck: {0}")]
    Stuck(String),
    /// The system cannot create enough threads.
    #[error("{count} threads are more than this machine gives: {problem}")]
    Threads {
        /// Number of threads: one per process and disk.
        count: usize,
        /// The system's message.
        problem: String,
    },
}
