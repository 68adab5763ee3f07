//! `zipf`: independent requests; the block of rank r is drawn with a probability proportional to 1 / r^alpha.
//!
//! Source: the independent reference model of Breslau, Cao, Fan, Phillips and Shenker, "Web caching and Zipf-like
//! distributions", INFOCOM 1999. Blocks are drawn with Walker's alias table (ACM TOMS 3(3), 1977) in Vose's
//! construction (IEEE TSE 17(9), 1991): exact for every alpha of 0 (uniform) or more, up to rounding of the
//! probabilities to 32 bits. A random permutation (Fisher and Yates) from the seed maps ranks to block numbers, so that
//! popular blocks are not adjacent. The permutation is folded into the table.
//!
//! Cost: one random word, one multiplication and one table look-up per request. Memory: 12 bytes per block, twice that
//! while the table is built; hence the limit of 2^28 blocks.

use headstart_types::{keys, read_keys, stream_seed, KeyError, KeyTable};
use rand_chacha::rand_core::{RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;
use toml::Table;

use super::generator::{Space, REQUESTS_MAX};
use super::stream::{Pattern, Stream, Writes};
use super::{Compute, GeneratorContext, Workload};
use crate::RecordReader;

pub(super) const WORKLOAD: Workload = Workload {
    name: "zipf",
    summary: "independent requests, popularity 1 / rank^alpha, ranks scattered at random",
    source: "Breslau et al., INFOCOM 1999",
    keys: KeyTable::of::<ZipfKeys>(),
    make: open,
};

/// Bounds the memory of the table.
const BLOCKS_MAX: u64 = 1 << 28;
/// Beyond this, all ranks but the first would occur less than once in 10^30 requests.
pub(super) const ALPHA_MAX: f64 = 100.0;

keys! {
    /// Keys of `zipf`.
    struct ZipfKeys {
        /// Number of requests.
        #[schemars(range(min = 1, max = REQUESTS_MAX))]
        requests: u64 = 100_000,
        /// Size of the address space in blocks.
        #[schemars(range(min = 1, max = BLOCKS_MAX))]
        blocks: u64 = 10_000,
        /// The exponent of Zipf's law.
        #[schemars(range(min = 0.0, max = ALPHA_MAX))]
        alpha: f64 = 1.0,
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
    let keys: ZipfKeys = read_keys(keys)?;
    let space = Space::new(keys.blocks, keys.request_blocks, context)?;
    let compute = keys.compute.sampler(context.seed, 0);
    let mut rng = ChaCha8Rng::seed_from_u64(stream_seed(context.seed, "places", 0));
    let ranks = Ranks::new(space.starts() as usize, keys.alpha, &mut rng);
    let writes = Writes::new(keys.write_share, context.seed);
    Ok(Stream::writing(Zipf { space, rng, ranks }, compute, writes, space, keys.requests))
}

/// One column of the alias table.
#[derive(Debug, Clone, Copy)]
struct Slot {
    /// Share of `own` in this column, in units of 2^-32; the rest is `alias`.
    own_share: u32,
    own: u32,
    alias: u32,
}

struct Zipf {
    space: Space,
    rng: ChaCha8Rng,
    ranks: Ranks,
}

impl Pattern for Zipf {
    #[inline]
    fn next(&mut self) -> (u64, u64) {
        (u64::from(self.ranks.draw(&mut self.rng)), self.space.request_blocks)
    }
}

/// Items drawn by Zipf's law, with ranks assigned at random.
pub(super) struct Ranks {
    slots: Vec<Slot>,
}

impl Ranks {
    /// `count` items, with ranks assigned from `rng`. The caller guarantees that `count` is 1 to [`BLOCKS_MAX`], and
    /// `alpha` 0 to [`ALPHA_MAX`].
    pub(super) fn new(count: usize, alpha: f64, rng: &mut ChaCha8Rng) -> Self {
        Self { slots: slots(count, alpha, rng) }
    }

    /// Draws an item.
    #[inline]
    pub(super) fn draw(&self, rng: &mut ChaCha8Rng) -> u32 {
        // One random word: the high half of the product is the column, the low half decides within it.
        let product = u128::from(rng.next_u64()) * self.slots.len() as u128;
        let slot = self.slots[(product >> 64) as usize];
        let within = (product as u64 >> 32) as u32;
        if within < slot.own_share {
            slot.own
        } else {
            slot.alias
        }
    }
}

/// The alias table over `count` ranks, with each rank already replaced by its block. The caller guarantees that `count`
/// is at least 1 and fits in 32 bits.
fn slots(count: usize, alpha: f64, rng: &mut ChaCha8Rng) -> Vec<Slot> {
    // Weight of each rank, in units of one column.
    let mut weights: Vec<f64> = (1..=count).map(|rank| libm::pow(rank as f64, -alpha)).collect();
    let total: f64 = weights.iter().rev().sum();
    let scale = count as f64 / total;
    weights.iter_mut().for_each(|weight| *weight *= scale);

    let blocks = permutation(count, rng);
    let mut slots: Vec<Slot> = blocks.iter().map(|&own| Slot { own_share: u32::MAX, own, alias: own }).collect();
    // Weights fall with the rank: those of at least one column come first.
    let mut light = weights.partition_point(|weight| *weight >= 1.0);
    let mut heavy = 0;
    let heavies = light;
    // A heavy rank that became light by filling another column is itself filled up at once from the next heavy rank.
    let mut settle = |light: usize, heavy: usize, weights: &mut [f64]| {
        slots[light].own_share = (weights[light] * 4_294_967_296.0) as u32;
        slots[light].alias = blocks[heavy];
        weights[heavy] -= 1.0 - weights[light];
    };
    while heavy < heavies && light < count {
        settle(light, heavy, &mut weights);
        light += 1;
        while heavy + 1 < heavies && weights[heavy] < 1.0 {
            settle(heavy, heavy + 1, &mut weights);
            heavy += 1;
        }
    }
    slots
}

/// A random order of `0..count`.
fn permutation(count: usize, rng: &mut ChaCha8Rng) -> Vec<u32> {
    let mut order: Vec<u32> = (0..count as u32).collect();
    for last in (1..count).rev() {
        let other = (u128::from(rng.next_u64()) * (last as u128 + 1)) >> 64;
        order.swap(last, other as usize);
    }
    order
}
