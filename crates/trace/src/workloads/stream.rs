//! What all generators share: a sequence of starts becomes batches of records with think times.

use headstart_types::Nanos;

use super::generator::Space;
use super::ComputeSampler;
use crate::{Carries, Record, RecordReader, TraceError, BATCH};

/// What a generator itself decides: where each request starts and how long it is.
pub(super) trait Pattern: Send {
    /// The next request: its first block and its number of blocks, within the space.
    fn next(&mut self) -> (u64, u64);
}

/// A generator as a stream of records.
pub(super) struct Stream<P> {
    pattern: P,
    compute: ComputeSampler,
    block_bytes: u64,
    done: u64,
    requests: u64,
}

impl<P: Pattern + 'static> Stream<P> {
    /// `requests` requests of `pattern`.
    pub(super) fn boxed(pattern: P, compute: ComputeSampler, space: Space, requests: u64) -> Box<dyn RecordReader> {
        Box::new(Self { pattern, compute, block_bytes: space.block_bytes, done: 0, requests })
    }
}

impl<P: Pattern> RecordReader for Stream<P> {
    fn carries(&self) -> Carries {
        Carries { think: true, addresses: true, ..Carries::default() }
    }

    fn unit_bytes(&self) -> u64 {
        self.block_bytes
    }

    fn read(&mut self, into: &mut Vec<Record>) -> Result<bool, TraceError> {
        into.clear();
        let count = (self.requests - self.done).min(BATCH as u64);
        into.extend((0..count).map(|_| {
            let (start, blocks) = self.pattern.next();
            let think: Nanos = self.compute.next_think();
            let (offset, size) = (start * self.block_bytes, blocks * self.block_bytes);
            Record { offset, size, think, ..Record::default() }
        }));
        self.done += count;
        Ok(count > 0)
    }

    fn progress(&self) -> (u64, u64) {
        (self.done, self.requests)
    }
}
