//! A block server: clients read and write an export over the NBD protocol, through the same machine that the simulator
//! runs (levels, replacements, read-aheads, coordinators), in front of a file, a device, another server or memory.
//!
//! - `conductor.rs`: one export, without clock and I/O, over `machine.rs` (the engine), `pages.rs` (numbers of pages),
//!   `buffers.rs` (bytes), `wanted.rs` (waiting requests), `queue.rs` (reads of the backing) and `writes.rs` (changes);
//! - `backing/`: the storage of an export, and the threads that wait for it;
//! - `server/`: connections, and the loop around all exports;
//! - `hinted.rs`: hints from an earlier run;
//! - `stability.rs`: which acknowledged changes are not known to be stable;
//! - `spill/`: a second level in a local file;
//! - `profile.rs`: an object measured as a device of the simulator;
//! - `probe.rs`: the default read-ahead;
//! - `settings.rs`: the options; `run.rs`: the command, with its report, metrics, log and recording.

pub mod backing;
mod buffers;
pub mod change;
pub mod conductor;
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

pub use headstart_store::Error;
pub use report::{ExportReport, Report};
pub use run::run;
pub use settings::Settings;
pub use stability::{UnflushedChanges, Unstable};
