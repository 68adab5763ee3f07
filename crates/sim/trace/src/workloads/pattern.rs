//! `lfp`, `lrp`, `lw`, `gfp`, `grp`, `gw`: the patterns of parallel programs as one stream of records with process ids,
//! for use without the program model.
//!
//! The reads of a local pattern alternate between the processes; a shared string is distributed in the same way. A
//! request is one block, and think times are by default exponential with a mean of 30 ms (section 5.4 of the patterns'
//! source).

use headstart_types::{keys, property_names, read_keys, KeyError, Keys, Nanos};
use toml::Table;

use super::{Compute, ComputeSampler, GeneratorContext, Workload};
use crate::patterns::{PatternContext, Strings, ROWS};
use crate::{Carries, Record, RecordReader, TraceError, BATCH};

/// The generator of pattern `ROW`.
pub(super) const fn workload<const ROW: usize>() -> Workload {
    let pattern = &ROWS[ROW];
    Workload {
        name: pattern.name,
        summary: pattern.summary,
        source: pattern.source,
        keys: pattern.keys.beside::<DealtKeys>(),
        make: open::<ROW>,
    }
}

/// Maximum number of processes.
const COUNT_MAX: u32 = 1 << 20;

keys! {
    /// The generators' keys in addition to the patterns'.
    struct DealtKeys {
        /// Number of processes.
        #[schemars(range(min = 1, max = COUNT_MAX))]
        count: u32 = 20,
        /// The think time after each read.
        compute: Compute = Compute::Exponential(Nanos::from_millis(30)),
    }
}

fn open<const ROW: usize>(keys: Table, context: &GeneratorContext) -> Result<Box<dyn RecordReader>, KeyError> {
    let own = property_names(DealtKeys::schema());
    let (own, of_pattern) = keys.into_iter().partition(|(key, _)| own.contains(&key.as_str()));
    let DealtKeys { count: processes, compute } = read_keys(own)?;
    let compute = compute.sampler(context.seed, 0);
    let strings = ROWS[ROW].strings(of_pattern, &PatternContext { processes, seed: context.seed })?;
    context.fits(u64::from(strings.file_blocks))?;
    Ok(Box::new(Dealt { strings, processes, compute, block_bytes: context.block_bytes, done: 0 }))
}

/// Strings whose references are distributed round-robin to the processes.
struct Dealt {
    strings: Strings,
    processes: u32,
    compute: ComputeSampler,
    block_bytes: u64,
    done: usize,
}

impl Dealt {
    /// The position of the read that follows `done` others. If the strings have unequal lengths, the longer ones come
    /// first.
    fn position(&self) -> usize {
        if self.strings.shared {
            return self.done;
        }
        let processes = self.processes as usize;
        let (round, process) = (self.done / processes, self.done % processes);
        let begin = process.checked_sub(1).map_or(0, |before| self.strings.string_ends[before] as usize);
        begin + round
    }
}

impl RecordReader for Dealt {
    fn carries(&self) -> Carries {
        Carries { think: true, processes: true, addresses: true, ..Carries::NOTHING }
    }

    fn unit_bytes(&self) -> u64 {
        self.block_bytes
    }

    fn read(&mut self, into: &mut Vec<Record>) -> Result<bool, TraceError> {
        into.clear();
        let count = (self.strings.blocks.len() - self.done).min(BATCH);
        for _ in 0..count {
            let offset = u64::from(self.strings.blocks[self.position()]) * self.block_bytes;
            let (pid, think) = ((self.done % self.processes as usize) as u32, self.compute.next_think());
            into.push(Record { offset, size: self.block_bytes, think, pid, ..Record::default() });
            self.done += 1;
        }
        Ok(count > 0)
    }

    fn progress(&self) -> (u64, u64) {
        (self.done as u64, self.strings.blocks.len() as u64)
    }
}
