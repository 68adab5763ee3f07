//! Shared by all live hosts.
//!
//! - `mailbox.rs`: requests and completions between the machine and a host;
//! - `clock`: real time, and a clock that tests step; `punctual.rs`: real-time priority, to wake threads on time;
//! - `ring.rs`, `memory.rs`, `page_cache.rs`: asynchronous file reads, large pages, the kernel's cached pages of a
//!   file;
//! - `child.rs`, `tracefs.rs`, `intervals.rs`: a command and the kernel's trace of it; `roots.rs`: paths of kernel
//!   interfaces;
//! - `process.rs`: identifies a process across reuse of its pid; `owned.rs`: files that belong to this user;
//!   `path_error.rs`: an error with a path; `metrics.rs`: a text for collectors, in a file or over HTTP.

pub mod child;
mod clock;
pub mod intervals;
pub mod mailbox;
pub mod memory;
pub mod metrics;
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
