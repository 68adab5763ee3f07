//! Time for the threads of a live run: the current time, and waiting.
//!
//! A run's threads are its *workers*, numbered from zero. Apart from short critical sections a worker waits in one way
//! only: it *parks* until another worker wakes it or a time has come. All waits (for a disk, for a block, for a
//! processor's action, at a barrier) are built on this, so that a run can use
//! - [`RealClock`]: the machine's clock, which may be scaled relative to the program's times; or
//! - [`SteppedClock`]: a virtual clock for tests. Workers run one at a time, and when all are parked, the clock jumps
//!   to the next time. Execution takes no time, so every run has the same result.
//!
//! A wake is never lost: if the worker is not parked, its next park returns at once. Therefore a park may return early;
//! the worker checks its condition and parks again.

mod real;
mod stepped;

pub use real::{Lateness, RealClock};
pub use stepped::SteppedClock;

use headstart_types::Nanos;

pub trait Clock: Sync {
    /// Time since the start of the run.
    fn now(&self) -> Nanos;

    /// The worker's thread begins; returns when all have begun and it may run.
    fn enter(&self, worker: usize);

    /// The worker's thread ends.
    fn leave(&self, worker: usize);

    /// Parks the worker until it is woken or until `until`.
    fn park(&self, worker: usize, until: Option<Nanos>);

    /// Lets all other workers that can run at this instant go first. No effect on a real clock.
    fn settle(&self, worker: usize);

    /// Ends the worker's current or next park.
    fn wake(&self, worker: usize);

    /// Whether all remaining workers wait for one another, so that nothing will ever happen.
    fn is_stuck(&self) -> bool;
}
