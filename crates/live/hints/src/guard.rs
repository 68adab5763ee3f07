//! When prefetching must stop: because it is not used, not possible, or of no help.

use super::disk::Why;
use super::head_start::Settled;

/// Share of pages in stale files, of all hinted pages, above which the hints as a whole are stale.
const STALE_SHARE: f64 = 0.5;
/// The same for the first pages examined: opening changed files takes as long as opening others.
const STALE_FIRST: u64 = 256;
const STALE_FIRST_SHARE: f64 = 0.875;
/// Share of pages that were in the page cache long before they are needed, above which there is nothing to gain.
const CACHED_SHARE: f64 = 0.98;
const CACHED_LOOKED_MIN: u64 = 2048;
/// Prefetched pages that the command has passed unused, per page that it has used.
const PASSED_PER_USED: u64 = 3;
/// Hinted references before the hints are confirmed. Commands share libraries: among the recent references, this many
/// must be hinted for each that is not.
const MATCHED_MIN: u64 = 8;
const MATCHED_PER_FOREIGN: u64 = 3;
/// Number of recent references; at this number both counts are halved.
const RECENT: u64 = 16;
/// Unhinted references before hints that are not confirmed, or whose pages are not used, are given up. While the
/// command is watched, each of its references takes time: hints are given up earlier if so few were hinted that shared
/// libraries alone explain them.
const FOREIGN_MAX: u64 = 1024;
const FOREIGN_FIRST: u64 = 256;
const FOREIGN_PER_MATCHED: u64 = 8;

/// A reason that does not count against the hints.
pub const ALL_CACHED: &str = "there is nothing to prefetch: the pages are in the page cache";

/// Observations so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Seen {
    /// Hinted pages.
    pub hinted: u64,
    /// Pages read into the page cache, and how many of them are metadata.
    pub read: u64,
    pub metadata: u64,
    /// Pages that were there already.
    pub cached: u64,
    /// Those of them that the command did not reference soon after: neither it nor the kernel's read-ahead for it has
    /// just read them.
    pub cached_before: u64,
    /// Pages in holes.
    pub hole: u64,
    /// Pages of files that have changed or are gone.
    pub stale: u64,
    /// Pages of an unreadable device.
    pub denied: u64,
    /// Hinted references, of one or several pages, that are the first to their pages.
    pub matched: u64,
    /// Unhinted references.
    pub foreign: u64,
    /// The recent part of both.
    pub recently: (u64, u64),
}

impl Seen {
    /// Adds pages that need not be read.
    pub fn unneeded(&mut self, why: Why, pages: u64) {
        match why {
            Why::Cached => self.cached += pages,
            Why::Hole => self.hole += pages,
            Why::Stale => self.stale += pages,
            Why::Denied => self.denied += pages,
        }
    }

    /// Whether the command follows the hints, as far as is visible: references to metadata are not.
    #[must_use]
    pub fn confirmed(&self) -> bool {
        let (matched, foreign) = self.recently;
        self.matched >= MATCHED_MIN && foreign * MATCHED_PER_FOREIGN <= matched
    }

    /// Whether no unhinted reference has been seen.
    #[must_use]
    pub fn is_unshaken(&self) -> bool {
        self.foreign == 0
    }

    /// Counts a reference; `matches`: it is hinted.
    pub fn referenced(&mut self, matches: bool) {
        let (matched, foreign) = &mut self.recently;
        if matches {
            self.matched += 1;
            *matched += 1;
        } else {
            self.foreign += 1;
            *foreign += 1;
        }
        if *matched + *foreign > RECENT {
            *matched /= 2;
            *foreign /= 2;
        }
    }

    /// Pages that have been read or need not be read.
    pub fn settled(&self) -> Settled {
        let unneeded = self.cached + self.hole + self.stale + self.denied;
        Settled { of_files: self.read - self.metadata, metadata: self.metadata, unneeded }
    }

    /// Pages that are known to have been cached before or not.
    fn looked(&self) -> u64 {
        self.read + self.cached_before + self.hole + self.stale + self.denied
    }
}

