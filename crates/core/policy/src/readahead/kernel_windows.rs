//! What the read-aheads of Linux 2.6.10 and 2.6.16 share: their keys, reading a window, and the congestion of the
//! queue.
//!
//! A queue of `nr_requests` requests is congested from `nr - nr/8 + 1` requests on, and until it has fewer than `nr -
//! nr/8 - nr/16 - 1` (Linux 2.6.10, drivers/block/ll_rw_blk.c, blk_queue_congestion_threshold; 113 and 103 of 128). A
//! request here is what one window or one demand adds to the queue, for as long as its first block is in flight.
//! Requests that the elevator would merge count as two; writes and requests of other levels are not counted.

use super::recent::Recent;
use super::{Asked, Cached, Found, ReadAhead, ReadAheadContext, Run, Size, FILES};
use headstart_types::{keys, KeyError, TypedKeys};

/// VM_MIN_READAHEAD of include/linux/mm.h, in KiB.
const MIN_KIB: u64 = 16;

/// Maximum queue length that a user may set, because each request takes an entry.
const QUEUE_MAX: u32 = 1 << 20;

keys! {
    /// Keys of `linux-2.6.10` and `linux-2.6.16`.
    pub struct KernelKeys {
        /// The device's `read_ahead_kb`: the largest window.
        #[serde(deserialize_with = "super::size::some_blocks")]
        pub read_ahead: Size = Size::kib(128),
        /// The device's `nr_requests`. A queue that holds seven eighths of them is congested. 0: no queue is ever
        /// congested.
        #[schemars(range(max = QUEUE_MAX))]
        pub nr_requests: u32 = 128,
        /// Maximum number of files with state. The least recently read one is forgotten first.
        #[schemars(range(min = 1))]
        pub files: u32 = FILES,
    }
}

/// Builds a read-ahead of either kernel from its keys. `new` takes the smallest and the largest window in blocks, the
/// queue's requests, the files, and the frames of the cache.
///
/// # Errors
/// None.
pub(super) fn built<P: ReadAhead + 'static>(
    keys: &TypedKeys,
    context: &ReadAheadContext,
    new: impl Fn(u64, u64, u32, usize, usize) -> P,
) -> Result<Box<dyn ReadAhead>, KeyError> {
    let keys: &KernelKeys = keys.get();
    let max = keys.read_ahead.blocks(context.block_bytes);
    let min = Size::kib(MIN_KIB).blocks(context.block_bytes);
    Ok(Box::new(new(min, max, keys.nr_requests, keys.files as usize, context.frames as usize)))
}

/// The requests in flight, as far as a read-ahead can know them.
#[derive(Debug)]
pub(super) struct Queue {
    /// First blocks of the requests. Completed ones are removed only when the queue looks full.
    requests: Recent<(u32, u64), ()>,
    on: usize,
    off: usize,
    congested: bool,
}

impl Queue {
    /// The queue of a device with `nr_requests` (0: never congested). Each request in flight has at least one of
    /// `frames` frames.
    pub fn new(nr_requests: u32, frames: usize) -> Self {
        let nr = nr_requests as usize;
        let on = match nr {
            0 => usize::MAX,
            _ => (nr - nr / 8 + 1).min(nr),
        };
        // Beyond twice the threshold one more request changes nothing.
        let requests = Recent::new((nr.max(1) * 2).min(frames));
        Self { requests, on, off: (nr - nr / 8).saturating_sub(nr / 16 + 1).max(1), congested: false }
    }

    /// Records an issued request that begins with this block.
    pub fn issued(&mut self, file: u32, first: u64) {
        if self.on < usize::MAX {
            self.requests.get_or_default((file, first));
        }
    }

    /// Whether the queue is congested now.
    pub fn congested(&mut self, cached: &dyn Cached) -> bool {
        if self.requests.len() >= if self.congested { self.off } else { self.on } {
            let here = |&(file, index): &(u32, u64)| cached.is_resident(file, index) || !cached.is_cached(file, index);
            let gone: Vec<(u32, u64)> = self.requests.keys().filter(here).collect();
            for request in gone {
                self.requests.remove(request);
            }
        }
        let limit = if self.congested { self.off } else { self.on };
        self.congested = self.requests.len() >= limit;
        self.congested
    }

