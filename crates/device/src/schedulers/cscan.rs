//! CSCAN: sweep upward by sector number, then start again from the lowest.
//!
//! The sweep stands at the first sector of the request served last. Next is the lowest queued request at or
//! above it, in order of arrival among equals; where none is left above, the sweep starts again at the lowest.
//! A drive that reads ahead likes the constant direction (kimbrel96 section 4.4 uses CSCAN for that reason).
//!
//! The sweep stands at a request's first sector, not at the head (its end), so that two requests for one
//! sector follow each other instead of lying a whole sweep apart.
//!
//! Kept as this sweep and the next. Within a sweep, requests that come in rising order, as from a sequential
//! reader, form a run: constant cost. Others go through a heap: O(log n). No allocation once warm. A request
//! waits at most for the rest of this sweep and the next, except behind an endless run of requests for one sector.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};
use std::mem;

use headstart_types::Nanos;

use super::{Next, Queued, Scheduler};
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

/// The requests of one sweep, given up in order of (sector, sequence).
#[derive(Debug, Clone, Default)]
struct Sweep {
    /// In order already: each came with the greatest key of its time.
    run: VecDeque<Entry>,
    /// The others.
    heap: BinaryHeap<Entry>,
}

impl Sweep {
    #[inline]
    fn push(&mut self, entry: Entry) {
        // Sequence numbers rise, so an equal sector keeps the run in order.
        if self.run.back().is_none_or(|last| last.0.request.sector <= entry.0.request.sector) {
            self.run.push_back(entry);
        } else {
            self.heap.push(entry);
        }
    }

    #[inline]
    fn pop(&mut self) -> Option<Entry> {
        match (self.run.front(), self.heap.peek()) {
            (Some(first), Some(top)) if top.key() < first.key() => self.heap.pop(),
            (Some(_), _) => self.run.pop_front(),
            (None, _) => self.heap.pop(),
        }
    }

    fn len(&self) -> usize {
        self.run.len() + self.heap.len()
    }
}

/// The circular sweep.
#[derive(Debug, Clone, Default)]
pub struct Cscan {
    /// Requests at or above `position`.
    this_sweep: Sweep,
    /// Requests below it.
    next_sweep: Sweep,
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
    fn pop(&mut self, _now: Nanos, _device: &dyn Device, _parts: &mut Vec<Queued>) -> Next {
        let entry = match self.this_sweep.pop() {
            Some(entry) => entry,
            None => {
                mem::swap(&mut self.this_sweep, &mut self.next_sweep);
                match self.this_sweep.pop() {
                    Some(entry) => entry,
                    None => return Next::Nothing,
                }
            }
        };
        self.position = entry.0.request.sector;
        Next::Serve(entry.0)
    }

    #[inline]
    fn len(&self) -> usize {
        self.this_sweep.len() + self.next_sweep.len()
    }
}
