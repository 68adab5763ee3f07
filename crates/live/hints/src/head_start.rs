//! How long a command waits until it is started, so that a disk with an arm reads ahead of it undisturbed: only where hints are trusted.
//!
//! Each read of the command that comes between those of a sweep costs the arm two ways. While the command waits there is none, but it
//! does not compute either. So it waits until reading the rest takes no longer than all that it has to compute: then the disk
//! can be ahead of it until the end. The time for the rest is judged by the pages that have come so far; before any has come it is the
//! time that the recorded command waited for all of them.
//!
//! Bound: it waits no longer than the recorded command waited for its reads. A command that computes for longer than it waits is started
//! at once.

use headstart_types::Nanos;

use super::list::HintList;

/// What is to be read before the command is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeadStart {
    /// What the recorded command waited for its reads, and what it did beside.
    waited: Nanos,
    computed: Nanos,
    pages: u64,
}

impl HeadStart {
    /// Of a command with these hints, which name `pages` pages: where they are trusted, on a disk with an arm.
    #[must_use]
    pub fn of(trusted: bool, arm: bool, list: &HintList, pages: u64) -> Option<Self> {
        (trusted && arm).then(|| Self::new(list, pages))
    }

    fn new(list: &HintList, pages: u64) -> Self {
        let waits: u64 = list.ranges.iter().fold(0, |sum, range| sum.saturating_add(range.wait_ns));
        // Those of several processes go on at the same time.
        let waited = Nanos(waits.min(list.elapsed_ns));
        Self { waited, computed: Nanos(list.elapsed_ns - waited.0), pages }
    }

    /// Whether the command is to be started, where after so long `read` pages have been read, and `unneeded` ones need not be: those that are
    /// in the page cache are known at once.
    #[must_use]
    pub fn is_over(&self, spent: Nanos, (read, unneeded): (u64, u64)) -> bool {
        let left = u128::from(self.pages.saturating_sub(read + unneeded));
        let rest = match read {
            0 => u128::from(self.waited.0),
            _ => u128::from(spent.0) * left / u128::from(read),
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

    #[test]
    fn it_is_over_when_the_rest_takes_no_longer_than_thinking_by_hand() {
        // It waits for 80 of 100, and thinks for 20.
        let start = of(100, &[50, 30], 10);
        assert_eq!(start, HeadStart { waited: Nanos(80), computed: Nanos(20), pages: 10 });
        let is_over = |spent, read, unneeded| start.is_over(Nanos(spent), (read, unneeded));
        assert!(!is_over(0, 0, 0) && !is_over(79, 0, 9) && is_over(80, 0, 0));
        // Six pages in 30: four more take 20. Five: 30.
        assert!(is_over(30, 6, 0) && !is_over(30, 5, 0));
        // Of ten pages seven are cached: the one that was read says how long the other two take.
        assert!(is_over(10, 1, 7) && !is_over(11, 1, 7));
        // It computes for longer than it waits; there is nothing to read.
        assert!(of(100, &[50], 10).is_over(Nanos(0), (0, 0)) && of(100, &[90], 0).is_over(Nanos(0), (0, 0)));
        assert!(is_over(0, 0, 10));
    }

    proptest! {
        #[test]
        fn it_is_no_longer_than_the_recorded_waits(
            elapsed in 0..1_000_000u64,
            waits in prop::collection::vec(0..1_000_000u64, 0..20),
            pages in 0..1000u64,
            settled in (0..1000u64, 0..1000u64),
        ) {
            let start = of(elapsed, &waits, pages);
            let waited = waits.iter().sum::<u64>().min(elapsed);
            prop_assert!(start.is_over(Nanos(waited), settled));
            // Who thinks for longer waits no longer.
            let longer = of(elapsed + 1000, &waits, pages);
            prop_assert!(waited == elapsed || !start.is_over(Nanos(7), settled) || longer.is_over(Nanos(7), settled));
        }
    }
}
