//! `synth`: sequential passes over a file that does not fit the cache, with exponential think times.
//!
//! Source: Kimbrel, Tomkins, Patterson, Bershad, Cao, Felten, Gibson, Karlin and Li, "A trace-driven comparison of
//! algorithms for parallel prefetching and caching", OSDI 1996, section 3.1 and Table 3: 2000 sequential blocks of
//! 8 KB, 50 times, think times of mean 1 ms. The paper calls these Poisson, which we read as the gaps of a Poisson
//! process: exponential. Table 3 sums them to 99.9 s; a scenario scales to that with `compute_total`.

use headstart_types::KeyError;
use toml::{Table, Value};

use super::keys::{defaults, Keys};
use super::scan::Scan;
use super::stream::Stream;
use super::{GeneratorContext, Workload};
use crate::RecordReader;

pub(super) const WORKLOAD: Workload = Workload {
    name: "synth",
    summary: "50 sequential passes over 2000 blocks, exponential think times of mean 1 ms",
    source: "Kimbrel et al., OSDI 1996, Table 3",
    defaults: || defaults([("blocks", Value::Integer(2000)), ("passes", Value::Integer(50))], "exp:1ms"),
    open,
};

/// More passes than this would take weeks.
const PASSES_MAX: u64 = 1_000_000_000;

fn open(given: Table, context: &GeneratorContext) -> Result<Box<dyn RecordReader>, KeyError> {
    let keys = Keys::new(given, (WORKLOAD.defaults)())?;
    let space = keys.space(u64::MAX, context)?;
    let requests = keys.count("passes", 1..=PASSES_MAX)? * Scan::pass_requests(space);
    let compute = keys.compute()?.sampler(context.seed, 0);
    Ok(Stream::boxed(Scan::new(space), compute, space, requests))
}
