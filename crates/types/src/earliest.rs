//! Times by number, of which the earliest is known: what a calendar is made of where each number has one time.
//!
//! A tree over an array, each of whose nodes has the earlier of the two times below it with its number. A change goes up as
//! far as it matters, without a branch that depends on the times; nothing ever goes down.
//! Cost: logarithmic in the numbers for a change, constant for the earliest. Memory: 32 to 64 bytes a number.

use crate::Nanos;

/// A time for each number, [`Nanos::MAX`] at first.
#[derive(Debug, Clone)]
pub struct Earliest {
    /// The second half has the numbers in order; before it node `i` is the earlier one of the nodes `2 i` and `2 i + 1`, the
    /// first of them where both have one time.
    nodes: Vec<Node>,
}

/// A number and its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Node {
    at: Nanos,
    number: u32,
}

impl Earliest {
    /// For the numbers below `count`.
    #[must_use]
    pub fn new(count: usize) -> Self {
        let half = count.next_power_of_two();
        let first_below = |node: usize| (node << (half.ilog2() - node.max(1).ilog2())) - half;
        let never = |node: usize| Node { at: Nanos::MAX, number: first_below(node.max(1)) as u32 };
        Self { nodes: (0..2 * half).map(never).collect() }
    }

    /// The time of `number`.
    #[inline]
    #[must_use]
    pub fn of(&self, number: u32) -> Nanos {
        self.nodes[self.nodes.len() / 2 + number as usize].at
    }

    /// The earliest time.
    #[inline]
    #[must_use]
    pub fn time(&self) -> Nanos {
        self.nodes[1].at
    }

    /// From now on `number` has the time `at`.
    #[inline]
    pub fn set(&mut self, number: u32, at: Nanos) {
        let mut node = self.nodes.len() / 2 + number as usize;
        self.nodes[node].at = at;
        while node > 1 {
            node /= 2;
            let (left, right) = (self.nodes[2 * node], self.nodes[2 * node + 1]);
            let is_right = right.at < left.at;
            let at = if is_right { right.at } else { left.at };
            let number = if is_right { right.number } else { left.number };
            if self.nodes[node] == (Node { at, number }) {
                return;
            }
            self.nodes[node] = Node { at, number };
        }
    }

    /// The number with the earliest time, the lowest of several, if that is not after `now`.
    #[inline]
    #[must_use]
    pub fn first_by(&self, now: Nanos) -> Option<u32> {
        let Node { at, number } = self.nodes[1];
        (at <= now).then_some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_a_list_of_times_has_it() {
        for count in [1usize, 2, 3, 5, 8, 13] {
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
