//! `loop`: all blocks in order, repeatedly, for a given number of requests. The worst case of LRU.

use headstart_types::{keys, read_keys, KeyError, KeyTable};
use toml::Table;

use super::generator::{Space, BLOCKS_MAX, REQUESTS_MAX};
use super::scan::Scan;
use super::stream::Stream;
use super::{Compute, GeneratorContext, Workload};
use crate::RecordReader;

pub(super) const WORKLOAD: Workload = Workload {
    name: "loop",
    summary: "all blocks in order, repeatedly, for `requests` requests",
    source: "headstart",
    keys: KeyTable::of::<LoopKeys>(),
    make: open,
};

keys! {
    /// Keys of `loop`.
    struct LoopKeys {
        /// Size of the address space in blocks.
        #[schemars(range(min = 1, max = BLOCKS_MAX))]
        blocks: u64 = 2000,
        /// Number of requests.
        #[schemars(range(min = 1, max = REQUESTS_MAX))]
        requests: u64 = 100_000,
        /// Number of blocks per request, at most `blocks`.
        #[schemars(range(min = 1))]
        request_blocks: u64 = 1,
        /// The think time after each request.
        compute: Compute = Compute::NONE,
    }
}

fn open(keys: Table, context: &GeneratorContext) -> Result<Box<dyn RecordReader>, KeyError> {
    let keys: LoopKeys = read_keys(keys)?;
    let space = Space::new(keys.blocks, keys.request_blocks, context)?;
    let compute = keys.compute.sampler(context.seed, 0);
    Ok(Stream::boxed(Scan::new(space), compute, space, keys.requests))
}
