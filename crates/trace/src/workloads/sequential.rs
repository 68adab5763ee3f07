//! `sequential`: all blocks in order, once or several times.

use headstart_types::KeyError;
use toml::{Table, Value};

use super::keys::{defaults, Keys};
use super::scan::Scan;
use super::stream::Stream;
use super::{GeneratorContext, Workload};
use crate::RecordReader;

pub(super) const WORKLOAD: Workload = Workload {
    name: "sequential",
    summary: "all blocks in order, `passes` times",
    source: "headstart",
    defaults: || defaults([("blocks", Value::Integer(10_000)), ("passes", Value::Integer(1))], "0s"),
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
