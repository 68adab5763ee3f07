//! Block placement: dense numbers for the blocks of files, and the disk and sector of each block.
//!
//! [`Places`] is the machine's view; a [`Placing`] is the rule by which a [`Universe`] of blocks grows.

mod ffs;
mod numbering;
mod pages;
mod placement;
mod places;
mod placing;
mod room;

pub use ffs::{Ffs, FfsKeys, FileSize, Opens, METADATA};
pub use numbering::{Fresh, Universe};
pub use pages::Pages;
pub use placement::{placement_schema, Addresses, Placement, DEFAULT_CHUNK};
pub use places::Places;
pub use placing::{Contents, Placing};
pub use room::Disks;
