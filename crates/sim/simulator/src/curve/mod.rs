//! Misses over the size of a cache, in one or two passes over the references, without time.
//!
//! LRU needs one pass for all sizes, by stack distances ([`headstart_trace::reuse`]), exactly or from a sample
//! (SHARDS). Other replacement policies need a second pass, with a [cache](Cache) of each size side by side; on a
//! sample these are miniatures: caches scaled like the blocks (Waldspurger, Saemundsson, Ahmad and Park, "Cache
//! modeling and optimization using miniature simulations", USENIX ATC 2017, section 3). Samples of several seeds show
//! the estimate's spread.
//!
//! If a trace's objects have sizes, a cache holds bytes, and LRU needs the second pass too: an object that does not fit
//! bypasses a small cache and enters a large one, so the small cache's contents are not a subset of the large one's.
//!
//! Cost: logarithmic per reference for LRU, constant for each cache. Memory: see `Shards` and `Cache`.

mod cache;
mod caches;
mod filter;
mod source;
mod survey;

use headstart_policy::registry::ReplacementRow;
use headstart_scenario::Scenario;
use headstart_trace::reuse::Sample;
use headstart_types::{Bytes, Chosen, KeyError};
use serde::Serialize;

pub use cache::Cache;
use caches::Caches;
pub use filter::Filtered;
pub use source::Stream;
use survey::Survey;

use crate::progress::OnProgress;
use crate::simulate::note_of_writes;
use crate::Error;

/// A cache size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum CurveSize {
    /// Blocks, at least 1; not for objects with sizes.
    Blocks(u64),
    /// Bytes, at least one block.
    Bytes(u64),
    /// A share of the distinct blocks, or of the bytes of the distinct objects, above 0.
    Share(f64),
}

/// The parameters of a curve.
#[derive(Clone)]
pub struct CurveKeys {
    pub sizes: Vec<CurveSize>,
    /// Which blocks are sampled.
    pub sample: Sample,
    /// Number of samples, at least 1. One is enough if all blocks are included.
    pub seeds: u64,
    /// Objects larger than this many bytes are not admitted.
    pub admitted_max: Option<u64>,
    /// Replacements and their keys. Empty: only the statistics of the references.
    pub replacements: Vec<Chosen<ReplacementRow>>,
}

/// Statistics of the references, and the misses of each cache.
#[derive(Debug, Clone, Serialize)]
pub struct Curve {
    pub requests: u64,
    /// References, without writes if they are distinguished from reads.
    pub references: u64,
    /// Distinct blocks; estimated if sampled.
    pub distinct_blocks: u64,
    /// Bytes of a block; `None` if objects have sizes.
    pub block_bytes: Option<u64>,
    /// Bytes referenced: those of whole blocks, or of objects.
    pub referenced_bytes: u64,
    /// Bytes of the distinct blocks or objects; estimated if sampled.
    pub distinct_bytes: u64,
    /// Sampled share of the blocks, for the first sample; 1: all.
    pub rate: f64,
    /// Number of samples.
    pub seeds: u64,
    /// The sizes in the requested order.
    pub sizes: Vec<SizeOf>,
    /// One for each replacement.
    pub lines: Vec<Line>,
    /// Why the misses of this scenario can only be found by running it; there are then no lines.
    pub needs_runs: Option<&'static str>,
    /// Notes for the user.
    pub notes: Vec<String>,
}

/// A resolved cache size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct SizeOf {
    /// In blocks; `None` if objects have sizes.
    pub blocks: Option<u64>,
    /// In bytes.
    pub bytes: u64,
}

/// The misses of one replacement.
#[derive(Debug, Clone, Serialize)]
pub struct Line {
    pub replacement: &'static str,
    /// "stack-distances" or "caches"
    pub method: &'static str,
    /// By size.
    pub points: Vec<Point>,
}

/// The misses at one size: mean, minimum and maximum over the samples.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Point {
    /// References that miss.
    pub misses: f64,
    /// Of the sample with the fewest.
    pub misses_min: f64,
    /// Of the sample with the most.
    pub misses_max: f64,
    /// Bytes that miss: of whole blocks, or of objects.
    pub miss_bytes: f64,
}

impl Point {
    fn mean(of: &[(f64, f64)]) -> Self {
        let count = of.len() as f64;
        let misses = || of.iter().map(|(misses, _)| *misses);
        Self {
            misses: misses().sum::<f64>() / count,
            misses_min: misses().fold(f64::INFINITY, f64::min),
            misses_max: misses().fold(0.0, f64::max),
            miss_bytes: of.iter().map(|(_, bytes)| *bytes).sum::<f64>() / count,
        }
    }
}

/// Below this many blocks, a miniature does not represent its cache well. Our choice.
const MINIATURE_MIN: u64 = 16;

/// Replacements that do not depend on the number of blocks in a cache, and so can hold bytes.
pub const OF_BYTES: [&str; 6] = ["lru", "fifo", "clock", "sieve", "lfu", "mru"];

