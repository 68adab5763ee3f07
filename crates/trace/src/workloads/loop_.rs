//! `loop`: all blocks in order, over and over, for a given number of requests. The worst case of LRU.

use headstart_types::KeyError;
use toml::{Table, Value};

use super::keys::{defaults, Keys};
use super::scan::Scan;
use super::stream::Stream;
use super::{GeneratorContext, Workload};
use crate::RecordReader;

pub(super) const WORKLOAD: Workload = Workload {
    name: "loop",
    summary: "all blocks in order, over and over, for `requests` requests",
    source: "headstart",
    defaults: || defaults([("blocks", Value::Integer(2000)), ("requests", Value::Integer(100_000))], "0s"),
    open,
};

fn open(given: Table, context: &GeneratorContext) -> Result<Box<dyn RecordReader>, KeyError> {
    let keys = Keys::new(given, (WORKLOAD.defaults)())?;
    let space = keys.space(u64::MAX, context)?;
    let compute = keys.compute()?.sampler(context.seed, 0);
    Ok(Stream::boxed(Scan::new(space), compute, space, keys.requests()?))
}
