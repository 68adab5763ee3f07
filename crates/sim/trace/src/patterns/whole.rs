//! `lw` and `gw`: the file from its beginning.
//!
//! Source: section 5.2. In `gw` the processes read the whole file together, each block once. In `lw` each process reads
//! the same blocks, with 2000 reads in all: 100 for each of 20 processes (section 6.4), so that the local portions
//! overlap entirely. With more reads than blocks the file is read repeatedly; each pass is a portion.

use headstart_types::{keys, read_keys, KeyError, KeyTable};
use toml::Table;

use super::strings::{Builder, Pattern, PatternContext, Strings, BLOCKS_MAX, READS_MAX, SOURCE};

pub(super) const LOCAL: Pattern = Pattern {
    name: "lw",
    summary: "each process reads the file from its beginning, all the same blocks",
    source: SOURCE,
    keys: KeyTable::of::<WholeKeys>(),
    build: |keys, context| build(keys, context, false),
};

pub(super) const GLOBAL: Pattern = Pattern {
    name: "gw",
    summary: "the processes read the file together from beginning to end, each block once",
    source: SOURCE,
    keys: KeyTable::of::<WholeKeys>(),
    build: |keys, context| build(keys, context, true),
};

keys! {
    /// Keys of `lw` and `gw`.
    struct WholeKeys {
        /// Size of the file.
        #[schemars(range(min = 1, max = BLOCKS_MAX))]
        blocks: u32 = 2000,
        /// Number of reads of all processes together.
        #[schemars(range(min = 1, max = READS_MAX))]
        reads: u32 = 2000,
    }
}

fn build(keys: Table, context: &PatternContext, shared: bool) -> Result<Strings, KeyError> {
    let WholeKeys { blocks, reads } = read_keys(keys)?;
    let builder = Builder::new((blocks, reads), context, shared, true)?;
    let file_blocks = u64::from(builder.strings.file_blocks);
    Ok(builder.build(|_| move || (0, file_blocks)))
}