/// Computes the misses.
///
/// # Errors
/// An offending key, an error of the trace, or that `on_progress` asked to stop.
pub fn curve(scenario: &Scenario, keys: &CurveKeys, on_progress: OnProgress<'_>) -> Result<Curve, Error> {
    found(scenario, keys, on_progress).map_err(|error| scenario.as_written(error))
}

fn found(scenario: &Scenario, keys: &CurveKeys, on_progress: OnProgress<'_>) -> Result<Curve, Error> {
    headstart_assemble::check_devices(scenario)?;
    let mut stream = Stream::try_new(scenario)?;
    if keys.admitted_max.is_some() && !stream.is_sized() {
        let problem = "the trace has no objects with individual sizes";
        return Err(KeyError::new("admit", problem, "a trace with objects, or no limit").into());
    }
    let needs_runs = source::needs_runs(scenario);
    let rows = if needs_runs.is_some() { &[][..] } else { &keys.replacements[..] };
    let again = stream.is_sized() || rows.iter().any(|each| each.name() != "lru");
    let passes = if again && !rows.is_empty() { 2.0 } else { 1.0 };
    let survey = Survey::of(&mut stream, keys, passes, on_progress)?;
    // Objects of one size are blocks of that size.
    let sized = stream.is_sized() && (survey.size_min < survey.size_max || keys.admitted_max.is_some());
    if let Some(row) = rows.iter().map(|each| each.row).find(|row| sized && !OF_BYTES.contains(&row.name)) {
        let problem = format!("{} counts blocks, and the trace's objects have sizes", row.name);
        return Err(KeyError::new("policies", problem, OF_BYTES.map(|name| format!("demand:{name}")).join(", ")).into());
    }
    let first = survey.first();
    let unit = (!sized).then_some(survey.size_min);
    let whole = if sized { survey.distinct_bytes() } else { first.distinct() };
    let sizes: Vec<SizeOf> = keys.sizes.iter().map(|size| resolved(*size, unit, whole)).collect::<Result<_, _>>()?;
    let mut notes: Vec<String> = stream.note().into_iter().collect();
    notes.extend(note_of_writes(survey.writes, first.references() + survey.writes));
    let mut caches = Caches::try_new(rows, (&sizes, unit), keys.admitted_max, &survey.samples)?;
    if !caches.is_empty() {
        let share = |share| 0.5 + share / 2.0;
        Stream::try_new(scenario)?
            .each(on_progress, share, |key, size, write| caches.reference(key, size, write, &survey.samples))?;
        notes.extend(note_of_miniatures(&sizes, first.rate()));
    }
    Ok(Curve {
        requests: survey.requests,
        references: first.references(),
        distinct_blocks: first.distinct(),
        block_bytes: unit,
        referenced_bytes: u64::try_from(survey.bytes).unwrap_or(u64::MAX),
        distinct_bytes: unit.map_or(whole, |unit| whole.saturating_mul(unit)),
        rate: first.rate(),
        seeds: survey.samples.len() as u64,
        lines: caches.lines(rows, &sizes, &survey.samples),
        sizes,
        needs_runs,
        notes,
    })
}

/// A note about sizes at which a sample leaves a cache of few blocks.
fn note_of_miniatures(sizes: &[SizeOf], rate: f64) -> Option<String> {
    let is_tiny = |size: &&SizeOf| size.blocks.is_some_and(|blocks| scaled(blocks, rate) < MINIATURE_MIN);
    let count = sizes.iter().filter(is_tiny).count();
    (rate < 1.0 && count > 0).then(|| {
        format!(
            "{count} of the sizes rest on caches of fewer than {MINIATURE_MIN} blocks: a larger sample is more precise \
            for them"
        )
    })
}

/// A cache's share of a sample, at least one unit.
fn scaled(capacity: u64, rate: f64) -> u64 {
    ((capacity as f64 * rate).round() as u64).max(1)
}

/// A size in blocks of `unit` bytes, or in bytes; `whole` is the total of the distinct ones.
fn resolved(size: CurveSize, unit: Option<u64>, whole: u64) -> Result<SizeOf, KeyError> {
    let few = |what: &str| KeyError::new("cache", format!("{what} is less than one block"), "at least one block");
    match (size, unit) {
        (CurveSize::Blocks(0), _) => Err(few("0")),
        (CurveSize::Blocks(_), None) => {
            let problem = "a number of blocks, but the trace's objects have sizes";
            Err(KeyError::new("cache", problem, "a size such as 10MiB, or a share such as 5%"))
        }
        (CurveSize::Blocks(blocks), Some(unit)) => {
            Ok(SizeOf { blocks: Some(blocks), bytes: blocks.saturating_mul(unit) })
        }
        (CurveSize::Bytes(bytes), Some(unit)) if bytes < unit => Err(few(&Bytes(bytes).to_string())),
        (CurveSize::Bytes(bytes), _) => Ok(SizeOf { blocks: unit.map(|unit| bytes / unit), bytes }),
        (CurveSize::Share(share), _) => {
            let units = ((whole as f64 * share).round() as u64).max(1);
            Ok(SizeOf { blocks: unit.map(|_| units), bytes: units.saturating_mul(unit.unwrap_or(1)) })
        }
    }
}
