//! `synth`: sequential passes over a file that does not fit in the cache, with exponential think times.
//!
//! Source: Kimbrel, Tomkins, Patterson, Bershad, Cao, Felten, Gibson, Karlin and Li, "A trace-driven comparison of
//! algorithms for parallel prefetching and caching", OSDI 1996, section 3.1 and Table 3: 2000 sequential blocks of 8
//! KB, 50 times, think times with mean 1 ms. The paper calls these Poisson, which we read as the gaps of a Poisson
//! process: exponential. In Table 3 they sum to 99.9 s; a scenario scales to that with `compute_total`.

use headstart_types::{keys, read_keys, KeyError, KeyTable, Nanos};
use toml::Table;

use super::generator::{Space, BLOCKS_MAX, PASSES_MAX};
use super::scan::Scan;
use super::stream::Stream;
use super::{Compute, GeneratorContext, Workload};
use crate::RecordReader;

pub(super) const WORKLOAD: Workload = Workload {
    name: "synth",
    summary: "50 sequential passes over 2000 blocks, exponential think times with mean 1 ms",
    source: "Kimbrel et al., OSDI 1996, Table 3",
    keys: KeyTable::of::<SynthKeys>(),
    make: open,
};

keys! {
    /// Keys of `synth`.
    struct SynthKeys {
        /// Size of the address space in blocks.
        #[schemars(range(min = 1, max = BLOCKS_MAX))]
        blocks: u64 = 2000,
        /// Number of times that all blocks are read.
        #[schemars(range(min = 1, max = PASSES_MAX))]
        passes: u64 = 50,
        /// Number of blocks per request, at most `blocks`.
        #[schemars(range(min = 1))]
        request_blocks: u64 = 1,
        /// The think time after each request.
        compute: Compute = Compute::Exponential(Nanos::from_millis(1)),
    }
}

fn open(keys: Table, context: &GeneratorContext) -> Result<Box<dyn RecordReader>, KeyError> {
    let keys: SynthKeys = read_keys(keys)?;
    let space = Space::new(keys.blocks, keys.request_blocks, context)?;
    let compute = keys.compute.sampler(context.seed, 0);
    let requests = keys.passes * Scan::pass_requests(space);
    Ok(Stream::boxed(Scan::new(space), compute, space, requests))
}
