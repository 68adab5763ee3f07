//! Traces: every format becomes one stream of [`Record`]s in bytes and nanoseconds. [`Carries`] declares which fields
//! the trace carries, so that a policy can refuse a trace that lacks what it needs.
//!
//! - [`open`] reads a trace file (plain, gzip, bzip2, xz or zstd) in a named or detected format; the formats are the
//!   rows of [`FORMATS`], one file each in `formats/`.
//! - [`generate`] makes a synthetic workload; the generators are the rows of [`WORKLOADS`].
//! - [`patterns`] are the access patterns of parallel programs; each process has its own string of references, or all
//!   share one.
//! - [`hints`] are recordings of what a command reads, which `headstart run` prefetches.
//! - [`reuse`] computes reuse distances of blocks.
//! - [`info()`] summarises a stream; [`convert()`] writes it as CSV or oracleGeneral.
//!
//! Everything streams: memory is one batch and one buffer, regardless of the trace's length. The simulator, not this
//! crate, maps addresses to dense block numbers, places files on disks and chooses think times.

mod analysis;
mod checks;
mod clock;
mod concurrency;
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
pub use concurrency::ConcurrencyStats;
pub use convert::{convert, remove_pending_files, ConvertSummary, TARGETS};
pub use error::{ErrorPosition, TraceError};
#[doc(hidden)]
pub use formats::hints::recording_reader;
pub use formats::FORMATS;
pub use fuzz::{fuzz_formats, fuzz_parse};
pub use info::{info, Info};
pub use limits::{check_distinct, DISTINCT_BLOCKS_MAX};
pub use record::{Carries, FileEntry, ProcessEntry, Record, RecordReader, BATCH};
pub use registry::{open, open_with, Evidence, Format};
pub use selected::{selected, OneOrMore, Select, Selection};
pub use source::{sha256_file, Source};
pub use watched::{watched, Watch};
pub use workloads::{generate, Compute, ComputeSampler, GeneratorContext, Workload, WORKLOADS};
