//! The page cache and the kernel's read-ahead, as far as a command sees them: nothing that was read is ever read again.
//!
//! Source: Linux 6.18, mm/filemap.c (do_sync_mmap_readahead, do_async_mmap_readahead, filemap_map_pages) for faults; reads go by
//! `headstart_policy::readahead::Linux`. What differs: windows of faults and of reads of one file are kept apart.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

use headstart_policy::readahead::{Asked, Cached, Found, Linux, ReadAhead, Run, Version};
use headstart_types::Nanos;
use rustc_hash::FxBuildHasher;

use super::program::Pages;

/// `MMAP_LOTSAMISS`: so many faults of absent pages more than of others, and the kernel reads around no more.
const MISSES_MAX: u32 = 100;
/// Open files with a state of their own.
const FILES: usize = 65_536;

/// The state of a page that is not absent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Cached,
    /// With this request.
    Coming(u32),
}

/// The pages of all files.
#[derive(Debug, Clone, Default)]
pub(super) struct PageCache {
    pages: HashMap<(u32, u64), State, FxBuildHasher>,
    /// By file: its pages; `None` of a device.
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

    /// The requests under way that bring one of these pages.
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
        // As much memory as there are pages.
        u32::MAX
    }

    fn file_blocks(&self, file: u32) -> Option<u64> {
        self.pages_of[file as usize]
    }
}

/// The window of a mapped file.
#[derive(Debug, Clone, Copy, Default)]
struct Around {
    start: u64,
    size: u64,
    misses: u32,
    mark: Option<u64>,
}

/// The kernel's read-ahead on one device.
pub(super) struct Kernel {
    /// Pages of a window; 0: none is read ahead.
    max: u64,
    /// Since Linux 6.17, commit "mm/filemap: allow arch to request folio size for exec memory".
    text_ahead: bool,
    reads: Linux,
    faults: HashMap<(u32, u32), Around, FxBuildHasher>,
}

impl Kernel {
    pub fn new(version: Version, max: u64, request_max: u64) -> Self {
        // As many marks as there may ever be: pages do not leave the cache.
        let reads = Linux::new(version, max, request_max, FILES, 1 << 22);
        Self { max, text_ahead: version == Version::V6_17, reads, faults: HashMap::default() }
    }

    /// What is read when `thread` reads `pages`: the absent ones, and what is read ahead.
    pub fn read(&mut self, thread: u32, pages: &Pages, cache: &PageCache) -> Vec<Pages> {
        let Pages { file, first, count } = *pages;
        let found: Vec<Found> = (first..pages.end())
            .map(|page| match cache.state(file, page) {
                None => Found::Absent,
                Some(State::Cached) => Found::Ready,
                Some(State::Coming(_)) => Found::Unready,
            })
            .collect();
        let mut runs = vec![Run { file, first, count }];
        if self.max > 0 {
            let asked = Asked { file, first, count, client: thread };
            let mut ahead = Vec::new();
            self.reads.asked(Nanos::ZERO, &asked, &found, cache, &mut ahead);
            // What is demanded and in no window is read by itself, at its place.
            runs.extend(ahead);
        }
        let mut runs: Vec<(u64, u64)> = runs.iter().map(|run| (run.first, run.end())).collect();
        runs.sort_unstable();
        let mut joined: Vec<(u64, u64)> = Vec::new();
        for (first, end) in runs {
            match joined.last_mut().filter(|last| first <= last.1) {
                Some(last) => last.1 = last.1.max(end),
                None => joined.push((first, end)),
            }
        }
        joined.into_iter().map(|(first, end)| Pages { file, first, count: (end - first) as u32 }).collect()
    }

    /// What is read when `thread` touches `page` of a mapped file; `text`: the pages from it on that are mapped to be executed, if it is.
    pub fn fault(
        &mut self,
        thread: u32,
        (file, page): (u32, u64),
        text: Option<Range<u64>>,
        cache: &PageCache,
    ) -> Vec<Pages> {
        let alone = Pages { file, first: page, count: 1 };
        if self.max == 0 {
            return vec![alone];
        }
        let end = cache.file_blocks(file).unwrap_or(u64::MAX);
        let mut around = self.faults.get(&(file, thread)).copied().unwrap_or_default();
        if cache.is_cached(file, page) {
            around.misses = around.misses.saturating_sub(1);
            if around.mark != Some(page) {
                self.faults.insert((file, thread), around);
                // The mark of a window of reads, perhaps.
                return self.read(thread, &alone, cache);
            }
            around.start += around.size;
            around.size = self.max;
            around.mark = Some(around.start);
        } else {
            around.misses = (around.misses + 1).min(10 * MISSES_MAX);
            if around.misses > MISSES_MAX {
                self.faults.insert((file, thread), around);
                return vec![alone];
            }
            match text.filter(|_| self.text_ahead) {
                // To the end of what is executed at most, and nothing is read ahead of its end.
                Some(text) => {
                    around.start = page;
                    around.size = self.max.min(text.end - page);
                    around.mark = None;
                }
                None => {
                    around.start = page.saturating_sub(self.max / 2);
                    around.size = self.max;
                    around.mark = Some(around.start + around.size - self.max / 4);
                }
            }
        }
        let stop = (around.start + around.size).min(end);
        // A page that is cached already is not marked.
        around.mark = around.mark.filter(|mark| *mark < stop && !cache.is_cached(file, *mark));
        self.faults.insert((file, thread), around);
        let count = stop.saturating_sub(around.start) as u32;
        vec![Pages { file, first: around.start, count }]
    }

    /// `thread` has mapped so many pages at once.
    pub fn mapped(&mut self, thread: u32, file: u32, pages: u32) {
        if let Some(around) = self.faults.get_mut(&(file, thread)) {
            around.misses = around.misses.saturating_sub(pages);
        }
    }
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
        assert_eq!(fault(Version::V6_17, 100, None), [(84, 32)]);
        assert_eq!(fault(Version::V6_17, 100, Some(100..300)), [(100, 32)]);
        assert_eq!(fault(Version::V6_17, 100, Some(100..110)), [(100, 10)]);
        assert_eq!(fault(Version::V6_12, 100, Some(100..300)), [(84, 32)]);
        assert_eq!(fault(Version::V6_17, 990, Some(990..1000)), [(990, 10)]);
    }

    #[test]
    fn nothing_is_read_ahead_of_the_end_of_what_was_for_execution() {
        let mut cache = PageCache::new(vec![Some(1000)]);
        let mut kernel = Kernel::new(Version::V6_17, 32, 320);
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
