//! The LRU stack as a sequence of reference times: each block is marked at the time of its last reference.
//!
//! Cost: logarithmic per reference; times are compacted when they are used up, which is constant per reference on
//! average. Memory: some 30 bytes per distinct block.

use std::collections::HashMap;
use std::hash::Hash;

use super::marks::Marks;
use crate::hash::Build;

/// Minimum number of times between compactions.
const TIMES_MIN: usize = 1 << 16;

/// An LRU stack of blocks identified by `K`.
#[derive(Debug)]
pub struct LruStack<K> {
    /// The time of each block's last reference.
    last: HashMap<K, u32, Build>,
    marks: Marks,
    now: u32,
}

impl<K: Hash + Eq + Copy> Default for LruStack<K> {
    fn default() -> Self {
        Self { last: HashMap::default(), marks: Marks::first(0, TIMES_MIN), now: 0 }
    }
}

impl<K: Hash + Eq + Copy> LruStack<K> {
    /// References `block` and returns its stack distance, from 1; `None` for its first reference.
    pub fn reference(&mut self, block: K) -> Option<u32> {
        if self.now as usize == self.marks.capacity() {
            self.pack();
        }
        let now = self.now;
        self.now += 1;
        let distance = match self.last.insert(block, now) {
            Some(before) => {
                let distance = self.marks.from(before as usize);
                self.marks.remove(before as usize);
                Some(distance)
            }
            None => None,
        };
        self.marks.insert(now as usize);
        distance
    }

    /// Removes `block` from the stack, as if it had never been referenced.
    pub fn forget(&mut self, block: K) {
        if let Some(before) = self.last.remove(&block) {
            self.marks.remove(before as usize);
        }
    }

    /// Number of distinct blocks.
    #[must_use]
    pub fn len(&self) -> usize {
        self.last.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.last.is_empty()
    }

    /// Renumbers the times without gaps, with room for three times as many.
    fn pack(&mut self) {
        let ranks = self.marks.ranks();
        for time in self.last.values_mut() {
            *time = self.marks.rank(&ranks, *time as usize);
        }
        let live = self.last.len();
        self.marks = Marks::first(live, (live * 4).max(TIMES_MIN));
        self.now = live as u32;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn distances_by_hand() {
        let mut stack = LruStack::default();
        let found: Vec<Option<u32>> = "abcab bda".bytes().map(|block| stack.reference(block)).collect();
        //                     a     b     c     a        b
        assert_eq!(found[..5], [None, None, None, Some(3), Some(3)]);
        //                      ' '   b        d     a
        assert_eq!(found[5..], [None, Some(2), None, Some(4)]);
        stack.forget(b'd');
        assert_eq!((stack.len(), stack.reference(b'b')), (4, Some(2)));
    }

    proptest! {
        #[test]
        fn distances_are_those_of_a_list(
            steps in prop::collection::vec((0u8..60, 0u32..8), 1..400),
            repeats in 1usize..400,
        ) {
            let (mut stack, mut list) = (LruStack::default(), Vec::<u8>::new());
            // Enough repetitions that times are compacted.
            for (block, forget) in steps.iter().cycle().take(steps.len() * repeats) {
                let place = list.iter().rev().position(|each| each == block);
                list.retain(|each| each != block);
                if *forget == 0 {
                    stack.forget(*block);
                    continue;
                }
                list.push(*block);
                prop_assert_eq!(stack.reference(*block), place.map(|place| place as u32 + 1));
            }
        }
    }
}
