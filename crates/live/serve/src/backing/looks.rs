//! Where a file is read: from the page cache, or past it.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Reads that go without a look into the page cache, at most, after one that has found less than was said.
const UNTRIED_MAX: u32 = 64;
/// Pages that are told apart, at most: 8 GiB of pages of 4 KiB, for 256 KiB of memory.
const TOUCHED_MAX: u64 = 1 << 21;

/// Whether to believe that the page cache has a range whose first page is there, by what has come of it.
///
/// It shows only when the range is read, and the kernel then begins to fetch what is missing.
#[derive(Debug, Default)]
pub struct Trust {
    /// Reads that are not tried after the next one that fails; 0 after one that has not.
    pause: AtomicU32,
    /// Reads that still are not.
    untried: AtomicU32,
}

impl Trust {
    /// Whether the next read is tried.
    pub fn tries(&self) -> bool {
        let untried = self.untried.load(Ordering::Relaxed);
        self.untried.store(untried.saturating_sub(1), Ordering::Relaxed);
        untried == 0
    }

    /// What has come of one that was.
    pub fn tried(&self, found: bool) {
        let pause = if found { 0 } else { (self.pause.load(Ordering::Relaxed) * 2).clamp(1, UNTRIED_MAX) };
        self.pause.store(pause, Ordering::Relaxed);
        self.untried.store(pause, Ordering::Relaxed);
    }
}

/// The pages that have been read past the page cache. What is read again is kept there: one read more of each page is the price
/// of not keeping what is read once.
///
/// Pages that share a bit are taken for each other: one of them is kept a read early. When half of the bits are set, all are cleared.
#[derive(Debug)]
pub struct Touched {
    bits: Box<[AtomicU64]>,
    set: AtomicU64,
}

impl Touched {
    /// For `pages` pages.
    pub fn new(pages: u64) -> Self {
        let words = pages.clamp(1, TOUCHED_MAX).div_ceil(64);
        Self { bits: (0..words).map(|_| AtomicU64::new(0)).collect(), set: AtomicU64::new(0) }
    }

    /// Whether this is the first time that `page` is touched.
    pub fn is_first(&self, page: u64) -> bool {
        let bits = self.bits.len() as u64 * 64;
        let (word, bit) = ((page % bits / 64) as usize, 1_u64 << (page % 64));
        let is_first = self.bits[word].fetch_or(bit, Ordering::Relaxed) & bit == 0;
        // A bit for each page needs no clearing.
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
        // Of more pages than there are bits, half are remembered at most, and the last one is.
        let touched = Touched::new(u64::MAX);
        let new = (0..3 * TOUCHED_MAX).filter(|page| touched.is_first(*page)).count() as u64;
        assert_eq!(new, 3 * TOUCHED_MAX);
        assert!(!touched.is_first(3 * TOUCHED_MAX - 1));
        assert!((0..TOUCHED_MAX).filter(|page| !touched.is_first(*page)).count() as u64 <= TOUCHED_MAX / 2);
    }
}
