//! The page cache and the kernel's read-ahead, as far as a command sees them: pages are never evicted.
//!
//! `headstart_policy::readahead::Linux` decides what is read, except that an open file is identified by thread and
//! file.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

use headstart_policy::readahead::{Asked, Cached, Found, Linux, ReadAhead, Run, Version};
use headstart_types::Nanos;
use rustc_hash::FxBuildHasher;

use super::program::Pages;

/// Maximum number of open files with a state of their own.
const FILES: usize = 65_536;

/// The state of a page that is present or coming.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Cached,
    /// Comes with this request.
    Coming(u32),
}

/// The pages of all files.
#[derive(Debug, Clone, Default)]
pub(super) struct PageCache {
    pages: HashMap<(u32, u64), State, FxBuildHasher>,
    /// By file: its pages; `None` for a device.
    pages_of: Vec<Option<u64>>,
}

impl PageCache {
    pub fn new(pages_of: Vec<Option<u64>>) -> Self {
        Self { pages: HashMap::default(), pages_of }
    }

    pub fn state(&self, file: u32, page: u64) -> Option<State> {
        self.pages.get(&(file, page)).copied()
    }

    pub fn set(&mut self, file: u32, page: u64, state: State) {
        self.pages.insert((file, page), state);
    }

    /// The requests in flight that bring one of these pages.
    pub fn coming(&self, pages: &Pages) -> BTreeSet<u32> {
        let each = |page| match self.state(pages.file, page) {
            Some(State::Coming(request)) => Some(request),
            _ => None,
        };
        (pages.first..pages.end()).filter_map(each).collect()
    }
}

impl Cached for PageCache {
    fn is_cached(&self, file: u32, index: u64) -> bool {
        self.pages.contains_key(&(file, index))
    }

    fn is_resident(&self, file: u32, index: u64) -> bool {
        self.state(file, index) == Some(State::Cached)
    }

    fn frames(&self) -> u32 {
        // Memory is as large as the number of pages.
        u32::MAX
    }

    fn file_blocks(&self, file: u32) -> Option<u64> {
        self.pages_of[file as usize]
    }
}

/// The kernel's read-ahead on one device.
pub(super) struct Kernel {
    linux: Linux,
}

impl Kernel {
    pub fn new(version: Version, max: u64, request_max: u64) -> Self {
        // Room for all marks that may ever be needed: pages do not leave the cache.
        Self { linux: Linux::new(version, max, request_max, FILES, 1 << 22) }
    }

    /// The pages read when `thread` reads `pages`: the absent ones, and the read-ahead.
    pub fn read(&mut self, thread: u32, pages: &Pages, cache: &PageCache) -> Vec<Pages> {
        let Pages { file, first, count } = *pages;
        let found: Vec<Found> = (first..pages.end())
            .map(|page| match cache.state(file, page) {
                None => Found::Absent,
                Some(State::Cached) => Found::Ready,
                Some(State::Coming(_)) => Found::Unready,
            })
            .collect();
        let asked = Asked { file, first, count, client: thread, ends_inside: false };
        // A demanded page outside any window is read by itself, at its place.
        let mut runs = vec![Run { file, first, count }];
        self.linux.asked(Nanos::ZERO, &asked, &found, cache, &mut runs);
        joined(runs)
    }

    /// The pages read when `thread` touches `page` of a mapped file. `text`: the pages from it on that are mapped as
    /// executable, if it is.
    pub fn fault(
        &mut self,
        thread: u32,
        (file, page): (u32, u64),
        text: Option<Range<u64>>,
        cache: &PageCache,
    ) -> Vec<Pages> {
        let asked = Asked { file, first: page, count: 1, client: thread, ends_inside: false };
        let mut runs = vec![Run { file, first: page, count: 1 }];
        self.linux.fault(&asked, text.map(|text| text.end), cache, &mut runs);
        joined(runs)
    }

    /// `thread` has mapped `pages` pages at once.
    pub fn mapped(&mut self, thread: u32, file: u32, pages: u32) {
        self.linux.mapped(file, thread, pages);
    }
}

/// Merges these runs of one file into contiguous ones.
fn joined(mut runs: Vec<Run>) -> Vec<Pages> {
    runs.sort_unstable_by_key(|run| (run.first, run.end()));
    let mut joined: Vec<Pages> = Vec::new();
    for run in runs {
        match joined.last_mut().filter(|last| run.first <= last.end()) {
            Some(last) => last.count = (last.end().max(run.end()) - last.first) as u32,
            None => joined.push(Pages { file: run.file, first: run.first, count: run.count }),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_read_around_and_ahead_of_what_is_executed_by_hand() {
        let cache = PageCache::new(vec![Some(1000)]);
        let fault = |version, page, text: Option<Range<u64>>| {
            let read = Kernel::new(version, 32, 320).fault(0, (0, page), text, &cache);
            read.iter().map(|pages| (pages.first, pages.count)).collect::<Vec<_>>()
        };
        assert_eq!(fault(Version::V6_18, 100, None), [(84, 32)]);
        assert_eq!(fault(Version::V6_18, 100, Some(100..300)), [(100, 32)]);
        assert_eq!(fault(Version::V6_18, 100, Some(100..110)), [(100, 10)]);
        assert_eq!(fault(Version::V6_12, 100, Some(100..300)), [(84, 32)]);
        assert_eq!(fault(Version::V6_18, 990, Some(990..1000)), [(990, 10)]);
    }

    #[test]
    fn nothing_is_read_ahead_of_the_end_of_what_was_for_execution() {
        let mut cache = PageCache::new(vec![Some(1000)]);
        let mut kernel = Kernel::new(Version::V6_18, 32, 320);
        kernel.fault(0, (0, 100), Some(100..300), &cache);
        (100..132).for_each(|page| cache.set(0, page, State::Cached));
        for page in 100..132 {
            let read = kernel.fault(0, (0, page), Some(page..300), &cache);
            assert!(
                read.iter().all(|pages| (100..132).contains(&pages.first) && pages.end() <= 132),
                "{page}: {read:?}"
            );
        }
        let read = kernel.fault(0, (0, 132), Some(132..300), &cache);
        assert_eq!(read, [Pages { file: 0, first: 132, count: 32 }]);
    }
}
