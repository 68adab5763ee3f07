//! The read-ahead of the present Linux kernel: decided on demand, renewed at a marked page.
//!
//! Source: Linux 6.12.107, mm/readahead.c (page_cache_sync_ra, page_cache_async_ra, get_init_ra_size,
//! get_next_ra_size) and mm/filemap.c (filemap_get_pages, page_cache_prev_miss, page_cache_next_miss), read line by
//! line. The state of an open file is its last window, `start..start + size`, whose last `async_size` blocks begin
//! with a marked one.
//!
//! ```text
//! absent block    at 0, or oversize (more than max), or following the last request: initial window there; what it
//!                 has beyond the request lies behind the mark, or half of it where it has nothing
//!                 else as many cached blocks before it as the request is long, or fewer: random, no read-ahead
//!                 else a stream that the state has forgotten: window of (blocks before + request), mark on its last
//! marked block    where the state expects it: the next window follows the last; twice or four times its size
//!                 elsewhere (streams interleaved): next window from the first block that is absent after it, sized by
//!                 its distance plus the request, and that doubled
//! initial size    n = request rounded up to a power of two; 4 n if n <= max/32, 2 n if n <= max/4, else max
//! next size       4 n if n < max/16, 2 n if n <= max/2, else max, but never less than n; all of it behind the mark
//! ```
//!
//! With max = 32 pages (read_ahead_kb = 128) a reader of single pages from 0 gets 4, 8, 16, 32, 32 ... pages, marked at
//! 1, 4, 12, 28, 60. A request is worked through as filemap does, page by page: windows are opened until it is covered,
//! so a mark inside it is hit at once. Where more than max of it is still to be read, max is raised to that, up to
//! max_sectors_kb. The blocks before an absent one are looked at up to max back, and count as max - 1 if all of them
//! are cached.
//!
//! Kernels from 6.17 on (`version`) end windows where their large folios end, and mark whole folios: see `folios`.
//!
//! What differs: a page is a block of the level. "Following" means at the end of the last request or one block after,
//! as the kernel's byte position gives it for whole pages. Left out: 6.12's marks on large folios, that
//! a folio leaves the cache as a whole, the earlier mark of a window that the end of the file cuts short
//! (what it would read lies beyond the end), mmap read-around, fadvise, madvise and readahead(2) with their pieces of
//! 2 MB (force_page_cache_ra), congestion of the cgroup. Thrashing has no rule of its own in these kernels: a stream
//! whose pages are gone starts anew, or by the cached blocks before it. Marks live in the pages there; here in a map
//! of at most as many as the level has frames.
//! Cost: constant per block, up to max look-ups for an absent block away from the last request; 80 bytes an open file
//! (file and client), of at most `files`, the least recently read forgotten first. Not for reads that are sequential
//! in pieces shorter than a window: each piece at its end has up to max blocks too many.

use crate::row::{Family, PolicyRow};
use headstart_types::{keys, read_keys, KeyTable, Nanos};

pub use super::ramp::{Ramp, Version};

use super::folios::{aligned, first_folio, Folio, Marks};
use super::recent::Recent;
use super::{Asked, BuildReadAhead, Cached, Found, Needs, ReadAhead, ReadsAhead, Run, Size, FILES};

/// Its row in the registry.
pub static ROW: PolicyRow = PolicyRow {
    name: "linux",
    summary: "the kernel's on-demand read-ahead: a window that ramps up, renewed at a marked page",
    source: "Linux 6.12.107 and 6.17, mm/readahead.c and mm/filemap.c",
    keys: KeyTable::of::<LinuxKeys>(),
    default_replacement: Some("lru"),
    family: Family::ReadAhead(ReadsAhead {
        only_ahead: false,
        spares_random: true,
        needs: Needs::Nothing,
        build: BuildReadAhead::Apart(&|keys, context| {
            let keys: LinuxKeys = read_keys(keys)?;
            let max = keys.read_ahead.some_blocks("read_ahead", context.block_bytes)?;
            let request_max = keys.max_request.blocks(context.block_bytes);
            Ok(Box::new(Linux::new(keys.version, max, request_max, keys.files as usize, context.frames as usize)))
        }),
    }),
};

keys! {
    /// Keys of `linux`.
    pub struct LinuxKeys {
        /// Of the kernel. `"6.17"`: windows end where their large folios end, as on ext4 and XFS since then.
        pub version: Version = Version::default(),
        /// The device's `read_ahead_kb`.
        pub read_ahead: Size = Size::kib(128),
        /// The device's `max_sectors_kb`: a request larger than `read_ahead` is read in pieces of up to this.
        pub max_request: Size = Size::kib(1280),
        /// State is kept for so many files: the least recently read is forgotten first.
        #[schemars(range(min = 1))]
        pub files: u32 = FILES,
    }
}