    /// Number of requests remembered.
    pub fn remembered(&self) -> usize {
        self.requests.len()
    }
}

/// One request in progress and the windows that it has opened.
pub(super) struct Pass<'a> {
    pub asked: &'a Asked,
    pub cached: &'a dyn Cached,
    pub queue: &'a mut Queue,
    pub prefetch: &'a mut Vec<Run>,
    /// Index in `prefetch` of this request's first run.
    pub opened: usize,
}

impl Pass<'_> {
    /// Whether a page is resident, in flight, or in a window of this request.
    pub fn is_cached(&self, index: u64) -> bool {
        let named = |run: &Run| (run.first..run.end()).contains(&index);
        self.prefetch[self.opened..].iter().any(named) || self.cached.is_cached(self.asked.file, index)
    }

    /// Whether the queue accepts no more windows.
    pub fn congested(&mut self) -> bool {
        self.queue.congested(self.cached)
    }

    /// The kernel's `__do_page_cache_readahead`: reads the uncached pages of `start..start + size` that are in the
    /// file, and returns their number.
    pub fn read(&mut self, start: u64, size: u64) -> u64 {
        let file = self.asked.file;
        let end = start.saturating_add(size).min(self.cached.file_blocks(file).unwrap_or(u64::MAX));
        let absent: Vec<u64> = (start..end).filter(|index| !self.is_cached(*index)).collect();
        if !absent.is_empty() {
            self.prefetch.push(Run::between(file, start, end));
        }
        absent.len() as u64
    }

    /// Adds the requests of this finished pass to the queue.
    pub fn issue(&mut self, found: &[Found]) {
        let file = self.asked.file;
        let absent = |index: u64| !self.cached.is_cached(file, index);
        let mut begins: Vec<u64> = self.prefetch[self.opened..]
            .iter()
            .filter_map(|run| (run.first..run.end()).find(|at| absent(*at)))
            .collect();
        // A demand that no window covers is represented by its first page.
        let demanded = (self.asked.first..self.asked.end()).zip(found).find(|(index, found)| {
            let named = |run: &Run| (run.first..run.end()).contains(index);
            !found.is_hit() && !self.prefetch[self.opened..].iter().any(named)
        });
        begins.extend(demanded.map(|(index, _)| index));
        begins.dedup();
        begins.into_iter().for_each(|first| self.queue.issued(file, first));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Blocks below this one are in flight.
    struct Below(u64);

    impl Cached for Below {
        fn is_cached(&self, _: u32, index: u64) -> bool {
            index < self.0
        }

        fn is_resident(&self, _: u32, _: u64) -> bool {
            false
        }

        fn file_blocks(&self, _: u32) -> Option<u64> {
            None
        }

        fn frames(&self) -> u32 {
            1000
        }
    }

    #[test]
    fn a_queue_of_128_is_congested_from_113_down_to_103() {
        let mut queue = Queue::new(128, 1000);
        (0..112).for_each(|index| queue.issued(0, index));
        assert!(!queue.congested(&Below(1000)));
        queue.issued(0, 112);
        assert!(queue.congested(&Below(1000)));
        // The requests of blocks 103 to 112 have arrived: 103 are left. One more, and it is not congested.
        assert!(queue.congested(&Below(103)) && queue.remembered() == 103);
        assert!(!queue.congested(&Below(102)));
        // To be congested again it takes 113.
        (200..210).for_each(|index| queue.issued(0, index));
        assert!(!queue.congested(&Below(1000)) && queue.remembered() == 112);
        queue.issued(1, 0);
        assert!(queue.congested(&Below(1000)));
    }

    #[test]
    fn small_queues_and_none() {
        let mut one = Queue::new(1, 1000);
        assert!(!one.congested(&Below(9)));
        one.issued(0, 0);
        assert!(one.congested(&Below(9)) && !one.congested(&Below(0)));
        let mut none = Queue::new(0, 1000);
        (0..1000).for_each(|index| none.issued(0, index));
        assert!(!none.congested(&Below(1000)) && none.remembered() == 0);
    }
}
