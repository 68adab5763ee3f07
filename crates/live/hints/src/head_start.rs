//! How long the start of a command is delayed, so that a disk with an arm can read ahead undisturbed; only if hints are
//! trusted.
//!
//! A read of the command in the middle of a sweep costs two seeks. While the command waits, there are none, but it does
//! not compute either. Therefore it waits until reading the rest takes no longer than all of its computing: then the
//! disk can stay ahead of it until the end. The time for the rest is estimated from the pages of files that have come
//! so far; before any has come, it is the time that the recorded command waited for all. Metadata comes first, up to a
//! megabyte per read, and says nothing about them.
//!
//! Bound: the command waits no longer than the recorded command waited for its reads. A command that computes for
//! longer than it waits is started at once.

use headstart_types::Nanos;

use super::list::HintList;

/// What to read before the command is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeadStart {
    /// How long the recorded command waited for its reads, and the rest of its time.
    waited: Nanos,
    computed: Nanos,
    pages: u64,
}

/// The number of pages of files and of metadata that have been read, and of those that need not be: cached pages are
/// known at once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Settled {
    pub of_files: u64,
    pub metadata: u64,
    pub unneeded: u64,
}

impl HeadStart {
    /// The head start of a command with these hints, which name `pages` pages; `None` unless they are trusted and the
    /// disk has an arm.
    #[must_use]
    pub fn of(trusted: bool, arm: bool, list: &HintList, pages: u64) -> Option<Self> {
        (trusted && arm).then(|| Self::new(list, pages))
    }

    fn new(list: &HintList, pages: u64) -> Self {
        let waits: u64 = list.ranges.iter().fold(0, |sum, range| sum.saturating_add(range.wait_ns));
        // Waits of several processes overlap.
        let waited = Nanos(waits.min(list.elapsed_ns));
        Self { waited, computed: Nanos(list.elapsed_ns - waited.0), pages }
    }

    /// Whether to start the command after this time.
    #[must_use]
    pub fn is_over(&self, spent: Nanos, Settled { of_files, metadata, unneeded }: Settled) -> bool {
        let left = u128::from(self.pages.saturating_sub(of_files + metadata + unneeded));
        let rest = match of_files {
            0 => u128::from(self.waited.0),
            _ => u128::from(spent.0) * left / u128::from(of_files),
        };
        left == 0 || spent >= self.waited || rest <= u128::from(self.computed.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::list::HintedRange;

    fn of(elapsed: u64, waits: &[u64], pages: u64) -> HeadStart {
        let ranges = waits.iter().map(|wait_ns| HintedRange { wait_ns: *wait_ns, ..HintedRange::default() }).collect();
        HeadStart::new(&HintList { ranges, elapsed_ns: elapsed, ..HintList::default() }, pages)
    }

    fn settled(of_files: u64, metadata: u64, unneeded: u64) -> Settled {
        Settled { of_files, metadata, unneeded }
    }

    #[test]
    fn it_is_over_when_the_rest_takes_no_longer_than_thinking_by_hand() {
        // It waits for 80 of 100, and thinks for 20.
        let start = of(100, &[50, 30], 10);
        assert_eq!(start, HeadStart { waited: Nanos(80), computed: Nanos(20), pages: 10 });
        let is_over = |spent, of_files, unneeded| start.is_over(Nanos(spent), settled(of_files, 0, unneeded));
        assert!(!is_over(0, 0, 0) && !is_over(79, 0, 9) && is_over(80, 0, 0));
        // Six pages in 30: four more take 20. Five: 30.
        assert!(is_over(30, 6, 0) && !is_over(30, 5, 0));
        // Seven of ten pages are cached: the one that was read tells how long the other two take.
        assert!(is_over(10, 1, 7) && !is_over(11, 1, 7));
        // It computes for longer than it waits; there is nothing to read.
        assert!([of(100, &[50], 10), of(100, &[90], 0)].iter().all(|start| start.is_over(Nanos(0), settled(0, 0, 0))));
        assert!(is_over(0, 0, 10));
        // Six pages of metadata have come with one read in 9, and four pages of files are left, each at its own place.
        assert!(!start.is_over(Nanos(9), settled(0, 6, 0)) && !start.is_over(Nanos(19), settled(1, 6, 0)));
        assert!(start.is_over(Nanos(19), settled(2, 6, 0)));
    }

    proptest! {
        #[test]
        fn it_is_no_longer_than_the_recorded_waits(
            elapsed in 0..1_000_000u64,
            waits in prop::collection::vec(0..1_000_000u64, 0..20),
            pages in 0..1000u64,
            (of_files, metadata, unneeded) in (0..1000u64, 0..1000u64, 0..1000u64),
        ) {
            let (start, settled) = (of(elapsed, &waits, pages), settled(of_files, metadata, unneeded));
            let waited = waits.iter().sum::<u64>().min(elapsed);
            prop_assert!(start.is_over(Nanos(waited), settled));
            // A command that thinks longer waits no longer.
            let longer = of(elapsed + 1000, &waits, pages);
            prop_assert!(waited == elapsed || !start.is_over(Nanos(7), settled) || longer.is_over(Nanos(7), settled));
        }
    }
}