/// The read-ahead state of an open file, in blocks.
#[derive(Debug, Clone, Copy, Default)]
struct State {
    /// First block of the last window.
    start: u64,
    size: u64,
    /// The last blocks of the window, from its marked one.
    async_size: u64,
    /// Its folios have 2^order blocks; 0 where they are single ones.
    order: u32,
    /// The block after the last request; `None` before the first.
    previous: Option<u64>,
}

/// Streams, windows and marks: all but how long a window may be, which each request brings with it.
#[derive(Debug)]
pub(super) struct Windows {
    ramp: Ramp,
    request_max: u64,
    files: Recent<(u32, u32), State>,
    marks: Marks,
}

/// On-demand read-ahead.
#[derive(Debug)]
pub struct Linux {
    max: u64,
    windows: Windows,
}

/// One request on its way through the pages.
struct Pass<'a> {
    ramp: Ramp,
    asked: &'a Asked,
    cached: &'a dyn Cached,
    read_ahead: u64,
    request_max: u64,
    /// Windows of this request, which are cached as far as it is concerned: `opened.0..opened.1`.
    opened: (u64, u64),
}

impl Pass<'_> {
    fn is_cached(&self, index: u64) -> bool {
        (self.opened.0..self.opened.1).contains(&index) || self.cached.is_cached(self.asked.file, index)
    }

    /// The kernel's ractl_max_pages: the limit while `request` blocks are still to be read.
    fn max(&self, request: u64) -> u64 {
        if request > self.read_ahead {
            self.read_ahead.max(self.request_max.min(request))
        } else {
            self.read_ahead
        }
    }

    /// How many blocks before `index` are cached without a gap, below `max`: the last of `max` that are looked at
    /// is taken for the gap.
    fn cached_before(&self, index: u64, max: u64) -> u64 {
        (1..max.min(index.saturating_add(1))).take_while(|back| self.is_cached(index - back)).count() as u64
    }

    /// How many blocks after `index` are cached without a gap, up to `max`.
    fn cached_after(&self, index: u64, max: u64) -> u64 {
        let after = |ahead: &u64| index.checked_add(*ahead).is_some_and(|at| self.is_cached(at));
        (1..=max).take_while(after).count() as u64
    }

    /// An absent block at `index` with `request` blocks still to read. True: a window is to be opened.
    fn absent(&self, state: &mut State, index: u64, request: u64) -> bool {
        let max = self.max(request);
        let follows = state.previous.is_some_and(|previous| index.wrapping_sub(previous) <= 1);
        if index == 0 || request > max || follows {
            (state.size, state.async_size) = self.first_window(state, index, request);
            (state.start, state.order) = (index, 0);
            return true;
        }
        let before = self.cached_before(index, max);
        if before <= request {
            if let Ramp::Slow(_) = self.ramp {
                // What is demanded is the first of the doubling operations, should the next request follow.
                (state.start, state.size, state.async_size) = (index, request, 0);
            }
            return false;
        }
        // Cached from the start of the file: a long stream.
        let trace = if before == index { before * 2 } else { before };
        (state.start, state.size, state.async_size) = (index, (trace + request).min(max), 1);
        state.order = 0;
        true
    }

    /// The window to be opened at an absent block, and how much of it lies behind its mark.
    fn first_window(&self, state: &State, index: u64, request: u64) -> (u64, u64) {
        let max = self.max(request);
        let goes_on = state.size > 0 && index == state.start.saturating_add(state.size);
        let size = match self.ramp {
            Ramp::Slow(_) if goes_on => self.ramp.next(state.size, max).max(request.min(max)),
            _ => self.ramp.initial(request, max),
        };
        let async_size = match self.ramp {
            _ if size > request => size - request,
            // The first operation of a stream is not followed by another one before it has proved to be one.
            Ramp::Slow(_) if !goes_on => 0,
            _ => size / 2,
        };
        (size, async_size)
    }

    /// The marked `folio`, from which on `request` blocks are still to read. True: a window is to be opened.
    fn marked(&self, state: &mut State, folio: Folio, request: u64) -> bool {
        let (max, index) = (self.max(request), folio.first);
        let expected = state.start.saturating_add(state.size - state.async_size);
        let expected = expected - expected % folio.pages;
        if state.size > 0 && index == expected {
            state.start = state.start.saturating_add(state.size);
            state.size = match self.ramp {
                ramp @ Ramp::Kernel(_) => ramp.next(state.size, max).max(state.size),
                ramp @ Ramp::Slow(_) => ramp.next(state.size, max),
            };
        } else {
            let distance = self.cached_after(index, max) + 1;
            if distance > max {
                return false;
            }
            state.start = index.saturating_add(distance);
            state.size = self.ramp.next(distance + request, max);
        }
        if let Ramp::Kernel(Version::V6_17) = self.ramp {
            (state.order, state.size) = aligned(state.order, state.start, state.size, max);
        }
        state.async_size = state.size;
        true
    }
}

