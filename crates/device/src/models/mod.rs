//! Device models: one file each for what is simple, and the parts of the mechanical drive.

pub mod flash;
pub mod flash_keys;
pub mod geometry;
pub mod mechanical;
pub mod profile;
pub mod rotation;
pub mod seek;
pub mod stream;
pub mod uniform;
