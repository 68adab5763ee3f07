//! `random`: requests at positions drawn uniformly and independently, entirely within the blocks.

use headstart_types::{keys, read_keys, stream_seed, KeyError, KeyTable};
use rand_chacha::rand_core::{RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;
use toml::Table;

use super::generator::{Space, BLOCKS_MAX, REQUESTS_MAX};
use super::stream::{Pattern, Stream, Writes};
use super::{Compute, GeneratorContext, Workload};
use crate::RecordReader;

pub(super) const WORKLOAD: Workload = Workload {
    name: "random",
    summary: "uniform random positions",
    source: "headstart",
    keys: KeyTable::of::<RandomKeys>(),
    make: open,
};

keys! {
    /// Keys of `random`.
    struct RandomKeys {
        /// Number of requests.
        #[schemars(range(min = 1, max = REQUESTS_MAX))]
        requests: u64 = 100_000,
        /// Size of the address space in blocks.
        #[schemars(range(min = 1, max = BLOCKS_MAX))]
        blocks: u64 = 10_000,
        /// Number of blocks per request, at most `blocks`.
        #[schemars(range(min = 1))]
        request_blocks: u64 = 1,
        /// The think time after each request.
        compute: Compute = Compute::NONE,
        /// Share of writes among the requests. Each request is drawn independently.
        #[schemars(range(min = 0.0, max = 1.0))]
        write_share: f64 = 0.0,
    }
}

fn open(keys: Table, context: &GeneratorContext) -> Result<Box<dyn RecordReader>, KeyError> {
    let keys: RandomKeys = read_keys(keys)?;
    let space = Space::new(keys.blocks, keys.request_blocks, context)?;
    let compute = keys.compute.sampler(context.seed, 0);
    let rng = ChaCha8Rng::seed_from_u64(stream_seed(context.seed, "places", 0));
    let writes = Writes::new(keys.write_share, context.seed);
    Ok(Stream::writing(Random { space, rng }, compute, writes, space, keys.requests))
}

struct Random {
    space: Space,
    rng: ChaCha8Rng,
}

impl Pattern for Random {
    #[inline]
    fn next(&mut self) -> (u64, u64) {
        // Multiply and keep the high half; with fewer than 2^32 positions the bias is below 2^-32.
        let product = u128::from(self.rng.next_u64()) * u128::from(self.space.starts());
        ((product >> 64) as u64, self.space.request_blocks)
    }
}
