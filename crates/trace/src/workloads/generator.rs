//! What every generator is: a row of the registry, and what it needs beside its keys.

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
    pub(super) fn fits(&self, blocks: u64) -> Result<(), KeyError> {
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
