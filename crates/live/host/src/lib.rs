//! What every live host shares.
//!
//! - `mailbox.rs`: what passes between the machine and a host;
//! - `clock`: real time, and a clock that tests step; `punctual.rs`: the priority that wakes a thread at once;
//! - `ring.rs`, `memory.rs`, `page_cache.rs`: reading files without threads, large pages, what the kernel has of a file;
//! - `child.rs`, `tracefs.rs`, `intervals.rs`: a command and the kernel's trace of it; `roots.rs`: where the system shows itself;
//! - `process.rs`: a process recognised later; `owned.rs`: files that belong to this user; `path_error.rs`: the error of a path.

pub mod child;
mod clock;
pub mod intervals;
pub mod mailbox;
pub mod memory;
pub mod owned;
pub mod page_cache;
mod path_error;
mod process;
mod punctual;
pub mod ring;
mod roots;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod tracefs;

pub use clock::{Clock, Lateness, RealClock, SteppedClock};
pub use path_error::PathError;
pub use process::Process;
pub use punctual::set_realtime_priority;
pub use roots::Roots;
