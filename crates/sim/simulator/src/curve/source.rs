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

/// References between two progress reports.
const REPORT_EVERY: u64 = 1 << 16;

/// A pass over the references.
pub struct Stream {
    from: From,
    block_bytes: u64,
    sized: bool,
    /// Whether writes are distinguished from reads.
    tells_writes: bool,
}

enum From {
    Records(Box<Records>, Cutter),
    /// Labelled blocks, numbered.
    Named(Vec<u64>),
}

/// Why the misses of a scenario depend on time, and so need runs.
pub fn needs_runs(scenario: &Scenario) -> Option<&'static str> {
    let keys = &scenario.workload;
    match () {
        () if !scenario.lower.is_empty() => Some("there are several levels"),
        () if keys.arrival != Arrival::Closed => Some("arrivals are open"),
        () if keys.section.processes.are_several() || scenario.process.is_some() => Some("there are several processes"),
        () if matches!(keys.placement, Some(Placement::Ffs(_))) => Some("a file system reads its metadata"),
        () if !scenario.cache.section.initial.is_empty() => Some("blocks are resident at the start"),
        () => None,
    }
}

impl Stream {
    /// Starts at the first reference.
    ///
    /// # Errors
    /// An offending key, or an error of the trace.
    pub fn try_new(scenario: &Scenario) -> Result<Self, Error> {
        let keys = &scenario.workload;
        let block_bytes = keys.block_bytes();
        let limit = keys.section.limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
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
            return Err(KeyError::new("workload.block_size", "the trace has no objects", allowed).into());
        }
        // Files are distinguished as in runs: where they are placed, and not if offsets are addresses.
        let tell_files = match keys.placement {
            None => carries.files,
            Some(placement) => placement != Placement::Address,
        };
        let sized = carries.objects && records.reader().sizes_vary();
        let from = From::Records(Box::new(records), Cutter::new(keys, carries, tell_files));
        Ok(Self { from, block_bytes, sized, tells_writes: keys.section.writes.reach_devices() })
    }

    /// Whether the trace's objects have individual sizes.
    pub fn is_sized(&self) -> bool {
        self.sized
    }

    /// A note for users of the trace.
    pub fn note(&self) -> Option<String> {
        match &self.from {
            From::Records(records, _) => records.reader().note(),
            From::Named(_) => None,
        }
    }

    /// Passes each reference to `take` in order: its block, the block's size, and whether it is a write that does not
    /// count as a read. `take` returns the number of distinct blocks that it remembers. Returns the number of requests.
    /// `share` converts this pass's progress to the overall progress.
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
            let problem = "no requests remain";
            return Err(KeyError::new("workload.writes", problem, "\"as-read\", or a trace with reads").into());
        }
        Ok(requests)
    }
}
