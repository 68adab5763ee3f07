//! CSCAN: sweep upward by sector number, then start again from the lowest.
//!
//! The sweep stands at the first sector of the request served last. Next is the lowest queued request at or
//! above it, in order of arrival among equals; where none is left above, the sweep starts again at the lowest.
//! A drive that reads ahead likes the constant direction (kimbrel96 section 4.4 uses CSCAN for that reason).
//!
//! The sweep stands at a request's first sector, not at the head (its end), so that two requests for one
//! sector follow each other instead of lying a whole sweep apart.
//!
//! Kept as two heaps, this sweep and the next: O(log n) a request, no allocation once warm. A request waits at
//! most for the rest of this sweep and the next, except behind an endless run of requests for one sector.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::mem;

use headstart_types::Nanos;

use super::{Queued, Scheduler};
use crate::Device;

/// A queued request under its key: the heap's greatest is the lowest (sector, sequence).
#[derive(Debug, Clone)]
struct Entry(Queued);

impl Entry {
    fn key(&self) -> (u64, u64) {
        (self.0.request.sector, self.0.sequence)
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        other.key().cmp(&self.key())
    }
}

/// The circular sweep.
#[derive(Debug, Clone, Default)]
pub struct Cscan {
    /// Requests at or above `position`.
    this_sweep: BinaryHeap<Entry>,
    /// Requests below it.
    next_sweep: BinaryHeap<Entry>,
    /// First sector of the request served last.
    position: u64,
}

impl Scheduler for Cscan {
    #[inline]
    fn push(&mut self, queued: Queued) {
        let sweep = if queued.request.sector >= self.position { &mut self.this_sweep } else { &mut self.next_sweep };
        sweep.push(Entry(queued));
    }

    #[inline]
    fn pop(&mut self, _now: Nanos, _device: &dyn Device) -> Option<Queued> {
        if self.this_sweep.is_empty() {
            mem::swap(&mut self.this_sweep, &mut self.next_sweep);
        }
        let Entry(queued) = self.this_sweep.pop()?;
        self.position = queued.request.sector;
        Some(queued)
    }

    #[inline]
    fn len(&self) -> usize {
        self.this_sweep.len() + self.next_sweep.len()
    }
}
