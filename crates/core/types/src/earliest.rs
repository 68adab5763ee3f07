//! A deadline for each id, and the minimum over all of them.
//!
//! A tournament tree over an array: each node holds the earlier of its two children and that child's id. An update
//! climbs from the leaf and stops where nothing changes, without branches that depend on the times.
//!
//! Cost: an update is logarithmic in the ids, the minimum is constant. Memory: 32 to 64 bytes per id.

use crate::Nanos;

/// One deadline per id, initially [`Nanos::MAX`].
#[derive(Debug, Clone)]
pub struct Earliest {
    /// Node 1 is the root. The children of node `i` are the nodes `2 i` and `2 i + 1`, stored as pair `i`; the last
    /// nodes are the ids in order. A node equals its earlier child; the first child wins ties.
    pairs: Vec<[Node; 2]>,
    first: Node,
}

/// An id and its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Node {
    at: Nanos,
    number: u32,
}

impl Earliest {
    /// Deadlines for the ids below `count`.
    #[must_use]
    pub fn new(count: usize) -> Self {
        let half = count.next_power_of_two();
        let first_below = |node: usize| (node << (half.ilog2() - node.max(1).ilog2())) - half;
        let never = |node: usize| Node { at: Nanos::MAX, number: first_below(node.max(1)) as u32 };
        Self { pairs: (0..half).map(|node| [never(2 * node), never(2 * node + 1)]).collect(), first: never(1) }
    }

    /// The time of `number`.
    #[inline]
    #[must_use]
    pub fn of(&self, number: u32) -> Nanos {
        let node = self.pairs.len() + number as usize;
        if node > 1 {
            self.pairs[node / 2][node % 2].at
        } else {
            self.first.at
        }
    }

    /// The earliest time.
    #[inline]
    #[must_use]
    pub fn time(&self) -> Nanos {
        self.first.at
    }

    /// Sets the deadline of `number` to `at`.
    #[inline]
    pub fn set(&mut self, number: u32, at: Nanos) {
        let mut node = self.pairs.len() + number as usize;
        let mut value = Node { at, number };
        while node > 1 {
            let pair = &mut self.pairs[node / 2];
            if pair[node % 2] == value {
                return;
            }
            pair[node % 2] = value;
            let is_right = pair[1].at < pair[0].at;
            value.at = if is_right { pair[1].at } else { pair[0].at };
            value.number = if is_right { pair[1].number } else { pair[0].number };
            node /= 2;
        }
        self.first = value;
    }

    /// The id with the earliest deadline (the lowest id among ties), if that deadline is at or before `now`.
    #[inline]
    #[must_use]
    pub fn first_by(&self, now: Nanos) -> Option<u32> {
        (self.first.at <= now).then_some(self.first.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_a_list_of_times_has_it() {
        for count in [1usize, 2, 3, 5, 8, 13, 200] {
            let (mut fast, mut naive) = (Earliest::new(count), vec![Nanos::MAX; count]);
            let mut random = 1u64;
            for _ in 0..2_000 {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let (number, at) = ((random >> 33) as usize % count, random >> 60);
                let at = if at > 12 { Nanos::MAX } else { Nanos(at) };
                naive[number] = at;
                fast.set(number as u32, at);
                assert_eq!((fast.of(number as u32), Some(fast.time())), (at, naive.iter().min().copied()));
                for now in [0, 5, 12].map(Nanos) {
                    let numbers = (0u32..).zip(&naive).filter(|(_, at)| **at <= now);
                    let first = numbers.min_by_key(|(number, at)| (**at, *number)).map(|(number, _)| number);
                    assert_eq!(fast.first_by(now), first);
                }
            }
        }
    }
}
