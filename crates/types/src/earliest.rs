//! Times by number, of which the earliest is known: what a calendar is made of where each number has one time.
//!
//! A tree of minima over an array. A change goes up as far as it matters, without a branch that depends on the times.
//! Cost: logarithmic in the numbers for a change or a search, constant for the earliest time. Memory: 16 to 32 bytes a number.

use crate::Nanos;

/// A time for each number, [`Nanos::MAX`] at first.
#[derive(Debug, Clone)]
pub struct Earliest {
    /// The second half has the times; before it node `i` has the earlier one of the nodes `2 i` and `2 i + 1`.
    nodes: Vec<Nanos>,
}

impl Earliest {
    /// For the numbers below `count`.
    #[must_use]
    pub fn new(count: usize) -> Self {
        Self { nodes: vec![Nanos::MAX; 2 * count.next_power_of_two()] }
    }

    /// The time of `number`.
    #[inline]
    #[must_use]
    pub fn of(&self, number: u32) -> Nanos {
        self.nodes[self.nodes.len() / 2 + number as usize]
    }

    /// The earliest time.
    #[inline]
    #[must_use]
    pub fn time(&self) -> Nanos {
        self.nodes[1]
    }

    /// From now on `number` has the time `at`.
    #[inline]
    pub fn set(&mut self, number: u32, at: Nanos) {
        let mut node = self.nodes.len() / 2 + number as usize;
        self.nodes[node] = at;
        while node > 1 {
            let earlier = self.nodes[node].min(self.nodes[node ^ 1]);
            node /= 2;
            if self.nodes[node] == earlier {
                return;
            }
            self.nodes[node] = earlier;
        }
    }

    /// The lowest number whose time is not after `now`.
    #[inline]
    #[must_use]
    pub fn first_by(&self, now: Nanos) -> Option<u32> {
        let half = self.nodes.len() / 2;
        let mut node = 1;
        while node < half {
            node = 2 * node + usize::from(self.nodes[2 * node] > now);
        }
        (self.nodes[node] <= now).then(|| (node - half) as u32)
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
                    let first = naive.iter().position(|at| *at <= now).map(|number| number as u32);
                    assert_eq!(fast.first_by(now), first);
                }
            }
        }
    }
}
