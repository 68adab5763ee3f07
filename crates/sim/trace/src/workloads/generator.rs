//! Common parts of the generators: the registry row, and their input besides the keys.

use headstart_types::{as_text, property_names, within_range, Bytes, KeyError, KeyTable, Nanos};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toml::Table;

use crate::RecordReader;

/// Block numbers and counts fit in 32 bits everywhere in headstart.
pub(super) const BLOCKS_MAX: u64 = u32::MAX as u64 - 1;
/// More requests than this would take weeks.
pub(super) const REQUESTS_MAX: u64 = 1_000_000_000_000;
/// More passes than this would take weeks.
pub(super) const PASSES_MAX: u64 = 1_000_000_000;

/// The size of a file, or of a part of one, from 1 byte. Bounded by the largest file systems of the time, so that the
/// sum of all files stays below 2^64.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(extend("x-min" = "1B", "x-max" = "512GiB"))]
pub(super) struct Size(#[serde(serialize_with = "as_text")] pub Bytes);

impl Size {
    pub const fn bytes(bytes: u64) -> Self {
        Self(Bytes(bytes))
    }
}

/// A time of up to 1000 hours: longer ones could overflow when added up.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(extend("x-max" = "1000h"))]
pub(super) struct Pause(#[serde(serialize_with = "as_text")] pub Nanos);

/// The blocks that a generator's requests cover.
#[derive(Debug, Clone, Copy)]
pub(super) struct Space {
    /// Number of blocks.
    pub(super) blocks: u64,
    /// Blocks of a request, at most `blocks`.
    pub(super) request_blocks: u64,
    pub(super) block_bytes: u64,
}

impl Space {
    /// From the keys `blocks` and `request_blocks`, which must be consistent and addressable.
    pub(super) fn new(blocks: u64, request_blocks: u64, context: &GeneratorContext) -> Result<Self, KeyError> {
        within_range("request_blocks", request_blocks, 1..=blocks)?;
        context.fits(blocks)?;
        Ok(Self { blocks, request_blocks, block_bytes: context.block_bytes })
    }

    /// Number of blocks at which a request can start and still lie within the space.
    pub(super) fn starts(&self) -> u64 {
        self.blocks - self.request_blocks + 1
    }
}

/// The input of a generator besides its keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GeneratorContext {
    /// Seed for all random draws of the workload.
    pub seed: u64,
    /// Block size in bytes, more than zero.
    pub block_bytes: u64,
}

impl GeneratorContext {
    /// Refuses a space whose `blocks` blocks exceed the address range.
    pub(super) fn fits(&self, blocks: u64) -> Result<(), KeyError> {
        if blocks.checked_mul(self.block_bytes).is_some() {
            return Ok(());
        }
        let problem = format!("{blocks} blocks of {} are too many", headstart_types::Bytes(self.block_bytes));
        Err(KeyError::new("blocks", problem, "below 2^64 bytes in all"))
    }
}

/// Starts a generator from a complete set of keys.
type Make = fn(keys: Table, context: &GeneratorContext) -> Result<Box<dyn RecordReader>, KeyError>;

pub struct Workload {
    /// The name in a scenario.
    pub name: &'static str,
    /// A short description.
    pub summary: &'static str,
    /// The publication, or "headstart".
    pub source: &'static str,
    pub keys: KeyTable,
    pub(super) make: Make,
}

impl Workload {
    /// Starts generating. Keys that are not given have their defaults.
    ///
    /// # Errors
    /// An unknown key, or a value out of its range.
    pub fn open(&self, given: Table, context: &GeneratorContext) -> Result<Box<dyn RecordReader>, KeyError> {
        let schema = self.keys.schema();
        let known = property_names(&schema);
        if let Some(key) = given.keys().find(|key| !known.contains(&key.as_str())) {
            return Err(KeyError::unknown_key(key, known.into_iter()));
        }
        let mut keys = self.keys.defaults();
        keys.extend(given);
        (self.make)(keys, context)
    }
}
