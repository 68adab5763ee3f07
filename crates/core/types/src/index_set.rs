//! An ordered set of whole numbers below a fixed bound: a bitmap with 64-way summaries above it.
//!
//! Why not a `BTreeSet` or a heap: the hinted policies keep "positions of missing blocks" and "positions of the next
//! references of resident blocks", both within `0..references`. Here insert, remove, minimum, maximum, successor and
//! predecessor touch one word per level, which is at most 4 words up to 16 million and never more than 6. No entry goes
//! stale (a lazy heap needs cleaning), and the order is the same on every machine.
//!
//! Memory: 1 bit per index, plus 1/63 for the summaries.

/// A set of `u32` below a bound fixed at construction.
#[derive(Debug, Clone)]
pub struct IndexSet {
    /// The bitmap.
    words: Vec<u64>,
    /// `summaries[0]` summarises `words`, each further one the one before: bit i is set if word i is not zero. The last
    /// has one word. Empty if the bitmap itself has one word.
    summaries: Vec<Vec<u64>>,
    count: usize,
}

impl IndexSet {
    /// The empty set that can hold `0..len`.
    #[must_use]
    pub fn new(len: usize) -> Self {
        let mut count = len.div_ceil(64).max(1);
        let words = vec![0; count];
        let mut summaries = Vec::new();
        while count > 1 {
            count = count.div_ceil(64);
            summaries.push(vec![0; count]);
        }
        Self { words, summaries, count: 0 }
    }

    /// How many numbers are in the set.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether the set is empty.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Whether `index` is in the set. The caller guarantees that it is below the bound.
    #[inline]
    #[must_use]
    pub fn contains(&self, index: u32) -> bool {
        self.words[index as usize / 64] >> (index % 64) & 1 != 0
    }

    /// Adds `index` and returns whether it was absent. The caller guarantees that it is below the bound.
    #[inline]
    pub fn insert(&mut self, index: u32) -> bool {
        let word = &mut self.words[index as usize / 64];
        let before = *word;
        *word |= 1 << (index % 64);
        let added = *word != before;
        self.count += usize::from(added);
        if before == 0 {
            self.note_some(index as usize / 64);
        }
        added
    }

    /// Marks word `at` of the bitmap as non-zero in the summaries.
    fn note_some(&mut self, mut at: usize) {
        for summary in &mut self.summaries {
            let word = &mut summary[at / 64];
            let before = *word;
            *word |= 1 << (at % 64);
            if before != 0 {
                break;
            }
            at /= 64;
        }
    }

    /// Removes `index` and returns whether it was present. The caller guarantees that it is below the bound.
    #[inline]
    pub fn remove(&mut self, index: u32) -> bool {
        let word = &mut self.words[index as usize / 64];
        let bit = 1 << (index % 64);
        if *word & bit == 0 {
            return false;
        }
        *word &= !bit;
        self.count -= 1;
        if *word == 0 {
            self.note_none(index as usize / 64);
        }
        true
    }

    /// Marks word `at` of the bitmap as zero in the summaries.
    fn note_none(&mut self, mut at: usize) {
        for summary in &mut self.summaries {
            let word = &mut summary[at / 64];
            *word &= !(1 << (at % 64));
            if *word != 0 {
                break;
            }
            at /= 64;
        }
    }

    /// The smallest number in the set that is at least `from`.
    #[inline]
    #[must_use]
    pub fn next(&self, from: u32) -> Option<u32> {
        let at = from as usize;
        let word = *self.words.get(at / 64)? & (u64::MAX << (at % 64));
        if word != 0 {
            return Some((at / 64 * 64) as u32 + word.trailing_zeros());
        }
        self.next_after(at / 64)
    }

    /// The smallest number in the words after `at`.
    fn next_after(&self, at: usize) -> Option<u32> {
        let mut at = at + 1;
        for (depth, summary) in self.summaries.iter().enumerate() {
            let word = *summary.get(at / 64)? & (u64::MAX << (at % 64));
            if word != 0 {
                at = at / 64 * 64 + word.trailing_zeros() as usize;
                return Some(self.descend(depth, at, |word| word.trailing_zeros()));
            }
            // One level up, only the words after this one count.
            at = at / 64 + 1;
        }
        None
    }

