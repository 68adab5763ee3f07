//! `lrp` and `grp`: sequential portions of random length and spacing, which may overlap by coincidence.
//!
//! Source: section 5.2, which does not give the distributions. Our guesses: each string begins at a random block;
//! lengths are uniform from 1 to 2 * `portion_mean` - 1, the blocks skipped between two portions uniform from 0 to 2 *
//! `gap_mean`; both means are 10. Each string has its own stream of random numbers, so that adding strings does not
//! change the others.

use headstart_types::{keys, read_keys, stream_seed, KeyError, KeyTable};
use rand_chacha::rand_core::SeedableRng;
use rand_chacha::ChaCha8Rng;
use toml::Table;

use super::strings::{Builder, Pattern, PatternContext, Strings, BLOCKS_MAX, LENGTH_MAX, READS_MAX, SOURCE};
use crate::workloads::draw::below;

pub(super) const LOCAL: Pattern = Pattern {
    name: "lrp",
    summary: "each process reads its own portions, of random length and spacing (distributions are guesses)",
    source: SOURCE,
    keys: KeyTable::of::<RandomKeys>(),
    build: |keys, context| build(keys, context, false),
};

pub(super) const GLOBAL: Pattern = Pattern {
    name: "grp",
    summary: "the processes read portions together, of random length and spacing (distributions are guesses)",
    source: SOURCE,
    keys: KeyTable::of::<RandomKeys>(),
    build: |keys, context| build(keys, context, true),
};

keys! {
    /// Keys of `lrp` and `grp`.
    struct RandomKeys {
        /// Size of the file.
        #[schemars(range(min = 1, max = BLOCKS_MAX))]
        blocks: u32 = 2000,
        /// Number of reads of all processes together.
        #[schemars(range(min = 1, max = READS_MAX))]
        reads: u32 = 2000,
        /// Mean number of blocks per portion.
        #[schemars(range(min = 1, max = LENGTH_MAX))]
        portion_mean: u64 = 10,
        /// Mean number of blocks skipped between two portions.
        #[schemars(range(max = LENGTH_MAX))]
        gap_mean: u64 = 10,
    }
}

fn build(keys: Table, context: &PatternContext, shared: bool) -> Result<Strings, KeyError> {
    let RandomKeys { blocks, reads, portion_mean: length_mean, gap_mean } = read_keys(keys)?;
    let builder = Builder::new((blocks, reads), context, shared, false)?;
    let file_blocks = u64::from(builder.strings.file_blocks);
    Ok(builder.build(|string| {
        let mut rng = ChaCha8Rng::seed_from_u64(stream_seed(context.seed, "portions", string.into()));
        let mut at = below(file_blocks, &mut rng);
        move || {
            let (first, length) = (at, 1 + below(2 * length_mean - 1, &mut rng));
            at = (first + length + below(2 * gap_mean + 1, &mut rng)) % file_blocks;
            (first, length)
        }
    }))
}
