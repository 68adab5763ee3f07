//! The least bytes that a cache could have fetched for what was read: a cache that knows the whole order, may keep parts
//! of ranges and may keep none, and evicts the bytes whose next use is furthest (Belady, IBM Systems Journal 5(2), 1966;
//! each byte is a page of its own). Ranges that overlap in part count as different ones.

use std::collections::BinaryHeap;

use rustc_hash::FxHashMap;

use crate::named::Span;

/// Reads that are remembered, 4 bytes each; of more, no optimum is given.
const READS_MAX: usize = 1 << 26;

/// What was read, in order.
#[derive(Debug, Default)]
pub struct Reads {
    numbers: FxHashMap<Span, u32>,
    bytes: Vec<u64>,
    reads: Vec<u32>,
    has_more: bool,
}

impl Reads {
    /// Remembers a read.
    pub fn note(&mut self, span: Span) {
        if self.reads.len() == READS_MAX {
            self.has_more = true;
            return;
        }
        let next = self.bytes.len() as u32;
        let number = *self.numbers.entry(span).or_insert(next);
        if number == next {
            self.bytes.push(span.bytes());
        }
        self.reads.push(number);
    }

    /// The least bytes that a cache of `cache_bytes` fetches; `None` if there were too many reads. O(n log n).
    #[must_use]
    pub fn optimum(&self, cache_bytes: u64) -> Option<u64> {
        if self.has_more {
            return None;
        }
        let mut next_of = vec![u32::MAX; self.bytes.len()];
        let mut next = vec![u32::MAX; self.reads.len()];
        for (at, number) in self.reads.iter().enumerate().rev() {
            next[at] = std::mem::replace(&mut next_of[*number as usize], at as u32);
        }
        // Of each range: the bytes that are kept, and the next use.
        let mut kept = vec![(0_u64, u32::MAX); self.bytes.len()];
        let mut furthest: BinaryHeap<(u32, u32)> = BinaryHeap::new();
        let (mut used, mut fetched) = (0, 0);
        for (number, next) in self.reads.iter().zip(next) {
            let length = self.bytes[*number as usize];
            let own = &mut kept[*number as usize];
            fetched += length - own.0;
            used += length - own.0;
            *own = (length, next);
            furthest.push((next, *number));
            while used > cache_bytes {
                let Some((far, victim)) = furthest.peek().copied() else { break };
                let own = &mut kept[victim as usize];
                if own.0 == 0 || own.1 != far {
                    furthest.pop();
                    continue;
                }
                let gone = own.0.min(used - cache_bytes);
                own.0 -= gone;
                used -= gone;
            }
        }
        Some(fetched)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(letters: &str, bytes: u64) -> Reads {
        let mut reads = Reads::default();
        letters.bytes().for_each(|each| reads.note(Span { object: each.into(), start: 0, end: bytes }));
        reads
    }

    #[test]
    fn belady_by_hand() {
        // A loop of three through two frames: a and b are kept, c never.
        let reads = of("abcabcabc", 10);
        assert_eq!(reads.optimum(30), Some(30));
        assert_eq!(reads.optimum(0), Some(90));
        assert_eq!(reads.optimum(20), Some(50));
        // Half of a range is worth as much.
        assert_eq!(of("abab", 10).optimum(15), Some(25));
        assert_eq!(of("", 1).optimum(5), Some(0));
    }
}
