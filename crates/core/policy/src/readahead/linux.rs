//! The read-ahead of the current Linux kernel: decided on demand, renewed at a marked page.
//!
//! Source: Linux 6.12.107 and 6.18, mm/readahead.c (page_cache_sync_ra, page_cache_async_ra, get_init_ra_size,
//! get_next_ra_size) and mm/filemap.c (filemap_get_pages, page_cache_prev_miss, page_cache_next_miss), read line by
//! line. The state of an open file is its last window, `start..start + size`; the first of its last `async_size` blocks
//! is marked.
//!
//! ```text
//! absent block   at 0, or oversize (more than max), or following the last request: initial window there; what it
//!                has beyond the request is behind the mark, or half of it if it has nothing beyond
//!                else at most as many cached blocks before it as the request is long: random, no read-ahead
//!                else a stream that the state has forgotten: window of (blocks before + request), mark on its last
//! marked block   where the state expects it: the next window follows the last; twice or four times its size
//!                elsewhere (streams interleaved): next window from the first block that is absent after it, sized by
//!                its distance plus the request, and that doubled
//! initial size n = request rounded up to a power of two; 4 n if n <= max/32, 2 n if n <= max/4, else max
//! next size      4 n if n < max/16, 2 n if n <= max/2, else max, but never less than n; all of it behind the mark
//! ```
//!
//! With max = 32 pages (read_ahead_kb = 128) a reader of single pages from 0 gets 4, 8, 16, 32, 32 ... pages, marked at
//! 1, 4, 12, 28, 60. A request is processed page by page, as in filemap: windows are opened until it is covered, so a
//! mark inside it is hit at once. If more than max of it is still to be read, max is raised to that, up to
//! max_sectors_kb. The search for cached blocks before an absent one goes up to max back, and counts max - 1 if all of
//! them are cached.
//!
//! Kernels from 6.17 on (`version`) end windows where their large folios end, mark whole folios, and find holes late
//! within them: see `folios` and `holes`.
//!
//! Differences: a page is a block of the level. In 6.12, which was not compared with a kernel page by page, requests
//! end where their last block does, and what a random read fetches counts as absent for the rest of the request. Left
//! out: 6.12's large folios on XFS; that a folio leaves the cache as a whole; the earlier mark of a window that the end
//! of the file cuts short in 6.12 (what it would read is beyond the end); mapped files (except for hosts that know
//! their faults: see `faults`); fadvise, madvise and readahead(2) with their pieces of 2 MB (force_page_cache_ra);
//! congestion of the cgroup. Thrashing has no rule of its own in these kernels: a stream whose pages were evicted
//! starts anew, or from the cached blocks before it. The kernel keeps marks in the pages; here they are in a map of at
//! most as many entries as the level has frames.
//!
//! Cost: constant per block, up to max lookups for an absent block away from the last request; 80 bytes per open file
//! (file and client), for at most `files`, the least recently read forgotten first. Not for reads that are sequential
//! in pieces shorter than a window: each piece prefetches up to max blocks too many at its end.

use crate::row::{Family, PolicyRow};
use headstart_types::{keys, KeyTable, Nanos};

pub use super::ramp::{Ramp, Version};

use super::folios::{aligned, fitting, Folio, Folios, Marks};
use super::holes::{Blocks, Towards};
use super::recent::Recent;
use super::{Asked, Cached, Found, ReadAhead, ReadsAhead, Run, Size, FILES};

/// Its row in the registry.
pub static ROW: PolicyRow = PolicyRow {
    name: "linux",
    summary: "the kernel's on-demand read-ahead: a window that ramps up, renewed at a marked page",
    source: "Linux 6.12.107 and 6.18, mm/readahead.c and mm/filemap.c",
    keys: KeyTable::of::<LinuxKeys>(),
    default_replacement: Some("lru"),
    family: Family::ReadAhead(ReadsAhead::new(&|keys, context| {
        let keys: &LinuxKeys = keys.get();
        let max = keys.read_ahead.blocks(context.block_bytes);
        let request_max = keys.max_request.blocks(context.block_bytes);
        Ok(Box::new(Linux::new(keys.version, max, request_max, keys.files as usize, context.frames as usize)))
    })),
};