/// Why prefetching must stop, if it must. `confirmed`: it has begun; `passed`: prefetched pages that the command has
/// passed; `full`: every frame holds an unused prefetched page; `frames_min`: frames at the start.
#[must_use]
pub fn why_stop(
    seen: &Seen,
    (confirmed, used, passed, full): (bool, u64, u64, bool),
    frames_min: u64,
) -> Option<&'static str> {
    let is_other = seen.foreign >= FOREIGN_FIRST && seen.foreign >= FOREIGN_PER_MATCHED * seen.matched;
    if !confirmed && (is_other || seen.foreign >= FOREIGN_MAX) {
        return Some("the command does not read what the hints say");
    }
    let looked = seen.looked();
    // Of all hinted pages: files that cannot be opened are known at once, others only after they were read.
    let all_first = looked >= STALE_FIRST && seen.stale as f64 > looked as f64 * STALE_FIRST_SHARE;
    if all_first || seen.stale as f64 > seen.hinted as f64 * STALE_SHARE {
        return Some("the hints are stale: their files have changed");
    }
    if looked >= CACHED_LOOKED_MIN && seen.cached_before as f64 >= looked as f64 * CACHED_SHARE {
        return Some(ALL_CACHED);
    }
    let unused = passed >= frames_min && passed > PASSED_PER_USED * used;
    if unused || (full && seen.foreign >= FOREIGN_MAX) {
        return Some("what was prefetched is not used");
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_been_lately_decides() {
        let mut seen = Seen::default();
        (0..7).for_each(|_| seen.referenced(true));
        assert!(!seen.confirmed());
        (0..1000).for_each(|_| seen.referenced(true));
        assert!(seen.confirmed());
        // At 16, half is forgotten.
        let until = (1..).find(|_| {
            seen.referenced(false);
            !seen.confirmed()
        });
        assert!(until.is_some_and(|references| (3..=8).contains(&references)), "{until:?}");
        (0..16).for_each(|_| seen.referenced(false));
        let again = (1..).find(|_| {
            seen.referenced(true);
            seen.confirmed()
        });
        assert!(again.is_some_and(|references| (8..=32).contains(&references)), "{again:?}");
    }

    #[test]
    fn reasons_by_hand() {
        let none = Seen::default();
        assert_eq!(why_stop(&none, (true, 0, 0, false), 512), None);
        let stale = Seen { hinted: 399, stale: 200, ..none };
        assert!(why_stop(&stale, (true, 0, 0, false), 512).is_some_and(|why| why.contains("stale")));
        assert_eq!(why_stop(&Seen { hinted: 400, stale: 200, denied: 200, ..none }, (true, 0, 0, false), 512), None);
        let first =
            |stale, read| why_stop(&Seen { hinted: 9000, stale, read, ..none }, (true, 0, 0, false), 512).is_some();
        assert_eq!([first(255, 0), first(256, 0), first(256, 40), first(700, 90)], [false, true, false, true]);
        let other = |foreign, matched| why_stop(&Seen { foreign, matched, ..none }, (false, 0, 0, false), 512);
        assert_eq!([other(255, 0), other(256, 33), other(1023, 128)], [None; 3]);
        for (foreign, matched) in [(256, 0), (256, 32), (1024, 1000)] {
            assert!(other(foreign, matched).is_some_and(|why| why.contains("does not read")));
        }
        let cached = Seen { read: 20, cached: 3000, cached_before: 3000, ..none };
        assert!(why_stop(&cached, (true, 0, 0, false), 512).is_some_and(|why| why.contains("page cache")));
        // The command is faster than its hints.
        assert_eq!(why_stop(&Seen { cached_before: 40, ..cached }, (true, 0, 0, false), 512), None);
        // 512 pages were passed unused: acceptable with 171 used, not with 170.
        let read = Seen { read: 2000, ..none };
        assert_eq!(why_stop(&read, (true, 171, 512, false), 512), None);
        assert!(why_stop(&read, (true, 170, 512, false), 512).is_some_and(|why| why.contains("not used")));
        let foreign = Seen { read: 512, foreign: 1024, ..none };
        assert_eq!(why_stop(&foreign, (true, 0, 0, false), 512), None);
        assert!(why_stop(&foreign, (true, 0, 0, true), 512).is_some_and(|why| why.contains("not used")));
    }
}
