//! When each process acts next of its own accord.
//!
//! A heap of times that is cleaned when it is looked at: an entry counts only while it says what the process's own time
//! says. Cost: logarithmic in the processes that have a time, whenever one changes.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use headstart_types::Nanos;

/// The times at which processes are due.
#[derive(Debug, Default)]
pub struct Calendar {
    heap: BinaryHeap<Reverse<(Nanos, u32)>>,
    /// By process; [`Nanos::MAX`] for one that is not due of its own accord.
    due: Vec<Nanos>,
}

impl Calendar {
    /// For `processes` processes, none of which is due.
    #[must_use]
    pub fn new(processes: usize) -> Self {
        Self { heap: BinaryHeap::with_capacity(processes), due: vec![Nanos::MAX; processes] }
    }

    /// From now on `process` is due at `at`, and at no other time.
    #[inline]
    pub fn set(&mut self, process: u32, at: Option<Nanos>) {
        let at = at.unwrap_or(Nanos::MAX);
        let due = &mut self.due[process as usize];
        if *due != at {
            *due = at;
            if at != Nanos::MAX {
                self.heap.push(Reverse((at, process)));
            }
        }
    }

    /// The earliest time at which a process is due.
    #[inline]
    pub fn next(&mut self) -> Option<Nanos> {
        while let Some(Reverse((at, process))) = self.heap.peek() {
            if self.due[*process as usize] == *at {
                return Some(*at);
            }
            self.heap.pop();
        }
        None
    }

    /// Takes the processes that are due by `now`, in the order of their numbers.
    #[inline]
    pub fn take_due(&mut self, now: Nanos, into: &mut Vec<u32>) {
        into.clear();
        while let Some(Reverse((_, process))) = self.next().filter(|at| *at <= now).and_then(|_| self.heap.pop()) {
            self.due[process as usize] = Nanos::MAX;
            into.push(process);
        }
        into.sort_unstable();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_word_counts() {
        let mut calendar = Calendar::new(3);
        let mut due = Vec::new();
        calendar.set(2, Some(Nanos(5)));
        calendar.set(0, Some(Nanos(5)));
        calendar.set(1, Some(Nanos(3)));
        // Put off, and put back: there is one time, not two.
        calendar.set(1, Some(Nanos(9)));
        calendar.set(2, Some(Nanos(6)));
        calendar.set(2, Some(Nanos(5)));
        assert_eq!(calendar.next(), Some(Nanos(5)));
        calendar.take_due(Nanos(5), &mut due);
        assert_eq!((&due[..], calendar.next()), (&[0, 2][..], Some(Nanos(9))));
        calendar.set(1, None);
        assert_eq!(calendar.next(), None);
        calendar.take_due(Nanos(99), &mut due);
        assert!(due.is_empty());
    }
}
