//! Changes of the backing: one after another where they overlap, and never beside a read of the same pages.
//!
//! A page that is read while it is being written could come back with either content, and two writes of one page could end in
//! either order: the cache would then hold what the backing does not. Changes start in their order, but for those that wait.

use std::collections::BTreeMap;
use std::ops::Range;

/// A change that waits.
#[derive(Debug)]
pub struct PendingChange {
    /// The request.
    pub request: u64,
    /// Its pages.
    pub pages: Range<u64>,
}

fn overlap(one: &Range<u64>, other: &Range<u64>) -> bool {
    one.start < other.end && other.start < one.end
}

/// The changes of one export.
#[derive(Debug, Default)]
pub struct Writes {
    waiting: Vec<PendingChange>,
    under_way: BTreeMap<u64, Range<u64>>,
}

impl Writes {
    /// Adds one behind the others.
    pub fn push(&mut self, change: PendingChange) {
        self.waiting.push(change);
    }

    /// Those that can start now, where `is_read` says that pages are being read; they are under way from now on.
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

    /// Takes out those that wait.
    pub fn take_waiting(&mut self) -> Vec<PendingChange> {
        std::mem::take(&mut self.waiting)
    }

    /// The change of `request` has ended; its pages.
    pub fn end(&mut self, request: u64) -> Option<Range<u64>> {
        self.under_way.remove(&request)
    }

    /// Whether pages are being changed, or are about to be.
    #[must_use]
    pub fn holds(&self, pages: &Range<u64>) -> bool {
        self.under_way
            .values()
            .chain(self.waiting.iter().map(|change| &change.pages))
            .any(|other| overlap(other, pages))
    }

    /// Whether there are none.
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
        // 3 overlaps nothing that is under way, but 2 comes first.
        assert_eq!(started(&mut writes), [1, 4]);
        assert!(writes.holds(&(7..9)) && !writes.holds(&(10..20)));
        assert_eq!((writes.end(1), writes.end(9)), (Some(0..4), None));
        assert_eq!(started(&mut writes), [2]);
        writes.end(2);
        assert_eq!(started(&mut writes), [3]);
    }
}
