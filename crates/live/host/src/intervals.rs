//! Ranges of pages that do not overlap, each with a value.

use std::collections::BTreeMap;
use std::ops::Range;

/// The ranges, by their first page: the page behind the last, and the value.
///
/// Logarithmic in the ranges. Memory: 24 bytes and the value for each.
#[derive(Debug, Clone, Default)]
pub struct Intervals<T> {
    ranges: BTreeMap<u64, (u64, T)>,
}

impl<T: Copy> Intervals<T> {
    /// Adds what is not there yet of `range`. One that ends where it begins is made longer and keeps its value.
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

    /// Takes `range` out. Whether any of it was there.
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

    /// What is there of `range`.
    pub fn within(&self, range: Range<u64>) -> impl Iterator<Item = Range<u64>> + '_ {
        let before = self.ranges.range(..range.start).next_back();
        let all = before.into_iter().chain(self.ranges.range(range.start..range.end.max(range.start)));
        let cut = move |(first, (end, _)): (&u64, &(u64, T))| (*first).max(range.start)..(*end).min(range.end);
        all.map(cut).filter(|range| !range.is_empty())
    }

    /// What is not there of `range`.
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
        /// Against a set of pages.
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
