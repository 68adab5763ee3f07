//! A block server: clients of the NBD protocol read and write an export through the machine that the simulator runs, with
//! its levels, replacements, read-aheads and coordinators, in front of a file, a device, another server or memory.
//!
//! - `conductor.rs`: one export, without time and I/O of its own, over `machine.rs` (the engine), `pages.rs` (which page is which
//!   block), `buffers.rs` (the bytes), `wanted.rs` (who waits for them), `queue.rs` (reads of the backing) and `writes.rs` (changes of it);
//! - `backing/`: what stands behind an export, and the threads that wait for it;
//! - `server/`: connections, and the loop around all exports;
//! - `hinted.rs`: what an earlier run has read, as hints;
//! - `stability.rs`: which acknowledged changes are not known to be stable;
//! - `spill/`: a second level in a local file;
//! - `profile.rs`: an object measured as a device of the simulator;
//! - `probe.rs`: how far to read ahead where nothing is said;
//! - `settings.rs`: its options; `run.rs`: the command, with its report, metrics, log and recording.

pub mod backing;
mod buffers;
pub mod conductor;
mod error;
mod hinted;
mod machine;
mod metrics;
pub mod pages;
pub mod probe;
pub mod profile;
pub mod queue;
mod recording;
mod report;
mod run;
pub mod server;
mod settings;
pub mod spill;
mod stability;
pub mod statistics;
mod wanted;
mod window;
pub mod work;
mod writes;

pub use error::Error;
pub use report::{ExportReport, Report};
pub use run::run;
pub use settings::Settings;
pub use stability::{Unflushed, Unstable};
