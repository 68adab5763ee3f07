//! Workload generators: one file and one row each. The same keys and seed give the same records on every machine.
//!
//! All but the rebuilt traces of kimbrel96 have the key `compute`, the think time after each request ("0s", "1ms", or
//! "exp:1ms" for an exponential with that mean). Generators without files have `blocks`, the size of the address space
//! in blocks, and most of them `request_blocks`, the size of a request; their addresses are bytes: block number times
//! the block size of the run. Generators with files count in bytes throughout, from the start of each file.

mod closed;
mod compute;
pub(crate) mod draw;
mod files;
mod generator;
mod kimbrel96;
mod loop_;
mod pattern;
mod random;
mod runs;
mod scan;
mod sequential;
mod stream;
mod synth;
mod zipf;

pub use compute::{Compute, ComputeSampler};
pub use generator::{GeneratorContext, Workload};

use headstart_types::KeyError;

use crate::RecordReader;

pub static WORKLOADS: &[Workload] = &[
    synth::WORKLOAD,
    kimbrel96::workload::<0>(),
    kimbrel96::workload::<1>(),
    kimbrel96::workload::<2>(),
    kimbrel96::workload::<3>(),
    kimbrel96::workload::<4>(),
    kimbrel96::workload::<5>(),
    kimbrel96::workload::<6>(),
    kimbrel96::workload::<7>(),
    kimbrel96::workload::<8>(),
    sequential::WORKLOAD,
    loop_::WORKLOAD,
    random::WORKLOAD,
    zipf::WORKLOAD,
    files::WORKLOAD,
    runs::WORKLOAD,
    pattern::workload::<0>(),
    pattern::workload::<1>(),
    pattern::workload::<2>(),
    pattern::workload::<3>(),
    pattern::workload::<4>(),
    pattern::workload::<5>(),
    closed::microbenchmark::<0>(),
    closed::microbenchmark::<1>(),
    closed::microbenchmark::<2>(),
    closed::microbenchmark::<3>(),
    closed::CP,
    closed::DIFF,
    closed::KERNEL_BUILD,
    closed::TPC_H,
    closed::MEDIA_SERVER,
    closed::INDEX_SEARCH,
];

/// Starts the generator `name`. Keys that are not given have their defaults.
///
/// # Errors
/// An unknown generator or key, or a value out of its range.
pub fn generate(name: &str, keys: toml::Table, context: &GeneratorContext) -> Result<Box<dyn RecordReader>, KeyError> {
    if context.block_bytes == 0 {
        return Err(KeyError::new("block_size", "is 0", "1 byte or more"));
    }
    let unknown = || KeyError::unknown("generator", "generator", name, WORKLOADS.iter().map(|row| row.name));
    let row = WORKLOADS.iter().find(|row| row.name == name).ok_or_else(unknown)?;
    row.open(keys, context)
}