    /// The greatest number in the set that is below `before`.
    #[inline]
    #[must_use]
    pub fn previous(&self, before: u32) -> Option<u32> {
        let end = (before as usize).min(self.words.len() * 64);
        if !end.is_multiple_of(64) {
            let word = self.words[end / 64] & (u64::MAX >> (64 - end % 64));
            if word != 0 {
                return Some((end / 64 * 64) as u32 + 63 - word.leading_zeros());
            }
        }
        self.previous_before(end / 64)
    }

    /// The greatest number in the words before `end`.
    fn previous_before(&self, mut end: usize) -> Option<u32> {
        for (depth, summary) in self.summaries.iter().enumerate() {
            // `end` is exclusive; the part of its word below it comes first, if there is any.
            if !end.is_multiple_of(64) {
                let word = summary[end / 64] & (u64::MAX >> (64 - end % 64));
                if word != 0 {
                    let at = end / 64 * 64 + 63 - word.leading_zeros() as usize;
                    return Some(self.descend(depth, at, |word| 63 - word.leading_zeros()));
                }
            }
            end /= 64;
        }
        // The top level is one word; an `end` on its border was not searched above.
        if end > 0 {
            self.last()
        } else {
            None
        }
    }

    /// The smallest number.
    #[inline]
    #[must_use]
    pub fn first(&self) -> Option<u32> {
        self.next(0)
    }

    /// The greatest number.
    #[inline]
    #[must_use]
    pub fn last(&self) -> Option<u32> {
        let top = self.summaries.last().unwrap_or(&self.words)[0];
        if top == 0 {
            return None;
        }
        let at = 63 - top.leading_zeros() as usize;
        match self.summaries.len() {
            0 => Some(at as u32),
            depth => Some(self.descend(depth - 1, at, |word| 63 - word.leading_zeros())),
        }
    }

    /// Word `word_index` of the bitmap, which holds the numbers from `64 * word_index`; for counting with `count_ones`.
    #[inline]
    #[must_use]
    pub fn word(&self, word_index: usize) -> u64 {
        self.words.get(word_index).copied().unwrap_or(0)
    }

    /// Descends from bit `at` of summary `depth` to the bitmap, picking one bit of each word.
    #[inline]
    fn descend(&self, depth: usize, mut at: usize, pick: impl Fn(u64) -> u32) -> u32 {
        for summary in self.summaries[..depth].iter().rev() {
            at = at * 64 + pick(summary[at]) as usize;
        }
        (at * 64) as u32 + pick(self.words[at])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        /// Against `BTreeSet`, over bounds that give one to four levels and numbers that cluster at word borders.
        #[test]
        fn behaves_like_an_ordered_set(
            len in prop_oneof![1usize..200, Just(64), Just(4096), 4000usize..4200, Just(300_000)],
            steps in prop::collection::vec((0u8..5, any::<u32>()), 1..200),
        ) {
            let mut fast = IndexSet::new(len);
            let mut naive = BTreeSet::new();
            for (what, raw) in steps {
                let mut index = raw % len as u32;
                if raw % 3 == 0 {
                    index = (index / 64 * 64).min(len as u32 - 1);
                }
                match what {
                    0 | 1 => prop_assert_eq!(fast.insert(index), naive.insert(index)),
                    2 => prop_assert_eq!(fast.remove(index), naive.remove(&index)),
                    3 => prop_assert_eq!(fast.next(index), naive.range(index..).next().copied()),
                    _ => prop_assert_eq!(fast.previous(index), naive.range(..index).next_back().copied()),
                }
                prop_assert_eq!(fast.len(), naive.len());
                prop_assert_eq!(fast.first(), naive.first().copied());
                prop_assert_eq!(fast.last(), naive.last().copied());
                prop_assert_eq!(fast.previous(len as u32), naive.last().copied());
                prop_assert_eq!(fast.contains(index), naive.contains(&index));
            }
        }
    }
}
