//! From a scenario's `[workload]` to chunks of references over densely numbered blocks.
//!
//! [`References`] pulls records from a trace or generator, cuts them into blocks, gives each block a number and a
//! place on a disk on first sight (`Universe`), and works out think times. It streams: memory is one batch and
//! what is kept per distinct block. What must be known before the first reference (sums, counts, file sizes) is
//! found by a first pass over the same records, made only when asked for (`survey`).

mod cutting;
mod ffs;
mod filling;
mod fitting;
mod inline;
mod numbering;
mod patterned;
mod places;
mod placing;
mod records;
mod references;
mod room;
mod shared;
mod survey;
mod thinking;

pub use cutting::{Cutter, RecordedThink};
pub use ffs::group_header;
pub use places::Places;
pub use records::{Opened, Records};
pub use references::{References, KNOWN_REFERENCES_MAX};
pub use shared::Traces;
pub use thinking::Thinker;
