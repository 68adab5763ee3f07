//! The first pass over the references: their statistics, and samples of their blocks.

use headstart_trace::reuse::{Sample, Shards};

use super::{CurveKeys, Stream};
use crate::progress::OnProgress;
use crate::Error;

/// What the first pass has found.
pub struct Survey {
    /// By seed.
    pub samples: Vec<Shards>,
    pub requests: u64,
    /// References that do not count as reads.
    pub writes: u64,
    /// Bytes of the others.
    pub bytes: u128,
    /// Bytes of a block or object: the smallest and the largest.
    pub size_min: u64,
    pub size_max: u64,
    /// Bytes of the distinct blocks or objects of the first sample.
    sampled_bytes: u128,
}

impl Survey {
    /// Reads `stream`, the first of `passes`.
    pub fn of(stream: &mut Stream, keys: &CurveKeys, passes: f64, on_progress: OnProgress<'_>) -> Result<Self, Error> {
        let seeds = if keys.sample == Sample::All { 1 } else { keys.seeds.max(1) };
        let samples = (1..=seeds).map(|seed| Shards::new(keys.sample, seed)).collect();
        let mut found =
            Self { samples, requests: 0, writes: 0, bytes: 0, size_min: u64::MAX, size_max: 0, sampled_bytes: 0 };
        let requests = stream.each(
            on_progress,
            |share| share / passes,
            |key, size, write| {
                found.bytes += if write { 0 } else { u128::from(size) };
                found.writes += u64::from(write);
                (found.size_min, found.size_max) = (found.size_min.min(size), found.size_max.max(size));
                let before = found.first().looked_at();
                for sample in &mut found.samples {
                    match write {
                        true => sample.touch(key),
                        false => drop(sample.reference(key)),
                    }
                }
                // Bytes of distinct objects are counted at their first references.
                found.sampled_bytes += if found.first().looked_at() > before { u128::from(size) } else { 0 };
                found.first().looked_at()
            },
        )?;
        Ok(Self { requests, ..found })
    }

    /// The sample of which the statistics are.
    pub fn first(&self) -> &Shards {
        &self.samples[0]
    }

    /// Bytes of the distinct blocks or objects; estimated if sampled.
    pub fn distinct_bytes(&self) -> u64 {
        (self.sampled_bytes as f64 / self.first().rate()).round() as u64
    }
}
