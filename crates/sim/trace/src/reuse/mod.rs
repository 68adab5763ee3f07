//! Stack distances of references, exactly or from a sample.
//!
//! The stack distance of a reference is the number of distinct blocks referenced since the last reference to the same
//! block, including the block itself: an LRU cache of at least that many blocks hits, a smaller one misses (Mattson,
//! Gecsei, Slutz and Traiger, "Evaluation techniques for storage hierarchies", IBM Systems Journal 9(2), 1970). One
//! pass thus gives the misses for every cache size. [`LruStack`] computes a distance in logarithmic time; [`Shards`]
//! samples the blocks with small hashes and scales the result (Waldspurger, Park, Garthwaite and Ahmad, "Efficient MRC
//! construction with SHARDS", FAST 2015).

mod marks;
mod shards;
mod stack;

pub use shards::{hash, Sample, Shards};
pub use stack::LruStack;

/// A block as a trace names it: the file, or zero, and the block within the file.
pub type Key = (u32, u64);
