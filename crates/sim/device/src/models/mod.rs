//! Device models: one file each for the simple ones, and the parts of the mechanical drive.

mod arm;
mod bus;
pub mod flash;
mod flash_blocks;
mod flash_channels;
mod flash_keys;
pub mod geometry;
pub mod mechanical;
pub mod object_store;
mod overhead;
mod parameters;
pub mod profile;
pub mod rotation;
pub mod seek;
mod segmented;
mod segments;
pub mod shipped;
mod single;
mod sparing;
pub mod stream;
pub mod uniform;
