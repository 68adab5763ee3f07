//! The read-ahead of Linux 2.6.12 to 2.6.16: it processes whole requests, with a current window and one ahead that
//! doubles.
//!
//! Source: mm/readahead.c (page_cache_readahead, make_ahead_window, get_init_ra_size, get_next_ra_size,
//! blockable_page_cache_readahead, check_ra_success, handle_ra_miss) of Linux 2.6.11, and of 2.6.16-rc3 with its
//! patches of February 2006. 2.6.16 is the kernel of li07's virtual machines (section 6.3). 2.6.11 differs in what
//! counts as a first read. 2.6.17 differs in the initial size (4 n up to max/32, 2 n up to max/4) and limits the end of
//! a request to that of the window ahead: both patches of February 2006 were merged after 2.6.16. 2.6.23 replaced all
//! of it (`linux`).
//!
//! ```text
//! continues the last request, no window yet      initial window; a request of at least the maximum also opens one
//! ahead
//! starts elsewhere, or first one not at page 0   the requested pages, at most the maximum at a time; windows are
//! dropped
//! continues, and nothing is ahead                a window ahead; once the request reaches it, the next
//! initial size    n = request rounded up to a power of two; n * n if n <= max/64, max/4 if n <= max/4, else max
//! next size       after a miss 2 less, at least 16 KiB; else 4 n if n < max/16, else 2 n; at most max
//! a window ahead  is not opened while the queue is congested, unless the request reaches into it
//! 256 pages of windows that were cached already  read-ahead is off until a page is absent (VM_MAX_CACHE_HIT,
//!                                                RA_FLAG_INCACHE)
//! ```
//!
//! With a maximum of 32 pages a reader of 16 pages gets 32 at 0; with its second request 32 at 32; then 32 at 64, when
//! it reaches 32.
//!
//! Differences: as in `linux-2.6.10`, a request at page 0 counts as the first of an open file, and demanded pages are
//! fetched together.
//!
//! Cost and memory: as `linux-2.6.10`. Not for reads that are sequential in pieces shorter than two windows.

use headstart_types::{KeyTable, Nanos};

use super::kernel_windows::{built, KernelKeys, Pass, Queue};
use super::recent::Recent;
use super::{Asked, Cached, Found, ReadAhead, ReadsAhead, Run};
use crate::row::{Family, PolicyRow};

/// VM_MAX_CACHE_HIT: number of consecutive window pages found cached after which read-ahead is turned off.
const CACHE_HIT_MAX: u64 = 256;

/// Its row in the registry.
pub static ROW: PolicyRow = PolicyRow {
    name: "linux-2.6.16",
    summary: "Linux 2.6.12 to 2.6.16: current and ahead window that doubles, off for cached files",
    source: "Linux 2.6.16, mm/readahead.c and mm/filemap.c",
    keys: KeyTable::of::<KernelKeys>(),
    default_replacement: Some("lru"),
    family: Family::ReadAhead(ReadsAhead::new(&|keys, context| built(keys, context, Linux2616::new))),
};

/// The kernel's file_ra_state; a size of 0 means no window.
#[derive(Debug, Clone, Copy, Default)]
struct State {
    start: u64,
    size: u64,
    ahead: Option<(u64, u64)>,
    /// The last page processed; `None` before the first.
    previous: Option<u64>,
    /// Consecutive window pages that were cached already.
    cache_hits: u64,
    has_missed: bool,
    in_cache: bool,
}

impl State {
    fn turn_off(&mut self) {
        *self = Self { previous: self.previous, cache_hits: self.cache_hits, ..Self::default() };
    }

    /// The kernel's blockable_page_cache_readahead; false if the queue is congested or cached pages have turned
    /// read-ahead off.
    fn read(&mut self, start: u64, size: u64, may_wait: bool, pass: &mut Pass<'_>) -> bool {
        if !may_wait && pass.congested() {
            return false;
        }
        if pass.read(start, size) > 0 {
            self.cache_hits = 0;
            return true;
        }
        self.cache_hits += size;
        if self.cache_hits < CACHE_HIT_MAX {
            return true;
        }
        self.turn_off();
        self.in_cache = true;
        false
    }