keys! {
    /// Keys of `linux`.
    pub struct LinuxKeys {
        /// Version of the kernel. Since 6.17, windows end where their large folios end, on ext4 and XFS. `"6.17"` and
        /// `"6.18"` behave alike.
        pub version: Version = Version::default(),
        /// The device's `read_ahead_kb`. 0: only demanded blocks are read, one by one.
        pub read_ahead: Size = Size::kib(128),
        /// The device's `max_sectors_kb`. A request larger than `read_ahead` is read in pieces of at most this size.
        pub max_request: Size = Size::kib(1280),
        /// Maximum number of files with state. The least recently read one is forgotten first.
        #[schemars(range(min = 1))]
        pub files: u32 = FILES,
    }
}

/// The read-ahead state of an open file, in blocks.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct State {
    /// First block of the last window.
    pub start: u64,
    pub size: u64,
    /// Number of blocks in the window from its marked one on.
    pub async_size: u64,
    /// The window's folios have 2^order blocks; 0 for single blocks.
    pub order: u32,
    /// Faults on absent pages minus faults on cached ones.
    pub misses: u32,
    /// The block at which the last request ended: its last block if it ended inside that, otherwise the next one;
    /// `None` before the first request.
    pub previous: Option<u64>,
}

/// Streams, windows, folios and marks. The maximum window is not kept here; each request supplies it.
#[derive(Debug)]
pub(super) struct Windows {
    pub ramp: Ramp,
    request_max: u64,
    pub files: Recent<(u32, u32), State>,
    pub marks: Marks,
    pub folios: Folios,
    /// What the last request fetched; kept to reuse its memory.
    fetched: Vec<(u64, u64)>,
    /// Whether a window is issued when the reader enters the previous one; otherwise when that is used up.
    pub leaves_ahead: bool,
}

/// On-demand read-ahead.
#[derive(Debug)]
pub struct Linux {
    max: u64,
    windows: Windows,
}

/// One request in progress.
pub(super) struct Pass<'a> {
    ramp: Ramp,
    asked: &'a Asked,
    cached: &'a dyn Cached,
    read_ahead: u64,
    request_max: u64,
    /// What this request has fetched so far; it counts as cached for this request.
    fetched: Vec<(u64, u64)>,
}

impl Pass<'_> {
    fn is_fetched(&self, index: u64) -> bool {
        self.fetched.iter().any(|(first, end)| (*first..*end).contains(&index))
    }

    fn is_cached(&self, index: u64) -> bool {
        self.is_fetched(index) || self.cached.is_cached(self.asked.file, index)
    }

    /// The end of the file.
    fn stop(&self) -> u64 {
        self.cached.file_blocks(self.asked.file).unwrap_or(u64::MAX)
    }

    /// The kernel's ractl_max_pages: the limit while `request` blocks remain to be read.
    fn max(&self, request: u64) -> u64 {
        if request > self.read_ahead {
            self.read_ahead.max(self.request_max.min(request))
        } else {
            self.read_ahead
        }
    }

    fn hole(&self, folios: &Folios, from: u64, most: u64, towards: Towards) -> u64 {
        Blocks { file: self.asked.file, is_cached: |index| self.is_cached(index), folios }.hole(from, most, towards)
    }

    /// Handles an absent block at `index` with `request` blocks still to read. Returns whether to open a window.
    fn absent(&self, state: &mut State, folios: &Folios, index: u64, request: u64) -> bool {
        let max = self.max(request);
        let follows = state.previous.is_some_and(|previous| index.wrapping_sub(previous) <= 1);
        if index == 0 || request > max || follows {
            (state.size, state.async_size) = self.first_window(state, index, request);
            (state.start, state.order) = (index, 0);
            return true;
        }
        let hole = self.hole(folios, index - 1, max, Towards::Start);
        // Counts as the kernel does: one less than it has examined if all are cached.
        let before = (index - 1).wrapping_sub(hole);
        if before <= request {
            if let Ramp::Slow(_) = self.ramp {
                // If the next request follows, the demanded blocks count as the first of the doubling operations.
                (state.start, state.size, state.async_size) = (index, request, 0);
            }
            return false;
        }
        // Cached from the start of the file: a long stream.
        let trace = if hole == u64::MAX { before * 2 } else { before };
        (state.start, state.size, state.async_size) = (index, (trace + request).min(max), 1);
        state.order = 0;
        true
    }

    /// The size of the window to open at an absent block, and how much of it is behind its mark.
    fn first_window(&self, state: &State, index: u64, request: u64) -> (u64, u64) {
        let max = self.max(request);
        let goes_on = state.size > 0 && index == state.start.saturating_add(state.size);
        let size = match self.ramp {
            Ramp::Slow(_) if goes_on => self.ramp.next(state.size, max).max(request.min(max)),
            _ => self.ramp.initial(request, max),
        };
        let async_size = match self.ramp {
            _ if size > request => size - request,
            // The first operation of a stream is followed by another only after the stream has proved to be one.
            Ramp::Slow(_) if !goes_on => 0,
            _ => size / 2,
        };
        (size, async_size)
    }

    /// Handles a touch at `index` of a marked folio of `pages` blocks, with `request` blocks still to read. Returns
    /// whether to open a window.
    pub fn marked(&self, state: &mut State, folios: &Folios, (index, pages): (u64, u64), request: u64) -> bool {
        let max = self.max(request);
        let expected = state.start.saturating_add(state.size - state.async_size);
        let expected = expected - expected % pages;
        if state.size > 0 && index == expected {
            state.start = state.start.saturating_add(state.size);
            state.size = match self.ramp {
                ramp @ Ramp::Kernel(_) => ramp.next(state.size, max).max(state.size),
                ramp @ Ramp::Slow(_) => ramp.next(state.size, max),
            };
        } else {
            let Some(after) = index.checked_add(1) else { return false };
            let hole = self.hole(folios, after, max, Towards::End);
            let distance = hole.wrapping_sub(index);
            if hole == 0 || distance > max {
                return false;
            }
            state.start = hole;
            state.size = self.ramp.next(distance + request, max);
        }
        if self.ramp.is_laid_in_folios() {
            (state.order, state.size) = aligned(state.order, state.start, state.size, max);
        }
        state.async_size = state.size;
        true
    }
}

