//! What a client does with one or several files: it alternates between them chunk by chunk.

use std::collections::VecDeque;

use headstart_types::Nanos;
use rand_chacha::ChaCha8Rng;

use super::super::draw::below;
use crate::Record;

/// The remaining accesses to one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileAccesses {
    file: u32,
    write: bool,
    /// Bytes of each read or write, more than zero; the last one is cut at the end.
    chunk: u64,
    places: Places,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Places {
    /// Consecutive chunks of `at..end`.
    Onward { at: u64, end: u64 },
    /// `left` chunks of the first `end` bytes, each at a random multiple of the chunk size.
    Anywhere { end: u64, left: u64 },
}

impl FileAccesses {
    /// Reads `from..to` of `file` in order, `chunk` bytes at a time.
    pub(super) fn read(file: u32, (from, to): (u64, u64), chunk: u64) -> Self {
        Self { file, write: false, chunk, places: Places::Onward { at: from, end: to } }
    }

    /// Writes `file` from its start to `end`, `chunk` bytes at a time.
    pub(super) fn write(file: u32, end: u64, chunk: u64) -> Self {
        Self { file, write: true, chunk, places: Places::Onward { at: 0, end } }
    }

    /// Reads `count` chunks of a file of `size` bytes, each at a random multiple of `chunk`.
    pub(super) fn scattered(file: u32, size: u64, chunk: u64, count: u64) -> Self {
        Self { file, write: false, chunk, places: Places::Anywhere { end: size, left: count } }
    }

    /// Remaining reads and writes.
    pub(super) fn chunks(&self) -> u64 {
        match self.places {
            Places::Onward { at, end } => (end - at).div_ceil(self.chunk),
            Places::Anywhere { left, .. } => left,
        }
    }

    fn next(&mut self, rng: &mut ChaCha8Rng) -> Record {
        let (offset, end) = match &mut self.places {
            Places::Onward { at, end } => {
                let offset = *at;
                *at = (offset + self.chunk).min(*end);
                (offset, *end)
            }
            Places::Anywhere { end, left } => {
                *left -= 1;
                (below(end.div_ceil(self.chunk), rng) * self.chunk, *end)
            }
        };
        let size = self.chunk.min(end - offset);
        Record { offset, size, file: self.file, write: self.write, ..Record::default() }
    }
}

/// Runs that alternate chunk by chunk until all have ended, with the client's pauses.
#[derive(Debug, Clone, Default)]
pub(super) struct Stage {
    runs: VecDeque<FileAccesses>,
    /// The pauses as (number of chunks before the pause, from 1; duration), latest first.
    pauses: Vec<(u64, Nanos)>,
    done: u64,
}

impl Stage {
    /// A stage without pauses. Empty runs are dropped.
    pub(super) fn new(runs: impl IntoIterator<Item = FileAccesses>) -> Self {
        let runs = runs.into_iter().filter(|run| run.chunks() > 0).collect();
        Self { runs, ..Self::default() }
    }

    /// Adds a pause after each of the chunks in `after`, numbered from 1; pauses after the same chunk add up.
    pub(super) fn pausing(mut self, after: impl IntoIterator<Item = u64>, pause: Nanos) -> Self {
        self.pauses.extend(after.into_iter().map(|after| (after, pause)));
        self.pauses.sort_unstable_by_key(|(after, _)| std::cmp::Reverse(*after));
        self
    }

    /// Remaining chunks.
    pub(super) fn chunks(&self) -> u64 {
        self.runs.iter().map(FileAccesses::chunks).sum()
    }

    /// The next read or write, with the pause after it as its think time; `None` at the end.
    pub(super) fn next(&mut self, rng: &mut ChaCha8Rng) -> Option<Record> {
        let mut run = self.runs.pop_front()?;
        let mut record = run.next(rng);
        if run.chunks() > 0 {
            self.runs.push_back(run);
        }
        self.done += 1;
        while let Some((_, pause)) = self.pauses.last().copied().filter(|(after, _)| *after <= self.done) {
            record.think += pause;
            self.pauses.pop();
        }
        Some(record)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_chacha::rand_core::SeedableRng;

    fn all(mut stage: Stage) -> Vec<(u32, u64, u64, u64)> {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let each = std::iter::from_fn(|| stage.next(&mut rng));
        each.map(|record| (record.file, record.offset, record.size, record.think.0)).collect()
    }

    #[test]
    fn runs_take_turns_and_the_longer_one_goes_on_alone() {
        let stage = Stage::new([
            FileAccesses::read(7, (0, 10), 4),
            FileAccesses::read(8, (6, 7), 4),
            FileAccesses::read(9, (3, 3), 4),
        ]);
        assert_eq!(stage.chunks(), 4);
        let pausing = stage.clone().pausing([4, 1, 1], Nanos(5));
        assert_eq!(all(stage), [(7, 0, 4, 0), (8, 6, 1, 0), (7, 4, 4, 0), (7, 8, 2, 0)]);
        assert_eq!(all(pausing), [(7, 0, 4, 10), (8, 6, 1, 0), (7, 4, 4, 0), (7, 8, 2, 5)]);
    }

    #[test]
    fn scattered_reads_are_whole_chunks_of_the_file_and_reach_all_of_it() {
        let seen = all(Stage::new([FileAccesses::scattered(1, 10, 4, 100)]));
        assert_eq!(seen.len(), 100);
        for chunk in [(1, 0, 4, 0), (1, 4, 4, 0), (1, 8, 2, 0)] {
            assert!((20..50).contains(&seen.iter().filter(|each| **each == chunk).count()), "{chunk:?}");
        }
    }

    #[test]
    fn written_chunks_are_writes() {
        let mut stage = Stage::new([FileAccesses::read(0, (0, 2), 1), FileAccesses::write(1, 2, 1)]);
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let each = std::iter::from_fn(|| stage.next(&mut rng)).map(|record| (record.file, record.write));
        assert_eq!(each.collect::<Vec<_>>(), [(0, false), (1, true), (0, false), (1, true)]);
    }
}
