//! `sequential`: all blocks in order, once or several times.

use headstart_types::{keys, read_keys, KeyError, KeyTable};
use toml::Table;

use super::generator::{Space, BLOCKS_MAX, PASSES_MAX};
use super::scan::Scan;
use super::stream::Stream;
use super::{Compute, GeneratorContext, Workload};
use crate::RecordReader;

pub(super) const WORKLOAD: Workload = Workload {
    name: "sequential",
    summary: "all blocks in order, `passes` times",
    source: "headstart",
    keys: KeyTable::of::<SequentialKeys>(),
    make: open,
};

keys! {
    /// Keys of `sequential`.
    struct SequentialKeys {
        /// Size of the address space in blocks.
        #[schemars(range(min = 1, max = BLOCKS_MAX))]
        blocks: u64 = 10_000,
        /// Number of times that all blocks are read.
        #[schemars(range(min = 1, max = PASSES_MAX))]
        passes: u64 = 1,
        /// Number of blocks per request, at most `blocks`.
        #[schemars(range(min = 1))]
        request_blocks: u64 = 1,
        /// The think time after each request.
        compute: Compute = Compute::NONE,
    }
}

fn open(keys: Table, context: &GeneratorContext) -> Result<Box<dyn RecordReader>, KeyError> {
    let keys: SequentialKeys = read_keys(keys)?;
    let space = Space::new(keys.blocks, keys.request_blocks, context)?;
    let compute = keys.compute.sampler(context.seed, 0);
    let requests = keys.passes * Scan::pass_requests(space);
    Ok(Stream::boxed(Scan::new(space), compute, space, requests))
}
