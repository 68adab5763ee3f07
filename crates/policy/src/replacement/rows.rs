//! The replacements by name: one row each.

use serde::{Deserialize, Serialize};
use toml::Table;

use headstart_types::{typed_keys, KeyError};

use super::{Arc, Clock, Fifo, Lfu, Lirs, Lru, Min, Mru, RuSet, S3Fifo, Sieve, TwoQ};
use crate::registry::{Build, Context};
use crate::{OnLine, Policy, Replacement};

/// How a row makes its replacement.
pub type BuildReplacement = fn(Table, &Context) -> Result<Box<dyn Replacement>, KeyError>;

/// A replacement's row.
pub struct ReplacementRow {
    /// The name in scenarios.
    pub name: &'static str,
    /// One line for help.
    pub summary: &'static str,
    /// Where it comes from.
    pub source: &'static str,
    /// Whether it needs disclosed references.
    pub hinted: bool,
    /// Its keys with their defaults.
    pub defaults: fn() -> Table,
    /// Builds it from its keys (without `name`).
    ///
    /// # Errors
    /// An unknown key or a value out of range.
    pub build: BuildReplacement,
    /// Joins it to demand fetching. One row, one monomorphic policy: its calls are inlined.
    ///
    /// # Errors
    /// As `build`.
    pub on_demand: Build,
}

/// The replacement policies.
pub static REPLACEMENTS: &[ReplacementRow] = &[
    ReplacementRow {
        name: "lru",
        summary: "evict the block whose last reference is oldest",
        source: "folklore; see Coffman and Denning, Operating Systems Theory, 1973",
        hinted: false,
        defaults: Table::new,
        build: |keys, context| boxed(lru(keys, context)),
        on_demand: |keys, context| on_demand(lru(keys, context)),
    },
    ReplacementRow {
        name: "fifo",
        summary: "evict the block that arrived first",
        source: "folklore; Belady, IBM Systems Journal 5(2), 1966",
        hinted: false,
        defaults: Table::new,
        build: |keys, context| boxed(fifo(keys, context)),
        on_demand: |keys, context| on_demand(fifo(keys, context)),
    },
    ReplacementRow {
        name: "arc",
        summary: "balance recency against frequency by what was evicted too soon",
        source: "Megiddo and Modha, FAST 2003",
        hinted: false,
        defaults: Table::new,
        build: |keys, context| boxed(arc(keys, context)),
        on_demand: |keys, context| on_demand(arc(keys, context)),
    },
    ReplacementRow {
        name: "min",
        summary: "evict the block whose next reference is furthest away (off-line optimum)",
        source: "Belady, IBM Systems Journal 5(2), 1966",
        hinted: true,
        defaults: Table::new,
        build: |keys, context| boxed(min(keys, context)),
        on_demand: |keys, context| on_demand(min(keys, context)),
    },
    ReplacementRow {
        name: "2q",
        summary: "try new blocks out in a FIFO queue, keep those that come back in an LRU list",
        source: "Johnson and Shasha, VLDB 1994, section 2.2 (full version)",
        hinted: false,
        defaults: defaults::<TwoQKeys>,
        build: |keys, context| boxed(two_q(keys, context)),
        on_demand: |keys, context| on_demand(two_q(keys, context)),
    },
    ReplacementRow {
        name: "sieve",
        summary: "a FIFO queue whose hand spares what was used and evicts what was not",
        source: "Zhang et al., NSDI 2024, Algorithm 1",
        hinted: false,
        defaults: Table::new,
        build: |keys, context| boxed(sieve(keys, context)),
        on_demand: |keys, context| on_demand(sieve(keys, context)),
    },
    ReplacementRow {
        name: "s3-fifo",
        summary: "a small FIFO queue filters, a main one gives further chances, a ghost queue remembers",
        source: "Yang et al., SOSP 2023, Algorithm 1",
        hinted: false,
        defaults: defaults::<S3FifoKeys>,
        build: |keys, context| boxed(s3_fifo(keys, context)),
        on_demand: |keys, context| on_demand(s3_fifo(keys, context)),
    },
    ReplacementRow {
        name: "lirs",
        summary: "keep what was used twice at a short distance, recency decides among the rest",
        source: "Jiang and Zhang, SIGMETRICS 2002, section 3.3",
        hinted: false,
        defaults: defaults::<LirsKeys>,
        build: |keys, context| boxed(lirs(keys, context)),
        on_demand: |keys, context| on_demand(lirs(keys, context)),
    },
    ReplacementRow {
        name: "mru",
        summary: "evict the block that was referenced last: for loops",
        source: "Chou and DeWitt, VLDB 1985, section 4",
        hinted: false,
        defaults: Table::new,
        build: |keys, context| boxed(mru(keys, context)),
        on_demand: |keys, context| on_demand(mru(keys, context)),
    },
    ReplacementRow {
        name: "clock",
        summary: "FIFO with a second chance for what was used",
        source: "Corbató, A Paging Experiment with the Multics System, 1969",
        hinted: false,
        defaults: Table::new,
        build: |keys, context| boxed(clock(keys, context)),
        on_demand: |keys, context| on_demand(clock(keys, context)),
    },
    ReplacementRow {
        name: "lfu",
        summary: "evict the block with the fewest references since it came in",
        source: "folklore; Shah, Mitra and Matani, 2010 (constant time)",
        hinted: false,
        defaults: Table::new,
        build: |keys, context| boxed(lfu(keys, context)),
        on_demand: |keys, context| on_demand(lfu(keys, context)),
    },
    ReplacementRow {
        name: "ru-set",
        summary: "evict what is in no process's list of recently used blocks: for parallel programs",
        source: "Kotz and Ellis, RAPID Transit, sections 3 and 5.4",
        hinted: false,
        defaults: defaults::<RuSetKeys>,
        build: |keys, context| boxed(ru_set(keys, context)),
        on_demand: |keys, context| on_demand(ru_set(keys, context)),
    },
];

