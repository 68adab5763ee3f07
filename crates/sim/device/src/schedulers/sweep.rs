//! The requests of one sweep of the arm, in order of sector, then of arrival.
//!
//! Requests that arrive in the order of the sweep, as from a sequential reader, form a run: constant cost. Others go
//! through a heap: O(log n). No allocation after warm-up.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};

use super::Queued;

/// A queued request with its key: the heap's maximum is the first of the sweep.
#[derive(Debug, Clone)]
struct Entry<const DOWN: bool>(Queued);

impl<const DOWN: bool> Entry<DOWN> {
    #[inline]
    fn key(&self) -> (u64, u64) {
        let sector = self.0.request.sector;
        (if DOWN { !sector } else { sector }, self.0.sequence)
    }
}

impl<const DOWN: bool> PartialEq for Entry<DOWN> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<const DOWN: bool> Eq for Entry<DOWN> {}

impl<const DOWN: bool> PartialOrd for Entry<DOWN> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<const DOWN: bool> Ord for Entry<DOWN> {
    fn cmp(&self, other: &Self) -> Ordering {
        other.key().cmp(&self.key())
    }
}

/// One sweep: downward by sector number, or upward.
#[derive(Debug, Clone, Default)]
pub(super) struct Sweep<const DOWN: bool> {
    /// Already sorted: each had the largest key on arrival.
    run: VecDeque<Entry<DOWN>>,
    /// The others.
    heap: BinaryHeap<Entry<DOWN>>,
}

impl<const DOWN: bool> Sweep<DOWN> {
    #[inline]
    pub(super) fn push(&mut self, queued: Queued) {
        let entry = Entry(queued);
        // Sequence numbers increase, so an equal sector keeps the run sorted.
        if self.run.back().is_none_or(|last| last.key() < entry.key()) {
            self.run.push_back(entry);
        } else {
            self.heap.push(entry);
        }
    }

    #[inline]
    pub(super) fn pop(&mut self) -> Option<Queued> {
        let entry = match (self.run.front(), self.heap.peek()) {
            (Some(first), Some(top)) if top.key() < first.key() => self.heap.pop(),
            (Some(_), _) => self.run.pop_front(),
            (None, _) => self.heap.pop(),
        };
        entry.map(|entry| entry.0)
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.run.is_empty() && self.heap.is_empty()
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.run.len() + self.heap.len()
    }
}
