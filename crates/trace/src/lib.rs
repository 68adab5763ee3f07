//! Traces: any format becomes one stream of [`Record`]s in bytes and nanoseconds, together with a declaration of
//! what the trace carries ([`Carries`]), so that a policy that needs what is missing can say so.
//!
//! - [`open`] reads a trace file (plain, gzip, bzip2, xz or zstd), format named or recognised; the formats are the rows
//!   of [`FORMATS`], one file each in `formats/`.
//! - [`generate`] makes a synthetic workload; the generators are the rows of [`WORKLOADS`].
//! - [`patterns`] are what the processes of a parallel program read, each one its own string or all a shared one.
//! - [`hints`] are recordings of what a command reads, which `headstart run` prefetches.
//! - [`reuse`] finds how far back each block was referenced before.
//! - [`info()`] counts what a stream holds, [`convert()`] writes it as CSV or oracleGeneral.
//!
//! Everything streams: memory is one batch and one buffer, whatever the length. Turning addresses into dense block
//! numbers, placing files on disks and deciding on think times is the simulator's work, not done here.

mod analysis;
mod at_once;
mod checks;
mod clock;
mod convert;
mod error;
mod formats;
mod fuzz;
mod hash;
pub mod hints;
mod info;
mod limits;
mod lines;
mod nearest;
mod number;
mod order;
mod packed;
pub mod patterns;
mod record;
mod registry;
pub mod reuse;
mod selected;
mod source;
mod watched;
mod workloads;

pub use analysis::{Analysis, Popularity, Reuse, Window};
pub use at_once::AtOnce;
pub use convert::{convert, remove_pending_files, ConvertSummary, TARGETS};
pub use error::{Place, TraceError};
#[doc(hidden)]
pub use formats::hints::recording_reader;
pub use fuzz::{fuzz_formats, fuzz_parse};
pub use info::{info, Info};
pub use limits::{check_distinct, DISTINCT_BLOCKS_MAX};
pub use record::{Carries, FileEntry, ProcessEntry, Record, RecordReader, BATCH};
pub use registry::{open, open_with, Evidence, Format, FORMATS};
pub use selected::{selected, Selection};
pub use source::{sha256_file, Source};
pub use watched::{watched, Watch};
pub use workloads::{generate, Compute, ComputeSampler, GeneratorContext, Workload, WORKLOADS};
