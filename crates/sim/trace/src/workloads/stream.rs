//! Common to all generators: turns a sequence of starts into batches of records with think times.

use headstart_types::{stream_seed, Nanos};
use rand_chacha::rand_core::{RngCore, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::generator::Space;
use super::ComputeSampler;
use crate::{Carries, Record, RecordReader, TraceError, BATCH};

/// The generator's own part: the start and length of each request.
pub(super) trait Pattern: Send {
    /// The next request: its first block and its number of blocks, within the space.
    fn next(&mut self) -> (u64, u64);
}

/// Draws which requests write: each with the same probability, from its own random stream.
pub(super) struct Writes {
    rng: ChaCha8Rng,
    /// Probability in units of 2^-32.
    share: u64,
}

impl Writes {
    /// `share` is 0 to 1.
    pub(super) fn new(share: f64, seed: u64) -> Option<Self> {
        let rng = || ChaCha8Rng::seed_from_u64(stream_seed(seed, "writes", 0));
        (share > 0.0).then(|| Self { rng: rng(), share: (share * 4_294_967_296.0) as u64 })
    }

    fn next(&mut self) -> bool {
        u64::from(self.rng.next_u32()) < self.share
    }
}

/// A generator as a stream of records.
pub(super) struct Stream<P> {
    pattern: P,
    compute: ComputeSampler,
    /// `None`: all requests read.
    writes: Option<Writes>,
    block_bytes: u64,
    done: u64,
    requests: u64,
}

impl<P: Pattern + 'static> Stream<P> {
    /// `requests` requests of `pattern`, all of them reads.
    pub(super) fn boxed(pattern: P, compute: ComputeSampler, space: Space, requests: u64) -> Box<dyn RecordReader> {
        Self::writing(pattern, compute, None, space, requests)
    }

    /// The same, with writes.
    pub(super) fn writing(
        pattern: P,
        compute: ComputeSampler,
        writes: Option<Writes>,
        space: Space,
        requests: u64,
    ) -> Box<dyn RecordReader> {
        Box::new(Self { pattern, compute, writes, block_bytes: space.block_bytes, done: 0, requests })
    }
}

impl<P: Pattern> RecordReader for Stream<P> {
    fn carries(&self) -> Carries {
        Carries { think: true, addresses: true, writes: self.writes.is_some(), ..Carries::NOTHING }
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
            let write = self.writes.as_mut().is_some_and(Writes::next);
            Record { offset, size, think, write, ..Record::default() }
        }));
        self.done += count;
        Ok(count > 0)
    }

    fn progress(&self) -> (u64, u64) {
        (self.done, self.requests)
    }
}
