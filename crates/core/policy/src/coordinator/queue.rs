//! A bounded queue of block names in order of last insertion or check: PFC's bypass and readmore queues.
//!
//! Source: zhang-pfc, section 3.2 ("least recently inserted or re-accessed blocks are evicted when the queue is full").
//! It holds names, no data. Blocks enter in ascending order; one that is present already becomes the newest, and of a
//! range longer than the queue only the tail remains. Consecutive names that entered together are stored as one run,
//! which is split when only a part of it is found.
//!
//! Cost: logarithmic per run that a range meets. About 80 bytes per run.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

/// Names of blocks, by file and index.
#[derive(Debug)]
pub(super) struct BlockQueue {
    capacity: u64,
    len: u64,
    /// Key: file and first index of a run. Value: its last index and its age. No two runs overlap.
    runs: BTreeMap<(u32, u64), (u64, u64)>,
    /// Ages, files and first indices of the runs. Within a run the first block is the oldest.
    by_age: BTreeSet<(u64, u32, u64)>,
    /// The latest age given to a run; a greater age is newer.
    age: u64,
    /// The parts of a range found by the last `take`, in descending order.
    found: Vec<(u64, u64)>,
}

impl BlockQueue {
    /// A queue for `capacity` names, at least 1.
    pub fn new(capacity: u32) -> Self {
        let capacity = u64::from(capacity.max(1));
        Self { capacity, len: 0, runs: BTreeMap::new(), by_age: BTreeSet::new(), age: 0, found: Vec::new() }
    }

    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// Inserts the blocks of `range`, or only its last ones if the queue holds fewer.
    pub fn insert(&mut self, file: u32, range: RangeInclusive<u64>) {
        let (first, last) = range.into_inner();
        let first = first.max(last.saturating_sub(self.capacity - 1));
        self.take(file, first, last);
        self.age += 1;
        self.push(file, first, last, self.age);
        while self.len > self.capacity {
            self.forget_oldest(self.len - self.capacity);
        }
    }

    /// Whether any block of `range` is in the queue. Blocks found become the newest, the last of the range newest of
    /// all.
    pub fn check(&mut self, file: u32, range: RangeInclusive<u64>) -> bool {
        let (first, last) = range.into_inner();
        self.take(file, first, last);
        self.age += 1;
        let found = std::mem::take(&mut self.found);
        found.iter().for_each(|(first, last)| self.push(file, *first, *last, self.age));
        self.found = found;
        !self.found.is_empty()
    }

    /// Adds a run of names that are absent.
    fn push(&mut self, file: u32, first: u64, last: u64, age: u64) {
        self.runs.insert((file, first), (last, age));
        self.by_age.insert((age, file, first));
        self.len += last - first + 1;
    }

    fn remove(&mut self, file: u32, first: u64) -> Option<(u64, u64)> {
        let (last, age) = self.runs.remove(&(file, first))?;
        self.by_age.remove(&(age, file, first));
        self.len -= last - first + 1;
        Some((last, age))
    }

    /// Removes the names of a range and notes in `found` which parts were present.
    fn take(&mut self, file: u32, first: u64, last: u64) {
        self.found.clear();
        while let Some((&(_, begin), &(end, _))) = self.runs.range((file, 0)..=(file, last)).next_back() {
            if end < first {
                return;
            }
            let Some((_, age)) = self.remove(file, begin) else { return };
            self.found.push((begin.max(first), end.min(last)));
            if end > last {
                self.push(file, last + 1, end, age);
            }
            if begin < first {
                return self.push(file, begin, first - 1, age);
            }
        }
    }

    /// Drops the oldest names, at most `most` and from one run.
    fn forget_oldest(&mut self, most: u64) {
        let Some(&(_, file, first)) = self.by_age.first() else { return };
        let Some((last, age)) = self.remove(file, first) else { return };
        if last - first >= most {
            self.push(file, first + most, last, age);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn oldest_first(queue: &BlockQueue) -> Vec<(u32, u64)> {
        let names = |(_, file, first): &(u64, u32, u64)| {
            let file = *file;
            (*first..=queue.runs[&(file, *first)].0).map(move |index| (file, index))
        };
        queue.by_age.iter().flat_map(names).collect()
    }

    fn indices(queue: &BlockQueue) -> Vec<u64> {
        oldest_first(queue).into_iter().map(|(_, index)| index).collect()
    }

    #[test]
    fn a_check_that_hits_makes_newest_and_one_that_does_not_changes_nothing() {
        let mut queue = BlockQueue::new(5);
        queue.insert(0, 1..=4);
        assert!(!queue.check(0, 5..=6) && !queue.check(1, 1..=4));
        assert!(queue.check(0, 0..=2)); // 1, 2 behind 3, 4
        queue.insert(0, 6..=6);
        assert_eq!(indices(&queue), [3, 4, 1, 2, 6]);
    }

    #[test]
    fn a_range_longer_than_the_queue_is_checked_in_the_same_order() {
        let mut queue = BlockQueue::new(4);
        for index in [9, 3, 200, 5] {
            queue.insert(0, index..=index);
        }
        assert!(queue.check(0, 0..=100)); // 3, 5, 9 in this order behind 200
        assert_eq!(indices(&queue), [200, 3, 5, 9]);
    }

    #[test]
    fn an_overlong_range_keeps_its_tail_and_a_name_that_is_there_becomes_the_newest() {
        let mut queue = BlockQueue::new(3);
        queue.insert(0, 0..=9);
        queue.insert(0, 7..=7);
        assert_eq!(indices(&queue), [8, 9, 7]);
        let mut queue = BlockQueue::new(3);
        queue.insert(0, 0..=u64::MAX);
        assert_eq!(indices(&queue), [u64::MAX - 2, u64::MAX - 1, u64::MAX]);
        assert!(queue.check(0, 0..=u64::MAX));
    }

    proptest! {
        /// The same block by block, in a list.
        #[test]
        fn as_a_list_of_names_has_it(
            capacity in 1u32..9,
            steps in prop::collection::vec((any::<bool>(), 0u32..2, prop_oneof![0u64..24, u64::MAX - 9..=u64::MAX], 0u64..8), 1..80),
        ) {
            let (mut queue, mut naive) = (BlockQueue::new(capacity), Vec::<(u32, u64)>::new());
            for (inserts, file, first, more) in steps {
                let range = first..=first.saturating_add(more);
                let mut hit = false;
                for index in range.clone() {
                    let home = naive.iter().position(|name| *name == (file, index));
                    home.map(|home| naive.remove(home));
                    hit |= home.is_some();
                    if home.is_some() || inserts {
                        naive.push((file, index));
                    }
                    if naive.len() > capacity as usize {
                        naive.remove(0);
                    }
                }
                if inserts {
                    queue.insert(file, range);
                } else {
                    prop_assert_eq!(queue.check(file, range), hit);
                }
                prop_assert_eq!(oldest_first(&queue), naive.clone());
                prop_assert_eq!(queue.len(), naive.len());
            }
        }
    }
}
