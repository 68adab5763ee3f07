//! Filters a trace by an upper cache: the result is the trace of its misses, as the storage below sees them.

use std::collections::{HashMap, VecDeque};

use headstart_policy::registry::ReplacementRow;
use headstart_trace::reuse::Key;
use headstart_trace::{Carries, Record, RecordReader, TraceError, BATCH};
use headstart_types::{Block, Bytes, Chosen, KeyError, Nanos};
use rustc_hash::FxBuildHasher;

use super::cache::Cache;

/// Maximum number of blocks of one request.
const REQUEST_BLOCKS_MAX: u64 = 1 << 22;

/// A reader of the requests that miss in a cache of `blocks` blocks, in order. If some blocks of a request are in the
/// cache, each run of the others becomes a request. Times are those of the requests; think times accumulate until the
/// next request that misses, so that the sum is preserved.
pub struct Filtered {
    reader: Box<dyn RecordReader>,
    cache: Cache,
    /// `None`: the trace's objects are the blocks.
    block_bytes: Option<u64>,
    numbers: HashMap<Key, u32, FxBuildHasher>,
    batch: Vec<Record>,
    /// Requests ready to be emitted.
    ready: VecDeque<Record>,
    /// The previous request, whose think time is known once the next one is.
    before: Option<Record>,
    /// The last request that missed; it collects the think times up to the next.
    held: Option<Record>,
    pub references: u64,
    /// Misses so far.
    pub misses: u64,
}

impl Filtered {
    /// An empty cache.
    ///
    /// # Errors
    /// If a key of the replacement is wrong.
    pub fn try_new(
        reader: Box<dyn RecordReader>,
        replacement: &Chosen<ReplacementRow>,
        blocks: u64,
        block_bytes: u64,
    ) -> Result<Self, KeyError> {
        Ok(Self {
            cache: Cache::try_new(replacement, blocks, u64::MAX)?,
            block_bytes: (!reader.carries().objects).then_some(block_bytes),
            reader,
            numbers: HashMap::default(),
            batch: Vec::new(),
            ready: VecDeque::new(),
            before: None,
            held: None,
            references: 0,
            misses: 0,
        })
    }

    /// Think time between two requests if the trace gives it, computed as in a run.
    fn think(&self, record: &Record, next: Option<&Record>) -> Nanos {
        match (self.reader.carries(), next) {
            (Carries { think: true, .. }, _) => record.think,
            (Carries { time: true, duration: true, .. }, Some(next)) => {
                next.time.saturating_sub(record.time).saturating_sub(record.duration)
            }
            _ => Nanos::ZERO,
        }
    }

    fn is_hit(&mut self, key: Key) -> bool {
        let fresh = self.numbers.len() as u32;
        let block = Block(*self.numbers.entry(key).or_insert(fresh));
        let hit = self.cache.reference(block, 1);
        self.references += 1;
        self.misses += u64::from(!hit);
        hit
    }

    fn pass(&mut self, record: &Record) -> Result<(), TraceError> {
        if let Some(before) = self.before.replace(*record) {
            let think = self.think(&before, Some(record));
            if let Some(held) = &mut self.held {
                held.think.0 = held.think.0.saturating_add(think.0);
            }
        }
        let part = Record { think: Nanos::ZERO, ..*record };
        let Some(block_bytes) = self.block_bytes else {
            if !self.is_hit((record.file, record.offset)) {
                self.ready.extend(self.held.replace(part));
            }
            return Ok(());
        };
        let end = record.offset + record.size;
        let (first, last) = (record.offset / block_bytes, (end - 1) / block_bytes);
        if last - first >= REQUEST_BLOCKS_MAX {
            let problem = format!("a request of {} is more than {REQUEST_BLOCKS_MAX} blocks", Bytes(record.size));
            return Err(self.reader.bad(record, &problem, "larger blocks"));
        }
        let mut open = false;
        for at in first..=last {
            let hit = self.is_hit((record.file, at));
            let stop = (at + 1).saturating_mul(block_bytes).min(end);
            match &mut self.held {
                Some(held) if open && !hit => held.size = stop - held.offset,
                _ if !hit => {
                    let offset = record.offset.max(at * block_bytes);
                    self.ready.extend(self.held.replace(Record { offset, size: stop - offset, ..part }));
                }
                _ => {}
            }
            open = !hit;
        }
        Ok(())
    }
}

impl RecordReader for Filtered {
    fn inner(&self) -> Option<&dyn RecordReader> {
        Some(&*self.reader)
    }

    fn carries(&self) -> Carries {
        let own = self.reader.carries();
        Carries { think: own.think || (own.time && own.duration), ..own }
    }

    fn read(&mut self, into: &mut Vec<Record>) -> Result<bool, TraceError> {
        into.clear();
        while self.ready.len() < BATCH {
            let mut batch = std::mem::take(&mut self.batch);
            let more = self.reader.read(&mut batch)?;
            for record in &batch {
                self.pass(record)?;
            }
            self.batch = batch;
            if !more {
                if let (Some(mut held), Some(last)) = (self.held.take(), self.before.take()) {
                    held.think.0 = held.think.0.saturating_add(self.think(&last, None).0);
                    self.ready.push_back(held);
                }
                break;
            }
        }
        into.extend(self.ready.drain(..self.ready.len().min(BATCH)));
        Ok(!into.is_empty())
    }

    fn progress(&self) -> (u64, u64) {
        self.reader.progress()
    }
}
