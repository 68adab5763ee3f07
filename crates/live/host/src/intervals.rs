//! Disjoint ranges of pages, each with a value.

use std::collections::BTreeMap;
use std::ops::Range;

/// Maps the first page of each range to its end and value.
///
/// Operations are logarithmic in the number of ranges. Memory: 24 bytes and the value per range.
#[derive(Debug, Clone, Default)]
pub struct Intervals<T> {
    ranges: BTreeMap<u64, (u64, T)>,
}

impl<T: Copy> Intervals<T> {
    /// Adds the missing parts of `range`. An existing range that ends where a part begins is extended and keeps its
    /// value.
    pub fn insert(&mut self, range: Range<u64>, value: T) {
        let mut start = range.start;
        while start < range.end {
            let before = self.ranges.range_mut(..=start).next_back();
            let next = before.filter(|(_, (end, _))| *end >= start);
            match next {
                Some((_, (end, _))) if *end > start => start = *end,
                other => {
                    let key = other.map(|(first, _)| *first);
                    let following = self.ranges.range(start..).next().map_or(u64::MAX, |(first, _)| *first);
                    let end = range.end.min(following);
                    match key.and_then(|key| self.ranges.get_mut(&key)) {
                        Some(touching) => touching.0 = end,
                        None => drop(self.ranges.insert(start, (end, value))),
                    }
                    start = end;
                }
            }
        }
    }

    /// Removes `range`; returns whether any of it was there.
    pub fn remove(&mut self, range: Range<u64>) -> bool {
        let mut found = false;
        if range.is_empty() {
            return found;
        }
        while let Some((&first, &(end, value))) = self.ranges.range(..range.end).next_back() {
            if end <= range.start {
                break;
            }
            found = true;
            self.ranges.remove(&first);
            if end > range.end {
                self.ranges.insert(range.end, (end, value));
            }
            if first < range.start {
                self.ranges.insert(first, (range.start, value));
            }
        }
        found
    }

    /// The parts of `range` that are there.
    pub fn within(&self, range: Range<u64>) -> impl Iterator<Item = Range<u64>> + '_ {
        let before = self.ranges.range(..range.start).next_back();
        let all = before.into_iter().chain(self.ranges.range(range.start..range.end.max(range.start)));
        let cut = move |(first, (end, _)): (&u64, &(u64, T))| (*first).max(range.start)..(*end).min(range.end);
        all.map(cut).filter(|range| !range.is_empty())
    }

    /// The parts of `range` that are missing.
    pub fn beside(&self, range: Range<u64>) -> Vec<Range<u64>> {
        let (mut gaps, mut start) = (Vec::new(), range.start);
        for there in self.within(range.clone()).chain(std::iter::once(range.end..range.end)) {
            gaps.extend((start < there.start).then_some(start..there.start));
            start = there.end;
        }
        gaps
    }

    pub fn iter(&self) -> impl Iterator<Item = (Range<u64>, T)> + '_ {
        self.ranges.iter().map(|(first, (end, value))| (*first..*end, *value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Compared with a set of pages.
        #[test]
        fn as_a_set_of_pages(steps in proptest::collection::vec((any::<bool>(), 0u64..40, 0u64..12), 0..60), at in 0u64..40, pages in 1u64..12) {
            let (mut ranges, mut set) = (Intervals::default(), std::collections::BTreeSet::new());
            for (insert, start, pages) in steps {
                let range = start..start + pages;
                if insert {
                    ranges.insert(range.clone(), ());
                    set.extend(range);
                } else {
                    prop_assert_eq!(ranges.remove(range.clone()), range.clone().any(|page| set.contains(&page)));
                    set.retain(|page| !range.contains(page));
                }
                let all: Vec<u64> = ranges.iter().flat_map(|(range, ())| range).collect();
                prop_assert_eq!(&all, &set.iter().copied().collect::<Vec<_>>());
            }
            let beside = (at..at + pages).filter(|page| !set.contains(page)).collect::<Vec<_>>();
            prop_assert_eq!(ranges.beside(at..at + pages).into_iter().flatten().collect::<Vec<_>>(), beside);
            let within: Vec<u64> = set.range(at..at + pages).copied().collect();
            prop_assert_eq!(ranges.within(at..at + pages).flatten().collect::<Vec<_>>(), within);
        }
    }
}