    fn next_size(&mut self, (min, max): (u64, u64)) -> u64 {
        let next = match std::mem::take(&mut self.has_missed) {
            true => self.size.saturating_sub(2).max(min),
            false if self.size < max / 16 => 4 * self.size,
            false => 2 * self.size,
        };
        next.min(max)
    }

    /// The kernel's make_ahead_window; `last` is the last page of the request.
    fn open_ahead(&mut self, bounds: (u64, u64), last: u64, force: bool, pass: &mut Pass<'_>) -> bool {
        let size = self.next_size(bounds);
        let start = self.start.saturating_add(self.size);
        self.ahead = Some((start, size));
        let is_open = self.read(start, size, force || last >= start, pass);
        if !is_open && !force {
            self.ahead = None;
        }
        is_open
    }

    /// The kernel's page_cache_readahead, for `request` pages from `index` on. Returns the page at which it must be
    /// called again.
    fn request(&mut self, bounds: (u64, u64), index: u64, request: u64, pass: &mut Pass<'_>) -> u64 {
        let (mut index, mut request) = (index, request);
        if self.previous == Some(index) {
            request -= 1;
            index += u64::from(request > 0);
        }
        let max = bounds.1;
        let goes_on = self.previous.map_or(index == 0, |previous| index == previous.wrapping_add(1));
        let pages = request.min(max);
        self.previous = Some(index);
        if pages == 0 || self.in_cache {
            return index + 1;
        }
        let last = index + (pages - 1);
        self.previous = Some(last);
        if goes_on && self.size == 0 {
            (self.start, self.size) = (index, initial_size(pages, max));
            if self.read(index, self.size, true, pass) && request >= max {
                self.open_ahead(bounds, last, true, pass);
            }
        } else if !goes_on {
            self.turn_off();
            self.read(index, pages, true, pass);
        } else if self.ahead.is_some() || self.open_ahead(bounds, last, false, pass) {
            if let Some((start, size)) = self.ahead.filter(|(start, _)| last >= *start) {
                (self.start, self.size) = (start, size);
                self.open_ahead(bounds, last, false, pass);
            }
        }
        last.saturating_add(1)
    }

    /// The kernel's handle_ra_miss.
    fn missed(&mut self) {
        (self.has_missed, self.in_cache, self.cache_hits) = (true, false, 0);
    }
}

/// The kernel's get_init_ra_size.
fn initial_size(request: u64, max: u64) -> u64 {
    let size = request.next_power_of_two();
    if size <= max / 64 {
        size * size
    } else if size <= max / 4 {
        max / 4
    } else {
        max
    }
}

/// Current and ahead windows, processing whole requests.
#[derive(Debug)]
pub struct Linux2616 {
    bounds: (u64, u64),
    files: Recent<(u32, u32), State>,
    queue: Queue,
}

impl Linux2616 {
    /// Windows of up to `max` blocks, and of at least `min` while pages go missing; state for `files` open files, and a
    /// queue of `nr_requests` requests below a cache of `frames` blocks.
    #[must_use]
    pub fn new(min: u64, max: u64, nr_requests: u32, files: usize, frames: usize) -> Self {
        Self { bounds: (min, max.max(1)), files: Recent::new(files), queue: Queue::new(nr_requests, frames) }
    }
}

impl ReadAhead for Linux2616 {
    fn asked(&mut self, _: Nanos, asked: &Asked, found: &[Found], cached: &dyn Cached, prefetch: &mut Vec<Run>) {
        let state = self.files.get_or_default((asked.file, asked.client));
        if asked.first == 0 {
            *state = State::default();
        }
        let opened = prefetch.len();
        let mut pass = Pass { asked, cached, queue: &mut self.queue, prefetch, opened };
        let mut next = asked.first;
        for (index, found) in (asked.first..asked.end()).zip(found) {
            if index == next {
                next = state.request(self.bounds, index, asked.end() - index, &mut pass);
            }
            if !found.is_hit() && !pass.is_cached(index) {
                state.missed();
            }
        }
        pass.issue(found);
    }

    fn remembered(&self) -> usize {
        self.files.len() + self.queue.remembered()
    }
}
