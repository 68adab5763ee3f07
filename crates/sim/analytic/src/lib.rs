//! Bounds and models in closed form, for comparison with simulations.

mod bounds;
pub mod competitive;
pub mod file_system;

pub use bounds::{elapsed_lower_bound, min_misses, DiskBound, LowerBound, Work};
