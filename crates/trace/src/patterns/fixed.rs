//! `lfp` and `gfp`: sequential portions of regular length and spacing.
//!
//! Source: section 5.2. The stride is the distance from a portion's last block to the first block of the next
//! (section 2), so that 1 would leave nothing out. Our guesses: portions of 10 blocks, as many as the processes read
//! between two synchronisations, and a stride of 21, with which 2000 reads in all come to each of the 2000 blocks
//! once (the file is a ring, and three goes round it meet the blocks left out before).
//!
//! The local portions lie "at different places in the file": process i begins `apart` * i blocks into it. 0, the
//! default, stands for an even share of the file and one block more (a guess): with an even share alone all of 20
//! processes would begin on the same one of 20 disks.

use headstart_types::KeyError;

use super::strings::{defaults, Builder, Pattern, PatternContext, Strings, LENGTH_MAX, SOURCE};
use crate::workloads::keys::Keys;

const PORTION: (&str, i64) = ("portion", 10);
const STRIDE: (&str, i64) = ("stride", 21);

pub(super) const LOCAL: Pattern = Pattern {
    name: "lfp",
    summary: "each process reads portions of its own, of fixed length and spacing (lengths and places are guesses)",
    source: SOURCE,
    defaults: || defaults([PORTION, STRIDE, ("apart", 0)]),
    build: |keys, context| {
        let apart = keys.count("apart", 0..=LENGTH_MAX)?;
        build(keys, context, false, apart)
    },
};

pub(super) const GLOBAL: Pattern = Pattern {
    name: "gfp",
    summary: "the processes read portions together, of fixed length and spacing (lengths are guesses)",
    source: SOURCE,
    defaults: || defaults([PORTION, STRIDE]),
    build: |keys, context| build(keys, context, true, 0),
};

fn build(keys: &Keys, context: &PatternContext, shared: bool, apart: u64) -> Result<Strings, KeyError> {
    let builder = Builder::new(keys, context, shared, true)?;
    let length = keys.count("portion", 1..=LENGTH_MAX)?;
    let spacing = length + keys.count("stride", 1..=LENGTH_MAX)? - 1;
    let share = u64::from(builder.strings.file_blocks / context.processes) + 1;
    let apart = if apart == 0 { share } else { apart };
    Ok(builder.build(|string| {
        let firsts = (u64::from(string) * apart..).step_by(spacing as usize);
        let mut portions = firsts.map(move |first| (first, length));
        move || portions.next().expect("without end")
    }))
}
