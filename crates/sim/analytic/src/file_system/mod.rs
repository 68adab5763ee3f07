//! The time that a 4.4BSD file system takes to read files, in equations.
//!
//! E. Shriver, C. Small and K. A. Smith, "Why does file system prefetching work?", USENIX 1999, section 4. A file is
//! read from start to end by requests of one size; n streams concurrently read one file each. The response time of a
//! file is the sum of the costs of its disk requests ([`Disk`]) and of the file system's own work. The result keeps the
//! parts separate: overhead, seek, rotation, transfer, file system, and what overlaps with think times.
//!
//! We *fitted* what the paper leaves open to the columns "computed" of its Tables 3, 4 and 5: which seeks count, and
//! that the arm's distance follows Beta(1, n + 1) and Beta(n - 1, 3) (`seeks.rs`); that two system calls are charged
//! for each disk request and the copy of one block for the whole file ([`Form::Tables`]); that a single stream pays no
//! seek for its data; and 7 requests for 128 KB. The tests in `tables.rs` check the form against the printed numbers.
//! It shows how the authors computed, not how disks behave: for that, compare with a simulation.
//!
//! Our additions: open arrivals (`arrivals.rs`), traces (`traced`), think times and their overlap (`overlap.rs`), costs
//! charged request by request ([`Form::Bsd`]), read-ahead limited by the media rate, double and triple indirect blocks,
//! flash.
//!
//! Times are nanoseconds in floating point. Cost of an evaluation: a few divisions per kind of disk request, below a
//! microsecond for files of some clusters; no allocation once a number of streams has been seen.

mod advice;
mod arrivals;
mod bsd;
mod disk_costs;
mod equations;
mod overlap;
mod parameters;
mod requests;
mod seeks;
mod sheet;
#[cfg(test)]
mod tables;
mod traced;

pub use advice::{advise, Advice, KeyValues};
pub use arrivals::{open_response, Arrivals, OpenResponse, Timing};
pub use disk_costs::Cost;
pub use equations::{disk_time, response, Response, TERMS};
pub use parameters::{Disk, FileSystem, Form, Parameters, Prefetch, Scheduler, Work};
pub use seeks::{SeekCurve, Seeks};
pub use sheet::{Choices, Column, Sheet, Unit, FIELDS};
pub use traced::{Geometry, TracedDisk, Zone};
