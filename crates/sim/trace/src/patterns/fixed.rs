//! `lfp` and `gfp`: sequential portions of regular length and spacing.
//!
//! Source: section 5.2. The stride is the distance from a portion's last block to the first block of the next (section
//! 2), so a stride of 1 would skip nothing. Our guesses: portions of 10 blocks, as many as the processes read between
//! two synchronisations, and a stride of 21, with which 2000 reads access each of the 2000 blocks once (the file is a
//! ring, and three rounds cover the skipped blocks).
//!
//! The local portions lie "at different places in the file": process i begins `apart` * i blocks into it. The default
//! of 0 stands for an even share of the file plus one block (a guess): with an even share alone, all 20 processes would
//! begin on the same one of 20 disks.

use headstart_types::{keys, read_keys, KeyTable};

use super::strings::{Builder, Pattern, PatternContext, Strings, BLOCKS_MAX, LENGTH_MAX, READS_MAX, SOURCE};

pub(super) const LOCAL: Pattern = Pattern {
    name: "lfp",
    summary: "each process reads its own portions, of fixed length and spacing (lengths and positions are guesses)",
    source: SOURCE,
    keys: KeyTable::of::<LfpKeys>(),
    build: |keys, context| {
        let LfpKeys { blocks, reads, portion, stride, apart } = read_keys(keys)?;
        let builder = Builder::new((blocks, reads), context, false, true)?;
        Ok(build(builder, context, portion, stride, apart))
    },
};

pub(super) const GLOBAL: Pattern = Pattern {
    name: "gfp",
    summary: "the processes read portions together, of fixed length and spacing (lengths are guesses)",
    source: SOURCE,
    keys: KeyTable::of::<GfpKeys>(),
    build: |keys, context| {
        let GfpKeys { blocks, reads, portion, stride } = read_keys(keys)?;
        Ok(build(Builder::new((blocks, reads), context, true, true)?, context, portion, stride, 0))
    },
};

keys! {
    /// Keys of `lfp`.
    struct LfpKeys {
        /// Size of the file.
        #[schemars(range(min = 1, max = BLOCKS_MAX))]
        blocks: u32 = 2000,
        /// Number of reads of all processes together.
        #[schemars(range(min = 1, max = READS_MAX))]
        reads: u32 = 2000,
        /// Number of blocks per portion.
        #[schemars(range(min = 1, max = LENGTH_MAX))]
        portion: u64 = 10,
        /// Distance from a portion's last block to the first block of the next portion.
        #[schemars(range(min = 1, max = LENGTH_MAX))]
        stride: u64 = 21,
        /// Process i begins i times this many blocks into the file. 0: the file's blocks divided by the number of
        /// processes, plus one.
        #[schemars(range(max = LENGTH_MAX))]
        apart: u64 = 0,
    }
}

keys! {
    /// Keys of `gfp`.
    struct GfpKeys {
        /// Size of the file.
        #[schemars(range(min = 1, max = BLOCKS_MAX))]
        blocks: u32 = 2000,
        /// Number of reads of all processes together.
        #[schemars(range(min = 1, max = READS_MAX))]
        reads: u32 = 2000,
        /// Number of blocks per portion.
        #[schemars(range(min = 1, max = LENGTH_MAX))]
        portion: u64 = 10,
        /// Distance from a portion's last block to the first block of the next portion.
        #[schemars(range(min = 1, max = LENGTH_MAX))]
        stride: u64 = 21,
    }
}

fn build(builder: Builder, context: &PatternContext, length: u64, stride: u64, apart: u64) -> Strings {
    let spacing = length + stride - 1;
    let share = u64::from(builder.strings.file_blocks / context.processes) + 1;
    let apart = if apart == 0 { share } else { apart };
    builder.build(|string| {
        let firsts = (u64::from(string) * apart..).step_by(spacing as usize);
        let mut portions = firsts.map(move |first| (first, length));
        move || portions.next().expect("without end")
    })
}