impl Windows {
    /// Requests beyond the longest window are read up to `request_max` blocks at a time; state for `files` open files
    /// and marks for a cache of `frames` blocks.
    pub fn new(ramp: Ramp, request_max: u64, files: usize, frames: usize) -> Self {
        Self { ramp, request_max, files: Recent::new(files), marks: Marks::new(frames) }
    }

    /// A request has been looked up, at a place where windows may have `max` blocks, at least 1: see
    /// [`ReadAhead::asked`].
    pub fn asked(&mut self, max: u64, asked: &Asked, found: &[Found], cached: &dyn Cached, prefetch: &mut Vec<Run>) {
        let key = (asked.file, asked.client);
        let mut state = *self.files.get_or_default(key);
        let (ramp, request_max) = (self.ramp, self.request_max);
        let mut pass = Pass { ramp, asked, cached, read_ahead: max, request_max, opened: (0, 0) };
        let mut random_to = 0;
        for (index, found) in (asked.first..asked.end()).zip(found) {
            let request = asked.end() - index;
            if !found.is_hit() && !pass.is_cached(index) && index >= random_to {
                if pass.absent(&mut state, index, request) {
                    self.open(&mut pass, &state, prefetch);
                } else {
                    random_to = asked.end();
                }
            }
            if let Some(folio) = self.marks.take(asked.file, index) {
                if pass.marked(&mut state, folio, asked.end() - folio.first) {
                    self.open(&mut pass, &state, prefetch);
                }
            }
        }
        state.previous = Some(asked.end());
        *self.files.get_or_default(key) = state;
    }

    /// Names the window, as far as it is in the file, and marks its folio unless that is cached already.
    fn open(&mut self, pass: &mut Pass<'_>, state: &State, prefetch: &mut Vec<Run>) {
        let file = pass.asked.file;
        let end = state.start.saturating_add(state.size).min(pass.cached.file_blocks(file).unwrap_or(u64::MAX));
        let mark = state.start.saturating_add(state.size - state.async_size);
        if mark < end && state.async_size > 0 && !pass.is_cached(mark) {
            let pages = if mark == state.start { first_folio(state.order, mark, end) } else { 1 };
            // The kernel falls back on single pages where a part of the folio is cached.
            let is_whole = (mark..mark + pages).all(|index| !pass.is_cached(index));
            self.marks.set(file, Folio { first: mark, pages: if is_whole { pages } else { 1 } });
        }
        if state.start < end {
            prefetch.push(Run::between(file, state.start, end));
            let touches = state.start <= pass.opened.1 && pass.opened.0 <= end && pass.opened.0 < pass.opened.1;
            pass.opened = match touches {
                true => (pass.opened.0.min(state.start), pass.opened.1.max(end)),
                false => (state.start, end),
            };
        }
    }

    /// A block has left the cache.
    pub fn evicted(&mut self, file: u32, index: u64) {
        self.marks.evicted(file, index);
    }

    /// Files and marks in mind.
    pub fn remembered(&self) -> usize {
        self.files.len() + self.marks.len()
    }
}

impl Linux {
    /// As `version` does it: windows of up to `max` blocks, requests beyond it up to `request_max`; state for `files` open files and marks
    /// for a cache of `frames` blocks.
    #[must_use]
    pub fn new(version: Version, max: u64, request_max: u64, files: usize, frames: usize) -> Self {
        Self { max: max.max(1), windows: Windows::new(Ramp::Kernel(version), request_max, files, frames) }
    }
}

impl ReadAhead for Linux {
    fn asked(&mut self, _: Nanos, asked: &Asked, found: &[Found], cached: &dyn Cached, prefetch: &mut Vec<Run>) {
        self.windows.asked(self.max, asked, found, cached, prefetch);
    }

    fn evicted(&mut self, file: u32, index: u64, _unused: bool) {
        self.windows.evicted(file, index);
    }

    fn remembered(&self) -> usize {
        self.windows.remembered()
    }
}
