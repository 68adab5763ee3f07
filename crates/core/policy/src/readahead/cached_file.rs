//! A file in a kernel's page cache, which starts empty for reads and faults and evicts nothing; `make live-study`
//! compares it with a kernel page by page.

use headstart_types::Nanos;

use super::linux::Linux;
use super::{Asked, Cached, Found, ReadAhead, Run, Version};

/// Bytes of a page.
const PAGE_BYTES: u64 = 4096;

/// fault_around_bytes, in pages: the window around a touched page in which cached pages are mapped with it.
const AROUND: u64 = 16;

/// Which pages are cached, and which are mapped.
struct Pages {
    cached: Vec<bool>,
    mapped: Vec<bool>,
}

impl Cached for Pages {
    fn is_cached(&self, _: u32, index: u64) -> bool {
        usize::try_from(index).ok().and_then(|index| self.cached.get(index)) == Some(&true)
    }

    fn is_resident(&self, file: u32, index: u64) -> bool {
        self.is_cached(file, index)
    }

    fn file_blocks(&self, _: u32) -> Option<u64> {
        Some(self.cached.len() as u64)
    }

    fn frames(&self) -> u32 {
        u32::MAX
    }
}

/// A file, its cached pages, and the kernel's read-ahead.
pub struct CachedFile {
    linux: Linux,
    pages: Pages,
}

impl CachedFile {
    /// A file of `bytes` bytes on a device with this `read_ahead_kb` and `max_sectors_kb`, mapped at a multiple of 64
    /// KiB.
    #[must_use]
    pub fn new(version: Version, bytes: u64, read_ahead_kb: u64, max_sectors_kb: u64) -> Self {
        let count = bytes.div_ceil(PAGE_BYTES) as usize;
        let pages = |kb: u64| kb * 1024 / PAGE_BYTES;
        Self {
            linux: Linux::new(version, pages(read_ahead_kb), pages(max_sectors_kb), 1 << 10, count),
            pages: Pages { cached: vec![false; count], mapped: vec![false; count] },
        }
    }

    /// Reads `size` bytes at `offset` through a descriptor; returns the pages that enter the cache, in order.
    pub fn read(&mut self, descriptor: u32, offset: u64, size: u64) -> Vec<u64> {
        let end = offset.saturating_add(size);
        let (first, stop) = (offset / PAGE_BYTES, end.div_ceil(PAGE_BYTES).min(self.pages.cached.len() as u64));
        if first >= stop {
            return Vec::new();
        }
        let count = (stop - first) as u32;
        let ends_inside = !end.is_multiple_of(PAGE_BYTES);
        let asked = Asked { file: 0, first, count, client: descriptor, ends_inside };
        let found = |index| if self.pages.is_cached(0, index) { Found::Ready } else { Found::Absent };
        let found: Vec<Found> = (first..stop).map(found).collect();
        let mut runs = vec![Run { file: 0, first, count }];
        self.linux.asked(Nanos::ZERO, &asked, &found, &self.pages, &mut runs);
        self.add(&runs)
    }

    /// Touches the mapped byte at `offset`, to execute it if `text`; returns the pages that enter the cache.
    pub fn touch(&mut self, descriptor: u32, offset: u64, text: bool) -> Vec<u64> {
        let page = offset / PAGE_BYTES;
        let count = self.pages.cached.len() as u64;
        if page >= count || self.pages.mapped[page as usize] || self.map_around(descriptor, page) {
            return Vec::new();
        }
        let asked = Asked { file: 0, first: page, count: 1, client: descriptor, ends_inside: false };
        let mut runs = vec![Run { file: 0, first: page, count: 1 }];
        let again = self.linux.fault(&asked, text.then_some(count), &self.pages, &mut runs);
        let added = self.add(&runs);
        if !again || !self.map_around(descriptor, page) {
            self.pages.mapped[page as usize] = true;
        }
        added
    }

    fn add(&mut self, runs: &[Run]) -> Vec<u64> {
        let count = self.pages.cached.len() as u64;
        let named = runs.iter().flat_map(|run| run.first..run.end().min(count));
        let mut added: Vec<u64> =
            named.filter(|page| !std::mem::replace(&mut self.pages.cached[*page as usize], true)).collect();
        added.sort_unstable();
        added
    }

    /// filemap_map_pages: maps the cached pages around a page, except marked folios. Returns whether `page` is mapped
    /// now.
    fn map_around(&mut self, descriptor: u32, page: u64) -> bool {
        let first = page - page % AROUND;
        let around = first..(first + AROUND).min(self.pages.cached.len() as u64);
        let is_found = |page: &u64| self.pages.is_cached(0, *page) && !self.linux.is_marked(0, *page);
        let found: Vec<u64> = around.filter(is_found).collect();
        found.iter().for_each(|page| self.pages.mapped[*page as usize] = true);
        self.linux.mapped(0, descriptor, found.len() as u32);
        found.contains(&page)
    }
}
