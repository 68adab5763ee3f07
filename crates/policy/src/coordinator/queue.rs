//! A bounded queue of block names, least recently inserted or checked first: PFC's bypass and readmore queues.
//!
//! Source: zhang-pfc, section 3.2 ("least recently inserted or re-accessed blocks are evicted when the queue is
//! full"). No data, only names. Blocks enter one by one from the first to the last: one that is there already becomes
//! the newest, and a range longer than the queue leaves its tail.
//! Cost: constant per block of a range; at most the queue's length per range. About 60 bytes an entry.

use std::ops::RangeInclusive;

use crate::readahead::recent::Recent;

/// Names of blocks, by file and index.
#[derive(Debug)]
pub(super) struct BlockQueue {
    capacity: u64,
    blocks: Recent<(u32, u64), ()>,
}

impl BlockQueue {
    /// For `capacity` names, at least 1.
    pub fn new(capacity: u32) -> Self {
        let capacity = capacity.max(1);
        Self { capacity: u64::from(capacity), blocks: Recent::new(capacity as usize) }
    }

    pub fn len(&self) -> usize {
        self.blocks.len()
    }

    /// Inserts the blocks of `range`, or as many of its last as the queue holds.
    pub fn insert(&mut self, file: u32, range: RangeInclusive<u64>) {
        let (first, last) = range.into_inner();
        for index in first.max(last.saturating_sub(self.capacity - 1))..=last {
            self.blocks.get_or_default((file, index));
        }
    }

    /// Whether any block of `range` is in the queue. Those that are become the newest, the last of the range last.
    pub fn check(&mut self, file: u32, range: RangeInclusive<u64>) -> bool {
        let mut hit = false;
        if range.end().saturating_sub(*range.start()) < self.blocks.len() as u64 {
            for index in range {
                hit |= self.blocks.get((file, index)).is_some();
            }
            return hit;
        }
        // A request longer than the queue: look at the queue's few blocks instead.
        let inside = |key: &(u32, u64)| key.0 == file && range.contains(&key.1);
        let mut inside: Vec<(u32, u64)> = self.blocks.keys().filter(inside).collect();
        inside.sort_unstable();
        for key in &inside {
            self.blocks.get(*key);
        }
        !inside.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn oldest_first(mut queue: BlockQueue) -> Vec<u64> {
        // Push the others out one by one; what is still there after n insertions is younger than the n oldest.
        let names: Vec<u64> = queue.blocks.keys().map(|key| key.1).collect();
        let mut order = Vec::new();
        let free = queue.capacity - names.len() as u64;
        for other in 0..queue.capacity {
            queue.insert(u32::MAX, other..=other);
            let gone = |index: &&u64| !order.contains(*index) && queue.blocks.peek((0, **index)).is_none();
            let gone: Vec<u64> = names.iter().filter(gone).copied().collect();
            assert_eq!(gone.len(), usize::from(other >= free));
            order.extend(gone);
        }
        order
    }

    #[test]
    fn a_check_that_hits_makes_newest_and_one_that_does_not_changes_nothing() {
        let mut queue = BlockQueue::new(5);
        queue.insert(0, 1..=4);
        assert!(!queue.check(0, 5..=6) && !queue.check(1, 1..=4));
        assert!(queue.check(0, 0..=2)); // 1, 2 behind 3, 4
        queue.insert(0, 6..=6);
        assert_eq!(oldest_first(queue), [3, 4, 1, 2, 6]);
    }

    #[test]
    fn a_range_longer_than_the_queue_is_checked_in_the_same_order() {
        let mut queue = BlockQueue::new(4);
        for index in [9, 3, 200, 5] {
            queue.insert(0, index..=index);
        }
        assert!(queue.check(0, 0..=100)); // 3, 5, 9 in this order behind 200
        assert_eq!(oldest_first(queue), [200, 3, 5, 9]);
    }

    #[test]
    fn an_overlong_range_keeps_its_tail_and_a_name_that_is_there_becomes_the_newest() {
        let mut queue = BlockQueue::new(3);
        queue.insert(0, 0..=9);
        queue.insert(0, 7..=7);
        assert_eq!(oldest_first(queue), [8, 9, 7]);
        let mut queue = BlockQueue::new(3);
        queue.insert(0, 0..=u64::MAX);
        assert_eq!(oldest_first(queue), [u64::MAX - 2, u64::MAX - 1, u64::MAX]);
    }
}
