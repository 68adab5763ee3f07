//! Decides whether a file is read through the page cache or directly.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Maximum number of reads without a trial of the page cache after a failed trial.
const UNTRIED_MAX: u32 = 64;
/// Maximum number of pages tracked: 8 GiB in pages of 4 KiB, in 256 KiB of memory.
const TOUCHED_MAX: u64 = 1 << 21;

/// Decides, from past trials, whether to expect a whole range in the page cache if its first page is there.
///
/// Only a read can tell, and on a partial hit the kernel starts to fetch the rest.
#[derive(Debug, Default)]
pub struct Trust {
    /// Reads to skip after the next failed trial; 0 after a successful one.
    pause: AtomicU32,
    /// Reads that are still to be skipped.
    untried: AtomicU32,
}

impl Trust {
    /// Whether to try the next read.
    pub fn tries(&self) -> bool {
        let untried = self.untried.load(Ordering::Relaxed);
        self.untried.store(untried.saturating_sub(1), Ordering::Relaxed);
        untried == 0
    }

    /// Records the result of a trial.
    pub fn tried(&self, found: bool) {
        let pause = if found { 0 } else { (self.pause.load(Ordering::Relaxed) * 2).clamp(1, UNTRIED_MAX) };
        self.pause.store(pause, Ordering::Relaxed);
        self.untried.store(pause, Ordering::Relaxed);
    }
}

/// Tracks pages that were read directly. The second read of a page goes through the page cache, which keeps it: data
/// read once is not kept, at the price of one more read of each page that is read again.
///
/// Pages that share a bit are mistaken for each other: one of them is kept one read early. When half of the bits are
/// set, all are cleared.
#[derive(Debug)]
pub struct Touched {
    bits: Box<[AtomicU64]>,
    set: AtomicU64,
}

impl Touched {
    pub fn new(pages: u64) -> Self {
        let words = pages.clamp(1, TOUCHED_MAX).div_ceil(64);
        Self { bits: (0..words).map(|_| AtomicU64::new(0)).collect(), set: AtomicU64::new(0) }
    }

    /// Whether this is the first read of `page`.
    pub fn is_first(&self, page: u64) -> bool {
        let bits = self.bits.len() as u64 * 64;
        let (word, bit) = ((page % bits / 64) as usize, 1_u64 << (page % 64));
        let is_first = self.bits[word].fetch_or(bit, Ordering::Relaxed) & bit == 0;
        // If each page has a bit of its own, nothing is ever cleared.
        if is_first && self.set.fetch_add(1, Ordering::Relaxed) >= bits / 2 && bits >= TOUCHED_MAX {
            self.bits.iter().for_each(|word| word.store(0, Ordering::Relaxed));
            self.set.store(0, Ordering::Relaxed);
        }
        is_first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_found_is_tried_ever_more_rarely() {
        let trust = Trust::default();
        let tried: Vec<u32> = (0..200).filter(|_| trust.tries().then(|| trust.tried(false)).is_some()).collect();
        assert_eq!(tried, [0, 2, 5, 10, 19, 36, 69, 134, 199]);
        assert_eq!((0..).find(|_| trust.tries()), Some(64));
        trust.tried(true);
        assert!(trust.tries() && trust.tries());
    }

    #[test]
    fn a_page_is_new_once() {
        let touched = Touched::new(1000);
        assert!((0..1000).rev().all(|page| touched.is_first(page)) && !(0..1000).any(|page| touched.is_first(page)));
        // With more pages than bits, at most half are remembered, including the last one.
        let touched = Touched::new(u64::MAX);
        let new = (0..3 * TOUCHED_MAX).filter(|page| touched.is_first(*page)).count() as u64;
        assert_eq!(new, 3 * TOUCHED_MAX);
        assert!(!touched.is_first(3 * TOUCHED_MAX - 1));
        assert!((0..TOUCHED_MAX).filter(|page| !touched.is_first(*page)).count() as u64 <= TOUCHED_MAX / 2);
    }
}
