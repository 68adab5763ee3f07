//! A cache of objects for readers that know their order, in front of an object store, a folder or a web server.
//!
//! - `shelf/`: what is kept and what is fetched next, without clock and I/O; `orders.rs` (what readers disclosed),
//!   `filing.rs` (what leaves first), `arena.rs` (places in memory);
//! - `source.rs`: where objects come from; `memory.rs`: the bytes; `spill.rs`: the local disk;
//! - `store.rs`: the host, which carries out the shelf's actions on threads; `reading.rs`: its readers;
//! - `s3/`, `local.rs`: the doors; `settings.rs`, `run.rs`: the command, with its report and recording;
//! - `optimum.rs`: the least that could have been fetched; `history.rs`: what happened over time.

mod arena;
mod error;
mod failure;
mod fetching;
mod filing;
mod history;
pub mod local;
mod memory;
mod named;
mod nbd_source;
mod objects;
pub mod optimum;
mod orders;
mod reading;
mod recording;
mod report;
mod run;
pub mod s3;
mod settings;
mod shelf;
mod source;
mod spill;
mod store;

pub use error::Error;
pub use failure::Failure;
pub use named::{Span, Use};
pub use reading::Lease;
pub use report::Report;
pub use run::run;
pub use settings::Settings;
pub use shelf::{Limits, Shelf};
pub use source::{open_store, patience, said, Listing, Meta, Source, FORMS};
pub use spill::Spill;
pub use store::Store;