/// The row of replacement `name`.
///
/// # Errors
/// There is none; lists the names.
pub fn replacement(name: &str) -> Result<&'static ReplacementRow, KeyError> {
    let unknown = || KeyError::unknown("replacement", "replacement", name, REPLACEMENTS.iter().map(|row| row.name));
    REPLACEMENTS.iter().find(|row| row.name == name).ok_or_else(unknown)
}

fn boxed<R: Replacement + 'static>(made: Result<R, KeyError>) -> Result<Box<dyn Replacement>, KeyError> {
    Ok(Box::new(made?))
}

fn on_demand<R: Replacement + 'static>(made: Result<R, KeyError>) -> Result<Box<dyn Policy>, KeyError> {
    Ok(Box::new(OnLine::new(made?)))
}

fn lru(keys: Table, context: &Context) -> Result<Lru, KeyError> {
    typed_keys::<NoKeys>(keys)?;
    Ok(Lru::new(&context.initial, context.disk_of.len()))
}

fn fifo(keys: Table, context: &Context) -> Result<Fifo, KeyError> {
    typed_keys::<NoKeys>(keys)?;
    Ok(Fifo::new(&context.initial, context.disk_of.len()))
}

fn arc(keys: Table, context: &Context) -> Result<Arc, KeyError> {
    typed_keys::<NoKeys>(keys)?;
    Ok(Arc::new(context.frames, &context.initial, context.disk_of.len()))
}

fn min(keys: Table, context: &Context) -> Result<Min, KeyError> {
    typed_keys::<NoKeys>(keys)?;
    let hints = context.hints.clone().expect("the host gives hints to rows that are `hinted`");
    Ok(Min::new(hints, &context.initial, context.disk_of.len()))
}

fn two_q(keys: Table, context: &Context) -> Result<TwoQ, KeyError> {
    let keys: TwoQKeys = typed_keys(keys)?;
    let kin = share("kin", keys.kin, 1.0, context)?;
    let kout = share("kout", keys.kout, MULTIPLE_MAX, context)?;
    Ok(TwoQ::new(kin, kout, &context.initial, context.disk_of.len()))
}

fn sieve(keys: Table, context: &Context) -> Result<Sieve, KeyError> {
    typed_keys::<NoKeys>(keys)?;
    Ok(Sieve::new(&context.initial, context.disk_of.len()))
}

