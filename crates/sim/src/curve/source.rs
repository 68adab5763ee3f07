//! The references of a scenario as keys, without places on a disk.

use std::collections::HashMap;

use headstart_layout::Placement;
use headstart_scenario::{Arrival, BlockSize, Input, Scenario};
use headstart_trace::reuse::Key;
use headstart_types::KeyError;
use rustc_hash::FxBuildHasher;

use crate::progress::{OnProgress, Progress};
use crate::workload::{Cutter, Opened, Records};
use crate::Error;

/// References between two reports of progress.
const REPORT_EVERY: u64 = 1 << 16;

/// One reading of the references.
pub struct Stream {
    from: From,
    block_bytes: u64,
    sized: bool,
    /// Writes are no reads.
    tells_writes: bool,
}

enum From {
    Records(Box<Records>, Cutter),
    /// Named blocks, numbered.
    Named(Vec<u64>),
}

/// Why the misses of a scenario depend on time, so that they take runs.
pub fn needs_runs(scenario: &Scenario) -> Option<&'static str> {
    let keys = &scenario.workload;
    match () {
        () if !scenario.lower.is_empty() => Some("there are several levels"),
        () if keys.arrival != Arrival::Closed => Some("requests arrive by the clock"),
        () if keys.processes.are_several() || scenario.process.is_some() => Some("there are several processes"),
        () if matches!(keys.placement, Some(Placement::Ffs(_))) => Some("a file system reads its metadata"),
        () if !scenario.cache.initial.is_empty() => Some("blocks are resident at the start"),
        () => None,
    }
}

impl Stream {
    /// From the first reference on.
    ///
    /// # Errors
    /// A key or the trace is at fault.
    pub fn try_new(scenario: &Scenario) -> Result<Self, Error> {
        let keys = &scenario.workload;
        let block_bytes = keys.block_bytes();
        let limit = keys.limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
        if let Input::References(names) = &keys.input {
            let mut numbers = HashMap::<&String, u64, FxBuildHasher>::default();
            let number = |name| {
                let fresh = numbers.len() as u64;
                *numbers.entry(name).or_insert(fresh)
            };
            let named = names.iter().take(limit).map(number).collect();
            return Ok(Self { from: From::Named(named), block_bytes, sized: false, tells_writes: false });
        }
        let Some(opened) = Opened::new(scenario) else {
            let allowed = "a trace, a generator or references";
            return Err(KeyError::new("process.pattern", "has no curve", allowed).into());
        };
        let records = opened.read()?;
        let carries = records.carries();
        if keys.block_size == BlockSize::Object && !carries.objects {
            let allowed = "a size such as \"8KiB\"";
            return Err(KeyError::new("workload.block_size", "the trace has no objects of its own", allowed).into());
        }
        // As runs tell files apart: where they are placed, and not where offsets are addresses.
        let tell_files = match keys.placement {
            None => carries.files,
            Some(placement) => placement != Placement::Address,
        };
        let sized = carries.objects && records.reader().sizes_vary();
        let from = From::Records(Box::new(records), Cutter::new(keys, carries, tell_files));
        Ok(Self { from, block_bytes, sized, tells_writes: keys.writes.reach_devices() })
    }

    /// Whether the trace's objects have sizes of their own.
    pub fn is_sized(&self) -> bool {
        self.sized
    }

    /// What a user must know of the trace.
    pub fn note(&self) -> Option<String> {
        match &self.from {
            From::Records(records, _) => records.reader().note(),
            From::Named(_) => None,
        }
    }

    /// Gives each reference in order: its block, how large that is, and whether it is a write that does not count as a read.
    /// `take` returns how many distinct blocks it remembers. Returns how many requests there were. `share` makes the share of
    /// this pass one of all.
    pub fn each(
        &mut self,
        on_progress: OnProgress<'_>,
        share: impl Fn(f64) -> f64,
        mut take: impl FnMut(Key, u64, bool) -> usize,
    ) -> Result<u64, Error> {
        let (block_bytes, sized, tells_writes) = (self.block_bytes, self.sized, self.tells_writes);
        let (records, cutter) = match &mut self.from {
            From::Named(numbers) => {
                numbers.iter().for_each(|number| {
                    take((0, *number), block_bytes, false);
                });
                return Ok(numbers.len() as u64);
            }
            From::Records(records, cutter) => (records, cutter),
        };
        let (mut requests, mut references, mut reported) = (0u64, 0u64, 0);
        while records.advance()? {
            for record in records.batch() {
                let cut = cutter.cut(record, records)?;
                let size = if sized { record.size } else { block_bytes };
                let mut distinct = 0;
                for at in cut.first..cut.first + cut.blocks {
                    distinct = take((cut.file, at), size, tells_writes && record.write);
                }
                records.check_distinct(distinct, record)?;
                references += cut.blocks;
            }
            requests += records.batch().len() as u64;
            if references - reported >= REPORT_EVERY {
                reported = references;
                let (done, total) = records.reader().progress();
                if !on_progress(Progress { share: share(done as f64 / total.max(1) as f64), references }) {
                    return Err(Error::Stopped);
                }
            }
        }
        if requests == 0 {
            let problem = "no request is left";
            return Err(KeyError::new("workload.writes", problem, "\"as-read\", or a trace with reads").into());
        }
        Ok(requests)
    }
}