impl Windows {
    /// Requests beyond the longest window are read in pieces of up to `request_max` blocks; state for `files` open
    /// files and marks for a cache of `frames` blocks.
    pub fn new(ramp: Ramp, request_max: u64, files: usize, frames: usize) -> Self {
        let (marks, folios) = (Marks::new(frames), Folios::new(frames));
        Self { ramp, request_max, files: Recent::new(files), marks, folios, fetched: Vec::new(), leaves_ahead: true }
    }

    /// Starts a request at a place where windows may have `max` blocks.
    pub fn pass<'a>(&mut self, max: u64, asked: &'a Asked, cached: &'a dyn Cached) -> Pass<'a> {
        let (ramp, request_max) = (self.ramp, self.request_max);
        let mut fetched = std::mem::take(&mut self.fetched);
        fetched.clear();
        Pass { ramp, asked, cached, read_ahead: max, request_max, fetched }
    }

    /// Handles a looked-up request at a place where windows may have `max` blocks, at least 1; see
    /// [`ReadAhead::asked`].
    pub fn asked(&mut self, max: u64, asked: &Asked, found: &[Found], cached: &dyn Cached, prefetch: &mut Vec<Run>) {
        let key = (asked.file, asked.client);
        let mut state = *self.files.get_or_default(key);
        let mut pass = self.pass(max, asked, cached);
        let (mut random_to, mut marked) = (0, asked.first);
        for (index, found) in (asked.first..asked.end()).zip(found) {
            let request = asked.end() - index;
            if !found.is_hit() && index >= random_to && !pass.is_fetched(index) {
                if pass.absent(&mut state, &self.folios, index, request) {
                    self.open(&mut pass, &state, prefetch);
                    marked = index;
                } else {
                    random_to = asked.end();
                    if self.ramp.is_laid_in_folios() {
                        pass.fetched.push((index, asked.end().min(pass.stop())));
                    }
                }
            }
            if index < marked {
                continue;
            }
            if let Some(folio) = self.marks.take(asked.file, index) {
                let request = asked.end() - folio.first;
                if pass.marked(&mut state, &self.folios, (folio.first, folio.pages), request) {
                    self.open(&mut pass, &state, prefetch);
                }
            }
            marked = self.marks.next(asked.file, index + 1);
        }
        let ends_inside = asked.ends_inside && self.ramp.is_laid_in_folios();
        state.previous = Some(asked.end() - u64::from(ends_inside));
        self.fetched = pass.fetched;
        *self.files.get_or_default(key) = state;
    }

