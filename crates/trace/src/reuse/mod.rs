//! How far back a block was referenced before: stack distances, exactly or from a sample.
//!
//! The stack distance of a reference is the number of distinct blocks referenced since the last reference of the same
//! block, itself included: an LRU cache of that many blocks or more hits, a smaller one misses (Mattson, Gecsei, Slutz and
//! Traiger, "Evaluation techniques for storage hierarchies", IBM Systems Journal 9(2), 1970). One pass thus gives the misses of
//! every cache size. [`LruStack`] finds a distance in logarithmic time; [`Shards`] keeps the blocks whose hash is small, and scales
//! (Waldspurger, Park, Garthwaite and Ahmad, "Efficient MRC construction with SHARDS", FAST 2015).

mod marks;
mod shards;
mod stack;

pub use shards::{hash, Sample, Shards};
pub use stack::LruStack;

/// A block as a trace names it: its file, or zero, and which of the file's blocks it is.
pub type Key = (u32, u64);
