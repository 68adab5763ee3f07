//! `lrp` and `grp`: sequential portions of random length and spacing, which may overlap by coincidence.
//!
//! Source: section 5.2. How they are drawn is not printed. Our guesses: each string begins at a random block; lengths
//! are uniform from 1 to 2 * `portion_mean` - 1, the blocks left out between two portions uniform from 0 to
//! 2 * `gap_mean`; both means are 10. Each string has a stream of random numbers of its own, so that it stays what it
//! is when others are added.

use headstart_types::{stream_seed, KeyError};
use rand_chacha::rand_core::SeedableRng;
use rand_chacha::ChaCha8Rng;
use toml::Table;

use super::strings::{defaults, Builder, Pattern, PatternContext, Strings, LENGTH_MAX, SOURCE};
use crate::workloads::draw::below;
use crate::workloads::keys::Keys;

pub(super) const LOCAL: Pattern = Pattern {
    name: "lrp",
    summary: "each process reads portions of its own, of random length and spacing (distributions are guesses)",
    source: SOURCE,
    defaults: own_defaults,
    build: |keys, context| build(keys, context, false),
};

pub(super) const GLOBAL: Pattern = Pattern {
    name: "grp",
    summary: "the processes read portions together, of random length and spacing (distributions are guesses)",
    source: SOURCE,
    defaults: own_defaults,
    build: |keys, context| build(keys, context, true),
};

fn own_defaults() -> Table {
    defaults([("portion_mean", 10), ("gap_mean", 10)])
}

fn build(keys: &Keys, context: &PatternContext, shared: bool) -> Result<Strings, KeyError> {
    let builder = Builder::new(keys, context, shared, false)?;
    let length_mean = keys.count("portion_mean", 1..=LENGTH_MAX)?;
    let gap_mean = keys.count("gap_mean", 0..=LENGTH_MAX)?;
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
