//! The live host: real threads and a real clock under the policies, the level and the rules of the simulator.
//!
//! Beside `headstart-sim` on `headstart-engine`: what is decided is decided by the same code in both. There are
//! [`parallel`], the testbed of parallel programs, [`emulate`], a file that answers as a simulated drive would,
//! [`profile`](mod@profile), which measures a device by reading it, [`tune`], which sets a real device's read-ahead,
//! [`mod@record`], which sees what a command reads, and [`hints`], which runs a command while what it is going to read is
//! prefetched, and [`mod@forecast`], which says beforehand what that saves. [`ring`] reads files without threads, into [`memory`];
//! [`page_cache`] says what the kernel has of a file.

mod child;
mod clock;
pub mod emulate;
pub mod forecast;
pub mod hints;
mod intervals;
pub mod memory;
pub mod owned;
pub mod page_cache;
mod page_trace;
pub mod parallel;
mod path_error;
pub mod profile;
pub mod record;
pub mod ring;
mod tracefs;
pub mod tune;

pub use clock::{Clock, Lateness, RealClock, SteppedClock};
pub use path_error::PathError;