    /// The kernel's page_cache_ra_order: names the part of the window inside the file, lays its folios and sets its
    /// mark.
    pub fn open(&mut self, pass: &mut Pass<'_>, state: &State, prefetch: &mut Vec<Run>) {
        let file = pass.asked.file;
        let (start, full) = (state.start, state.start.saturating_add(state.size));
        let end = full.min(pass.stop());
        if start >= end {
            return;
        }
        let mark = start.saturating_add(state.size - state.async_size);
        if state.order == 0 && (end == full || !self.ramp.is_laid_in_folios()) {
            if self.leaves_ahead && mark < end && !pass.is_cached(mark) {
                self.marks.set(file, Folio { first: mark, pages: 1 });
            }
        } else {
            self.lay(pass, state, mark, end);
        }
        prefetch.push(Run::between(file, start, end));
        pass.fetched.push((start, end));
    }

    /// Lays folios until one overlaps a cached block; from there on single blocks (do_page_cache_ra), whose mark is
    /// counted from the end of the file if that cuts the window.
    fn lay(&mut self, pass: &Pass<'_>, state: &State, mark: u64, end: u64) {
        let file = pass.asked.file;
        let mut index = state.start;
        while index < end {
            let order = fitting(state.order, index, end);
            let pages = 1u64 << order;
            if (index..index + pages).any(|index| pass.is_cached(index)) {
                break;
            }
            if order > 0 {
                self.folios.set(file, index, order);
            }
            if (index..index + pages).contains(&mark) {
                self.marks.set(file, Folio { first: index, pages });
            }
            index += pages;
        }
        let mark = end.saturating_sub(state.async_size);
        if (index..end).contains(&mark) && !pass.is_cached(mark) {
            self.marks.set(file, Folio { first: mark, pages: 1 });
        }
    }

    /// Called when a block has left the cache.
    pub fn evicted(&mut self, file: u32, index: u64) {
        self.marks.evicted(file, index);
        self.folios.evicted(file, index);
    }

    /// Number of files, marks and folios remembered.
    pub fn remembered(&self) -> usize {
        self.files.len() + self.marks.len() + self.folios.len()
    }
}

impl Linux {
    /// The read-ahead of kernel `version`: windows of up to `max` blocks, larger requests in pieces of up to
    /// `request_max`; state for `files` open files and marks for a cache of `frames` blocks.
    #[must_use]
    pub fn new(version: Version, max: u64, request_max: u64, files: usize, frames: usize) -> Self {
        Self { max, windows: Windows::new(Ramp::Kernel(version), request_max, files, frames) }
    }
}

/// Mapped files, for hosts that know their faults; see `faults`.
impl Linux {
    /// Handles a touch of the one block of `asked`, which is not mapped; see [`ReadAhead::asked`]. `text`: the end of
    /// the executable mapping that was touched, if it is one. Returns true if the kernel has read ahead and takes the
    /// fault again.
    pub fn fault(&mut self, asked: &Asked, text: Option<u64>, cached: &dyn Cached, prefetch: &mut Vec<Run>) -> bool {
        self.max > 0 && self.windows.fault(self.max, asked, text, cached, prefetch)
    }

    /// Records that `blocks` cached blocks around a touched one were mapped with it.
    pub fn mapped(&mut self, file: u32, client: u32, blocks: u32) {
        self.windows.mapped(file, client, blocks);
    }

    /// Whether the block carries a mark; marked blocks are not mapped with others.
    #[must_use]
    pub fn is_marked(&self, file: u32, index: u64) -> bool {
        self.windows.marks.has(file, index)
    }
}

impl ReadAhead for Linux {
    fn asked(&mut self, _: Nanos, asked: &Asked, found: &[Found], cached: &dyn Cached, prefetch: &mut Vec<Run>) {
        if self.max > 0 {
            self.windows.asked(self.max, asked, found, cached, prefetch);
        }
    }

    fn evicted(&mut self, file: u32, index: u64, _unused: bool) {
        self.windows.evicted(file, index);
    }

    fn order_max(&self) -> u32 {
        if self.max == 0 {
            1
        } else {
            u32::MAX
        }
    }

    fn remembered(&self) -> usize {
        self.windows.remembered()
    }
}
