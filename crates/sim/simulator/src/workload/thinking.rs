//! Think times: their source and their scaling.

use headstart_scenario::{ComputeKey, Survey, WorkloadKeys, TIME_MAX};
use headstart_trace::{Compute, ComputeSampler};
use headstart_types::{Chunk, KeyError, Nanos};

use crate::Error;

/// A factor on think times.
#[derive(Debug, Clone, Copy)]
pub enum Factor {
    /// A real number.
    Scale(f64),
    /// total / sum, each product rounded down.
    Ratio(Nanos, u128),
}

impl Factor {
    #[inline]
    /// `think` times the factor.
    #[must_use]
    pub fn of(self, think: Nanos) -> Nanos {
        match self {
            Factor::Scale(1.0) => think,
            Factor::Scale(scale) => Nanos::rounded(think.0 as f64 * scale).min(TIME_MAX),
            Factor::Ratio(total, sum) => Nanos((u128::from(think.0) * u128::from(total.0) / sum) as u64),
        }
    }
}

/// The think times of references.
pub enum Thinking {
    /// As recorded.
    Recorded,
    /// Constant.
    Constant(Nanos),
    /// From a distribution.
    Drawn(Box<ComputeSampler>),
}

/// The think times of one process in the scenario; each process has its own random stream.
#[must_use]
pub fn thinking(compute: ComputeKey, seed: u64, process: u32) -> Thinking {
    match compute {
        ComputeKey::Trace | ComputeKey::Gaps => Thinking::Recorded,
        ComputeKey::Constant(think) => Thinking::Constant(think),
        ComputeKey::Exponential(mean) => {
            Thinking::Drawn(Box::new(Compute::Exponential(mean).sampler(seed, process.into())))
        }
    }
}

/// The factor given by `compute_scale` or `compute_total`.
///
/// # Errors
/// If there are no think times to scale.
pub fn factor(keys: &WorkloadKeys, thinking: &Thinking, found: &Survey, seed: u64) -> Result<Factor, Error> {
    let Some(total) = keys.section.compute_total else { return Ok(Factor::Scale(keys.section.compute_scale)) };
    let sum = match thinking {
        Thinking::Recorded => found.compute,
        Thinking::Constant(think) => u128::from(think.0) * u128::from(found.references),
        Thinking::Drawn(_) => {
            let ComputeKey::Exponential(mean) = keys.compute else { unreachable!("drawn times are exponential") };
            let mut sampler = Compute::Exponential(mean).sampler(seed, 0);
            (0..found.references).map(|_| u128::from(sampler.next_think().0)).sum()
        }
    };
    if sum == 0 {
        let problem = "the workload has no think times to scale";
        return Err(KeyError::new("workload.compute_total", problem, "compute = a time above zero").into());
    }
    Ok(Factor::Ratio(total, sum))
}

/// Think times for the references of `chunk`: none after metadata, which no application requests.
#[must_use]
pub fn after_data(chunk: &Chunk, mut think: impl FnMut() -> Nanos) -> Vec<Nanos> {
    let after = |at| if chunk.bytes_of(at) == Some(0) { Nanos::ZERO } else { think() };
    (0..chunk.blocks.len()).map(after).collect()
}

/// Think times of one process that takes its references from a string.
pub struct Thinker {
    thinking: Thinking,
    factor: Factor,
}

impl Thinker {
    /// For the process with this number.
    #[must_use]
    pub fn new(keys: &WorkloadKeys, seed: u64, process: u32) -> Self {
        Self { thinking: thinking(keys.compute, seed, process), factor: Factor::Scale(keys.section.compute_scale) }
    }

    /// The next think time.
    #[inline]
    pub fn next_think(&mut self) -> Nanos {
        match &mut self.thinking {
            Thinking::Recorded => Nanos::ZERO,
            Thinking::Constant(think) => self.factor.of(*think),
            Thinking::Drawn(sampler) => self.factor.of(sampler.next_think()),
        }
    }
}
