//! Time as the threads of a live run see it: what time it is, and waiting.
//!
//! A run's threads are its *workers*, numbered from zero. Besides short critical sections a worker waits in one way
//! only: it *parks*, until another one wakes it or a time has come. All waits (for a disk, for a block, for a processor
//! to be done with an action, at a barrier) are made of this, so that a run can be driven by
//! - [`RealClock`]: the machine's own, which may run faster or slower than the times of the program; or
//! - [`SteppedClock`]: a virtual one for tests. Workers run one at a time, and when all are parked the time of the next
//!   one comes at once. Nothing takes time of itself, so that every run has the same result.
//!
//! A wake is never lost: if the worker is not parked, its next park returns at once. Hence a park may return though
//! nothing has happened that the worker waits for: it looks, and parks again.

mod real;
mod stepped;

pub use real::{Lateness, RealClock};
pub use stepped::SteppedClock;

use headstart_types::Nanos;

/// A clock and the workers that wait by it.
pub trait Clock: Sync {
    /// Time since the run began.
    fn now(&self) -> Nanos;

    /// The worker's thread begins: returns when all have begun and it may run.
    fn enter(&self, worker: usize);

    /// The worker's thread ends.
    fn leave(&self, worker: usize);

    /// The worker waits until it is woken, or until the time `until`.
    fn park(&self, worker: usize, until: Option<Nanos>);

    /// Lets all other workers with something to do at this instant go first. A real clock knows no such instant.
    fn settle(&self, worker: usize);

    /// Ends the worker's park, or the one to come.
    fn wake(&self, worker: usize);

    /// Whether every worker that is left waits for another one to wake it: nothing will ever happen.
    fn is_stuck(&self) -> bool;
}
