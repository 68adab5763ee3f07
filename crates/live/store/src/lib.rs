//! A cache of objects for readers that know their order, in front of an object store, a folder or a web server.
//!
//! - `shelf/`: what is kept and what is fetched next, without clock and I/O; `orders.rs` (what readers disclosed),
//!   `filing.rs` (what leaves first), `arena.rs` (places in memory);
//! - `source.rs`: where objects come from; `memory.rs`: the bytes; `spill.rs`: the local disk;
//! - `store.rs`: the host, which carries out the shelf's actions on threads;
//! - `optimum.rs`: the least that could have been fetched.

mod arena;
mod failure;
mod fetching;
mod filing;
mod memory;
mod objects;
pub mod optimum;
mod orders;
mod shelf;
mod source;
mod spill;
mod store;

pub use failure::Failure;
pub use orders::{Span, Use};
pub use shelf::{Limits, Shelf};
pub use source::{open_store, patience, said, Listing, Meta, Source, FORMS};
pub use store::{Lease, Store};
