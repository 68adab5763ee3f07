//! Deadline, as in Linux 2.6: sorted batches of reads or of writes, and expiry times.
//!
//! Reads and writes are queued separately, by position and by age. The scheduler moves upward from the last request
//! served while requests are sequential, for at most `batch` requests, and then chooses again: reads before writes,
//! except that writes passed over `writes_starved` times come first; in the chosen direction, the oldest request if it
//! has waited longer than its expiry (`read_expire`, `write_expire`), else the next by position, else the lowest.
//! Contiguous requests are merged (see `merging.rs`).
//!
//! After block/deadline-iosched.c of 2.6.18. Later versions differ: 2.6.24 starts from the oldest request, not from the
//! lowest, after a change of direction or after the last by position; still later ones let a batch continue over gaps.
//! As in 2.6.18, the next request by position is determined at dispatch, and later arrivals are not considered. Time is
//! in nanoseconds instead of ticks of 1 to 10 ms. Omitted: plugging, which holds back the first requests to an idle
//! disk for up to 3 ms to merge them, and barriers.
//!
//! `priority = "demand-first"` is our addition: prefetches, which Linux does not distinguish from other reads, are
//! passed over while a demand read waits, even within a batch and when they have expired. They may starve. A demand
//! read that is contiguous with a queued prefetch is merged with it.
//!
//! An expiry is not a deadline: an expired request waits for the older ones, a batch or more each (see [`Promise`]).
//! O(log n) per request; no allocation after warm-up.

use headstart_types::{keys, read_keys, KeyTable, Nanos};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::merging::{Handle, MergeQueue, Rules, PREFETCHES, READS, WRITES};
use super::{Next, Promise, Queued, Scheduler};
use crate::row::SchedulerRow;
use crate::time::Time;
use crate::{Device, Request};

pub const ROW: SchedulerRow = SchedulerRow {
    name: "deadline",
    summary: "Linux 2.6's deadline: batches by sector with merging, reads first, expiries",
    keys: KeyTable::of::<DeadlineKeys>(),
    build: |keys| Ok(Box::new(Deadline::new(&read_keys(keys)?))),
};

/// Which requests yield to demand reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Priority {
    /// No requests: prefetches are treated like other reads, as in Linux.
    None,
    /// Prefetches, which may starve, while a demand read is waiting.
    DemandFirst,
}

keys! {
    /// Keys of `deadline`. The defaults are Linux's; `priority` is our addition.
    pub struct DeadlineKeys {
        /// Waiting time after which a read is served first in the next batch of reads.
        pub read_expire: Time = Time::from_millis(500),
        /// Waiting time after which a write is served first in the next batch of writes.
        pub write_expire: Time = Time::from_millis(5000),
        /// Maximum number of requests per batch (`fifo_batch`).
        #[schemars(range(min = 1, max = 1_000_000))]
        pub batch: u32 = 16,
        /// Number of times that reads are preferred to waiting writes.
        #[schemars(range(max = 1_000_000))]
        pub writes_starved: u32 = 2,
        /// Maximum number of sectors of a merged request; 512 KiB as `BLK_DEF_MAX_SECTORS`.
        #[schemars(range(min = 1))]
        pub max_sectors: u32 = 1024,
        /// Whether contiguous requests are merged.
        pub merge: bool = true,
        /// Whether a request is also merged if it ends where a queued one begins.
        pub front_merges: bool = true,
        /// Which requests yield to demand reads.
        pub priority: Priority = Priority::None,
    }
}

#[derive(Debug, Clone)]
pub struct Deadline {
    queue: MergeQueue,
    /// By lane.
    expire: [Nanos; 3],
    batch: u32,
    writes_starved: u32,
    demand_first: bool,
    /// Requests of this batch so far; a request that is not sequential adds `batch`.
    batching: u32,
    /// How often reads were preferred to waiting writes.
    starved: u32,
    /// Where the last request served ended.
    last_end: u64,
}

impl Deadline {
    #[must_use]
    pub fn new(keys: &DeadlineKeys) -> Self {
        let demand_first = keys.priority == Priority::DemandFirst;
        let queue = MergeQueue::new(Rules {
            back_merges: keys.merge,
            front_merges: keys.front_merges && keys.merge,
            sectors_max: keys.max_sectors,
            classes: demand_first,
        });
        let expire = [keys.read_expire.0, keys.read_expire.0, keys.write_expire.0];
        let &DeadlineKeys { batch, writes_starved, .. } = keys;
        Self { queue, expire, batch, writes_starved, demand_first, batching: 0, starved: 0, last_end: 0 }
    }

    /// The lane of reads to serve from; demand reads first.
    fn read_lane(&self) -> Option<usize> {
        [READS, PREFETCHES].into_iter().find(|lane| self.queue.has(*lane))
    }

    /// The next request of a batch that may continue.
    fn batched(&mut self) -> Option<Handle> {
        let lane = (0..3).find(|lane| self.queue.next(*lane).is_some())?;
        let next = self.queue.next(lane)?;
        if self.last_end != self.queue.whole(next).request.sector {
            self.batching = self.batching.saturating_add(self.batch);
        }
        let preempted = lane == PREFETCHES && self.queue.has(READS);
        (self.batching < self.batch && !preempted).then_some(next)
    }

    /// The lane of a new batch.
    fn choose_lane(&mut self) -> Option<usize> {
        let writes = self.queue.has(WRITES).then_some(WRITES);
        if let Some(reads) = self.read_lane() {
            if writes.is_none() {
                return Some(reads);
            }
            self.starved += 1;
            if self.starved <= self.writes_starved {
                return Some(reads);
            }
        }
        self.starved = 0;
        writes
    }

    fn choose(&mut self, now: Nanos) -> Option<Handle> {
        if let Some(next) = self.batched() {
            self.batching += 1;
            return Some(next);
        }
        let lane = self.choose_lane()?;
        let eldest = self.queue.eldest(lane)?;
        if now > self.queue.whole(eldest).arrived + self.expire[lane] {
            self.batching = 1;
            return Some(eldest);
        }
        if let Some(next) = self.queue.next(lane) {
            // The batch's count is not reset: the direction is chosen again after each request.
            self.batching = self.batching.saturating_add(1);
            return Some(next);
        }
        self.batching = 1;
        self.queue.at_or_above(lane, 0)
    }
}

impl Scheduler for Deadline {
    fn push(&mut self, queued: Queued) {
        self.queue.push(queued);
    }

    fn pop(&mut self, now: Nanos, _device: &dyn Device, parts: &mut Vec<Queued>) -> Next {
        let Some(handle) = self.choose(now) else { return Next::Nothing };
        let whole = self.queue.take(handle, parts);
        self.last_end = whole.request.end();
        Next::Serve(whole)
    }

    fn len(&self) -> usize {
        self.queue.len()
    }

    fn merges_up_to(&self) -> u32 {
        self.queue.merges_up_to()
    }

    /// Once expired, only older requests of its direction precede it. Each of them, and it itself, may wait for as many
    /// consecutive batches of the other direction as are allowed, and for the rest of a batch.
    fn promise(&self, request: &Request) -> Promise {
        if request.prefetch && self.demand_first || !request.write && self.writes_starved == 0 {
            return Promise::Nothing;
        }
        let each = (self.writes_starved.max(1) as usize + 1) * self.batch as usize;
        Promise::Overtaken { after: self.expire[if request.write { WRITES } else { READS }], each, more: each }
    }
}
