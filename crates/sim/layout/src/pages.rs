//! Block numbers by file and position, in pages of adjacent blocks.
//!
//! A sequential reader, and the levels of a stack that look up a request's blocks, hash once per page and find the rest
//! in the page. Memory: 64 bytes per page with any known block, and about 24 in the table: 6 bytes per block if files
//! are read in order, 90 if each page has one block.

use std::cell::Cell;

use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

/// Blocks per page: their numbers fill one cache line.
const PAGE: u64 = 16;

/// Numbers of blocks of files.
#[derive(Debug, Default)]
pub struct Pages {
    /// By file and page: the page's index in `numbers`.
    index: HashMap<(u32, u64), u32, FxBuildHasher>,
    /// By block of a page: its number plus one, or zero.
    numbers: Vec<[u32; PAGE as usize]>,
    /// The page looked up last: file, page and index.
    last: Cell<Option<(u32, u64, u32)>>,
}

impl Pages {
    /// The number of block `at` of `file`, if it has one.
    #[inline]
    #[must_use]
    pub fn find(&self, file: u32, at: u64) -> Option<u32> {
        let page = at / PAGE;
        let stands = match self.last_if(file, page) {
            Some(stands) => stands,
            None => self.now_last(file, page, *self.index.get(&(file, page))?),
        };
        self.numbers[stands as usize][(at % PAGE) as usize].checked_sub(1)
    }

    /// The number of block `at` of `file`, set to `fresh` if it had none.
    #[inline]
    pub fn number(&mut self, file: u32, at: u64, fresh: u32) -> u32 {
        let page = at / PAGE;
        let stands = self.last_if(file, page).unwrap_or_else(|| {
            let next = self.numbers.len() as u32;
            let stands = *self.index.entry((file, page)).or_insert(next);
            if stands == next {
                self.numbers.push([0; PAGE as usize]);
            }
            self.now_last(file, page, stands)
        });
        let entry = &mut self.numbers[stands as usize][(at % PAGE) as usize];
        if *entry == 0 {
            *entry = fresh + 1;
        }
        *entry - 1
    }

    /// The index of a page, if it is the one looked up last.
    #[inline]
    fn last_if(&self, file: u32, page: u64) -> Option<u32> {
        self.last.get().filter(|(of, last, _)| *of == file && *last == page).map(|(_, _, stands)| stands)
    }

    /// Records a page as the one looked up last; returns its index.
    #[inline]
    fn now_last(&self, file: u32, page: u64, stands: u32) -> u32 {
        self.last.set(Some((file, page, stands)));
        stands
    }

    /// The blocks that have numbers, sorted by file and position.
    #[must_use]
    pub fn sorted(&self) -> Vec<(u32, u64)> {
        let mut pages: Vec<(u32, u64, u32)> = self.index.iter().map(|((file, page), at)| (*file, *page, *at)).collect();
        pages.sort_unstable();
        let of_page = |(file, page, stands): (u32, u64, u32)| {
            let numbers = (0..PAGE).zip(&self.numbers[stands as usize]);
            numbers.filter(|(_, number)| **number != 0).map(move |(at, _)| (file, page * PAGE + at))
        };
        pages.into_iter().flat_map(of_page).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn as_a_map_has_it(asked in prop::collection::vec((0u32..3, prop_oneof![0u64..80, u64::MAX - 40..=u64::MAX], any::<bool>()), 0..200)) {
            let (mut pages, mut map) = (Pages::default(), BTreeMap::new());
            for (file, at, only_looks) in asked {
                prop_assert_eq!(pages.find(file, at), map.get(&(file, at)).copied());
                if !only_looks {
                    let fresh = map.len() as u32;
                    let expected = *map.entry((file, at)).or_insert(fresh);
                    prop_assert_eq!(pages.number(file, at, fresh), expected);
                }
            }
            prop_assert_eq!(pages.sorted(), map.into_keys().collect::<Vec<_>>());
        }
    }
}
