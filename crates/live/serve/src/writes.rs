//! Serialises changes of the backing that overlap, and separates them from reads of the same pages.
//!
//! A page read during a write could have either content, and two writes of a page could complete in either order: the
//! cache and the backing would then differ. Changes start in order, except those that have to wait.

use std::collections::BTreeMap;
use std::ops::Range;

#[derive(Debug)]
pub struct PendingChange {
    pub request: u64,
    pub pages: Range<u64>,
}

fn overlap(one: &Range<u64>, other: &Range<u64>) -> bool {
    one.start < other.end && other.start < one.end
}

#[derive(Debug, Default)]
pub struct Writes {
    waiting: Vec<PendingChange>,
    under_way: BTreeMap<u64, Range<u64>>,
}

impl Writes {
    /// Adds a change at the end.
    pub fn push(&mut self, change: PendingChange) {
        self.waiting.push(change);
    }

    /// Starts and returns the changes that can start now. `is_read` tells whether pages are being read.
    pub fn start(&mut self, is_read: impl Fn(&Range<u64>) -> bool) -> Vec<PendingChange> {
        let mut held: Vec<Range<u64>> = Vec::new();
        let (mut started, mut waiting) = (Vec::new(), Vec::new());
        for change in std::mem::take(&mut self.waiting) {
            let pages = &change.pages;
            let busy = self.under_way.values().chain(&held).any(|other| overlap(other, pages)) || is_read(pages);
            if busy {
                held.push(pages.clone());
                waiting.push(change);
            } else {
                self.under_way.insert(change.request, pages.clone());
                started.push(change);
            }
        }
        self.waiting = waiting;
        started
    }

    /// Removes the waiting changes.
    pub fn take_waiting(&mut self) -> Vec<PendingChange> {
        std::mem::take(&mut self.waiting)
    }

    /// Ends the change of `request`, and returns its pages.
    pub fn end(&mut self, request: u64) -> Option<Range<u64>> {
        self.under_way.remove(&request)
    }

    /// Whether any of `pages` is being changed or about to be.
    #[must_use]
    pub fn holds(&self, pages: &Range<u64>) -> bool {
        self.under_way
            .values()
            .chain(self.waiting.iter().map(|change| &change.pages))
            .any(|other| overlap(other, pages))
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.under_way.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_changes_go_one_after_another() {
        let mut writes = Writes::default();
        for (request, pages) in [(1, 0..4), (2, 3..6), (3, 5..8), (4, 9..10), (5, 20..21)] {
            writes.push(PendingChange { request, pages });
        }
        let started = |writes: &mut Writes| -> Vec<u64> {
            writes.start(|pages| pages.contains(&20)).iter().map(|change| change.request).collect()
        };
        // 3 overlaps no change in flight, but 2 comes first.
        assert_eq!(started(&mut writes), [1, 4]);
        assert!(writes.holds(&(7..9)) && !writes.holds(&(10..20)));
        assert_eq!((writes.end(1), writes.end(9)), (Some(0..4), None));
        assert_eq!(started(&mut writes), [2]);
        writes.end(2);
        assert_eq!(started(&mut writes), [3]);
    }
}
