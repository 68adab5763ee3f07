//! `random`: requests at places drawn uniformly and independently, wholly within the blocks.

use headstart_types::{stream_seed, KeyError};
use rand_chacha::rand_core::{RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;
use toml::{Table, Value};

use super::keys::{defaults, Keys, Space};
use super::stream::{Pattern, Stream};
use super::{GeneratorContext, Workload};
use crate::RecordReader;

pub(super) const WORKLOAD: Workload = Workload {
    name: "random",
    summary: "uniform random places",
    source: "headstart",
    defaults: || defaults([("requests", Value::Integer(100_000)), ("blocks", Value::Integer(10_000))], "0s"),
    open,
};

fn open(given: Table, context: &GeneratorContext) -> Result<Box<dyn RecordReader>, KeyError> {
    let keys = Keys::new(given, (WORKLOAD.defaults)())?;
    let space = keys.space(u64::MAX, context)?;
    let compute = keys.compute()?.sampler(context.seed, 0);
    let rng = ChaCha8Rng::seed_from_u64(stream_seed(context.seed, "places", 0));
    let pattern = Random { space, rng };
    Ok(Stream::boxed(pattern, compute, space, keys.requests()?))
}

struct Random {
    space: Space,
    rng: ChaCha8Rng,
}

impl Pattern for Random {
    #[inline]
    fn next(&mut self) -> (u64, u64) {
        // Multiply and keep the high half; with fewer than 2^32 places the bias is below 2^-32.
        let product = u128::from(self.rng.next_u64()) * u128::from(self.space.starts());
        ((product >> 64) as u64, self.space.request_blocks)
    }
}