fn s3_fifo(keys: Table, context: &Context) -> Result<S3Fifo, KeyError> {
    let keys: S3FifoKeys = typed_keys(keys)?;
    let small = share("small", keys.small, 1.0, context)?;
    let ghosts = share("ghosts", keys.ghosts, MULTIPLE_MAX, context)?;
    Ok(S3Fifo::new(small, ghosts, keys.fill_main, &context.initial, context.disk_of.len()))
}

fn lirs(keys: Table, context: &Context) -> Result<Lirs, KeyError> {
    let keys: LirsKeys = typed_keys(keys)?;
    let frames = context.frames as usize;
    // At least 2 as in the authors' program, but one frame is left for a LIR block where there are two.
    let hir = share("hir", keys.hir, 1.0, context)?.max(2).min(frames.saturating_sub(1).max(1));
    let ghosts = share("ghosts", keys.ghosts, MULTIPLE_MAX, context)?;
    let bound = (keys.ghosts > 0.0).then_some(ghosts);
    Ok(Lirs::new(frames, hir, bound, &context.initial, context.disk_of.len()))
}

fn mru(keys: Table, context: &Context) -> Result<Mru, KeyError> {
    typed_keys::<NoKeys>(keys)?;
    Ok(Mru::new(&context.initial, context.disk_of.len()))
}

fn clock(keys: Table, context: &Context) -> Result<Clock, KeyError> {
    typed_keys::<NoKeys>(keys)?;
    Ok(Clock::new(&context.initial, context.disk_of.len()))
}

fn lfu(keys: Table, context: &Context) -> Result<Lfu, KeyError> {
    typed_keys::<NoKeys>(keys)?;
    Ok(Lfu::new(&context.initial, context.disk_of.len()))
}

fn ru_set(keys: Table, context: &Context) -> Result<RuSet, KeyError> {
    const SIZE_MAX: u32 = 1024;
    let RuSetKeys { size } = typed_keys(keys)?;
    if !(1..=SIZE_MAX).contains(&size) {
        let allowed = format!("a whole number from 1 to {SIZE_MAX}, in blocks of each process");
        return Err(KeyError::new("size", format!("{size} is out of range"), allowed));
    }
    Ok(RuSet::new(size as usize, &context.initial, context.disk_of.len()))
}

/// The most ghosts, as a multiple of the frames.
const MULTIPLE_MAX: f64 = 1000.0;

/// The blocks that `value` stands for, a share or a multiple of the frames, rounded down.
fn share(key: &str, value: f64, most: f64, context: &Context) -> Result<usize, KeyError> {
    if !(0.0..=most).contains(&value) {
        let allowed = format!("a number from 0 to {most}, as a share of the cache's blocks");
        return Err(KeyError::new(key, format!("{value} is out of range"), allowed));
    }
    Ok((value * f64::from(context.frames)).floor() as usize)
}

fn defaults<K: Serialize + Default>() -> Table {
    Table::try_from(K::default()).expect("keys are plain values")
}

#[derive(Serialize, Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct NoKeys {}

#[derive(Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct TwoQKeys {
    /// Kin, as a share of the frames, 0 to 1; at least one block.
    kin: f64,
    /// Kout, as a multiple of the frames. 0 remembers nothing: a FIFO queue.
    kout: f64,
}

impl Default for TwoQKeys {
    fn default() -> Self {
        Self { kin: 0.25, kout: 0.5 }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct S3FifoKeys {
    /// S, as a share of the frames, 0 to 1; at least one block.
    small: f64,
    /// G, as a multiple of the frames. 0 remembers nothing.
    ghosts: f64,
    /// Until the first eviction, what S should not have goes into M.
    fill_main: bool,
}

impl Default for S3FifoKeys {
    fn default() -> Self {
        Self { small: 0.1, ghosts: 0.9, fill_main: false }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct LirsKeys {
    /// Frames for HIR blocks, as a share of all, 0 to 1; at least two blocks.
    hir: f64,
    /// Non-resident blocks that are remembered, as a multiple of the frames. 0 sets no bound.
    ghosts: f64,
}

impl Default for LirsKeys {
    fn default() -> Self {
        Self { hir: 0.01, ghosts: 0.0 }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct RuSetKeys {
    /// Length of each process's list, in blocks.
    size: u32,
}

impl Default for RuSetKeys {
    fn default() -> Self {
        Self { size: 1 }
    }
}
