//! Workload generators: one file and one row each. Same keys, same seed, same records on every machine.
//!
//! A key that all know: `compute`, the think time after each request ("0s", "1ms", or "exp:1ms" for an exponential of
//! that mean). Those without files have `blocks`, the size of the address space in blocks, and most of them
//! `request_blocks`, the size of a request; their addresses are bytes: block number times the block size of the run.
//! Those with files count in bytes throughout, from the start of each file.

mod closed;
mod compute;
mod draw;
mod files;
mod keys;
mod loop_;
mod pattern;
mod random;
mod scan;
mod sequential;
mod stream;
mod synth;
mod zipf;

pub use compute::{Compute, ComputeSampler};
pub(crate) use draw::below;
pub(crate) use keys::Keys;

use headstart_types::KeyError;

use crate::RecordReader;

/// What a generator needs beside its keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GeneratorContext {
    /// Seed of everything random in the workload.
    pub seed: u64,
    /// Size of a block in bytes, more than zero.
    pub block_bytes: u64,
}

impl GeneratorContext {
    /// Refuses spaces of `blocks` blocks that have no addresses.
    fn fits(&self, blocks: u64) -> Result<(), KeyError> {
        if blocks.checked_mul(self.block_bytes).is_some() {
            return Ok(());
        }
        let problem = format!("{blocks} blocks of {} bytes are too much", self.block_bytes);
        Err(KeyError::new("blocks", problem, "below 2^64 bytes in all"))
    }
}

/// Starts a generator.
type Open = fn(keys: toml::Table, context: &GeneratorContext) -> Result<Box<dyn RecordReader>, KeyError>;

/// A workload generator.
pub struct Workload {
    /// The name in a scenario.
    pub name: &'static str,
    /// What it asks for, in a few words.
    pub summary: &'static str,
    /// Where it comes from.
    pub source: &'static str,
    /// Every key with its default.
    pub defaults: fn() -> toml::Table,
    /// Starts generating.
    pub open: Open,
}

/// All generators.
pub static WORKLOADS: &[Workload] = &[
    synth::WORKLOAD,
    sequential::WORKLOAD,
    loop_::WORKLOAD,
    random::WORKLOAD,
    zipf::WORKLOAD,
    files::WORKLOAD,
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
/// No such generator, a key that it does not have, or a value outside of what the error says is allowed.
pub fn generate(name: &str, keys: toml::Table, context: &GeneratorContext) -> Result<Box<dyn RecordReader>, KeyError> {
    if context.block_bytes == 0 {
        return Err(KeyError::new("block_size", "is 0", "1 byte or more"));
    }
    let unknown = || KeyError::unknown("generator", "generator", name, WORKLOADS.iter().map(|row| row.name));
    let row = WORKLOADS.iter().find(|row| row.name == name).ok_or_else(unknown)?;
    (row.open)(keys, context)
}
