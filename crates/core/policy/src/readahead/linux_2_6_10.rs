//! The read-ahead of Linux 2.6.9 and 2.6.10: a current window and one ahead of it, with the average run as the measure
//! of streams.
//!
//! Source: mm/readahead.c (page_cache_readahead, check_ra_success, handle_ra_miss) and mm/filemap.c
//! (do_generic_mapping_read) of Linux 2.6.9-rc2, which 2.6.10 kept: a patch to 2.6.10-rc3 shows the same lines, in a
//! file of October 2004. It counts hits in the window (currnt_wnd_hit); up to 2.6.8 it counted pages in order
//! (serial_cnt). The next rework, with RA_FLAG_MISS and VM_MAX_CACHE_HIT, came with 2.6.11 (`linux-2.6.16`). This is
//! the kernel of li07. It processes every page of a request:
//!
//! ```text
//! first page of an open file  the window is half the maximum from there, at any position; the average starts with that
//! too
//! page in the window, or the  next size + 2, at most the maximum; hits + 1, at most twice the maximum and one. If
//! nothing
//! one after it                is ahead yet and the average is beyond the maximum: the next size ahead
//! elsewhere                   next size - 2; average = (average, + 1 if below hits, + hits) / 2; hits = 1
//! beyond the window           first page of the ahead window: that becomes the current one; the next page opens
//! another
//!                             ahead. Else a new window from there, of the average at most the maximum; none ahead
//! the average                 if the hits exceed it: (average + hits + 1) / 2
//! all of a window cached      next size one less than before (check_ra_success); from 1 on read-ahead is off
//! next size 0 or less         read-ahead is off; max absent pages in order, plus one per absent page out of order,
//! turn
//!                             it on again
//! a page absent at its turn   next size - 3, at least 16 KiB (handle_ra_miss); from 1 or 2 on that is below 0, and off
//! ```
//!
//! With a maximum of 32 pages a sequential reader gets windows of 16, 17 and 25 pages at 0, 16 and 33, each when the
//! reader is there. From page 48 on there is one ahead: 32 pages at 58, 90, 122 ..., each on the second page of the one
//! before. A window is not read while the queue is congested, and counts as cached.
//!
//! Differences: a page is a block of the level. A level sees no open(2): a request at page 0 counts as an open, which a
//! program that seeks back to the start would not do. Absent pages that no window covers are fetched together, where
//! the kernel reads them one by one. All windows of a request are named at once, where the kernel's reader waits for
//! each page in turn. Left out: mmap, fadvise, readahead(2), and sizes below a page.
//!
//! Cost: constant per block, and a lookup of each block of a window; 96 bytes per open file (file and client), for at
//! most `files`, the least recently read forgotten first, plus an entry per request of the queue. Not for random reads:
//! the first of a file reads half the maximum.

use headstart_types::{KeyTable, Nanos};

use super::kernel_windows::{built, KernelKeys, Pass, Queue};
use super::recent::Recent;
use super::{Asked, Cached, Found, ReadAhead, ReadsAhead, Run};
use crate::row::{Family, PolicyRow};

/// Its row in the registry.
pub static ROW: PolicyRow = PolicyRow {
    name: "linux-2.6.10",
    summary: "Linux 2.6.9 and 2.6.10: current and ahead window, sized by the average run of hits",
    source: "Linux 2.6.9 and 2.6.10, mm/readahead.c and mm/filemap.c",
    keys: KeyTable::of::<KernelKeys>(),
    default_replacement: Some("lru"),
    family: Family::ReadAhead(ReadsAhead {
        spares_random: false,
        ..ReadsAhead::new(&|keys, context| built(keys, context, Linux2610::new))
    }),
};

/// The kernel's file_ra_state.
#[derive(Debug, Clone, Copy, Default)]
struct State {
    /// The current window. While read-ahead is off, `size` counts absent pages in order.
    start: u64,
    size: u64,
    /// Size of the next window; 0 before the first page.
    next_size: i64,
    is_off: bool,
    previous: u64,
    ahead: Option<(u64, u64)>,
    hits: u64,
    average: u64,
}

impl State {
    /// The average run; combined with the current run if that is longer.
    fn average_run(&self) -> u64 {
        match self.hits > self.average {
            true => (self.hits + self.average).div_ceil(2),
            false => self.average,
        }
    }

    fn turn_off(&mut self) {
        (self.is_off, self.size) = (true, 0);
    }

    /// The kernel's check_ra_success. `read`: pages of the window that were not cached; `before`: the next size before
    /// this page.
    fn check(&mut self, read: u64, before: i64) {
        if read > 0 {
            return;
        }
        if before > 1 {
            self.next_size = before - 1;
            if let Some((_, size)) = &mut self.ahead {
                *size = self.next_size.unsigned_abs();
            }
        } else {
            self.turn_off();
        }
    }

    /// Reads a window unless the queue is congested; returns the number of its pages that were not cached.
    fn read(pass: &mut Pass<'_>, start: u64, size: u64) -> u64 {
        if pass.congested() {
            return 0;
        }
        pass.read(start, size)
    }

    /// The kernel's page_cache_readahead for the page at `index`.
    fn page(&mut self, max: u64, index: u64, pass: &mut Pass<'_>) {
        let is_first = self.next_size == 0 && !self.is_off;
        if self.is_off || index == self.previous && !is_first {
            return;
        }
        let before = self.next_size;
        self.previous = index;
        if is_first {
            self.next_size = (max / 2).max(1) as i64;
            self.hits += 1;
            self.open(max, index, true, before, pass);
            return;
        }
        let end = self.start.saturating_add(self.size);
        if (self.start..=end).contains(&index) {
            self.next_size += 2;
            self.hits += u64::from(self.hits <= 2 * max);
        } else {
            self.next_size -= 2;
            self.average = (self.average + u64::from(self.average < self.hits) + self.hits) / 2;
            self.hits = 1;
        }
        self.next_size = self.next_size.min(max as i64);
        if self.next_size <= 0 {
            self.turn_off();
            return;
        }
        if !(self.start..end).contains(&index) {
            match self.ahead {
                Some((start, size)) if start == index => {
                    (self.start, self.size, self.ahead) = (start, size, None);
                }
                _ => self.open(max, index, false, before, pass),
            }
        } else if self.ahead.is_none() && self.average_run() > max {
            let size = self.next_size.unsigned_abs();
            self.ahead = Some((end, size));
            let read = Self::read(pass, end, size);
            self.check(read, before);
        }
    }

    /// Opens a window at `index`, with nothing ahead.
    fn open(&mut self, max: u64, index: u64, is_first: bool, before: i64, pass: &mut Pass<'_>) {
        if !is_first {
            self.next_size = self.average_run().min(max) as i64;
        }
        (self.start, self.size, self.ahead) = (index, self.next_size.unsigned_abs(), None);
        let read = Self::read(pass, index, self.size);
        if !is_first {
            self.check(read, before);
        }
    }

    /// The kernel's handle_ra_miss: the page at `index` is absent although read-ahead has processed it.
    fn missed(&mut self, (min, max): (u64, u64), index: u64) {
        if !self.is_off {
            self.next_size -= 3;
            // In the kernel a value below zero is a large number, turned off at the next page; -1 means off.
            if (0..min as i64).contains(&self.next_size) {
                self.next_size = min as i64;
            }
            self.is_off = self.next_size == -1;
            return;
        }
        if index == self.previous.wrapping_add(1) {
            self.size += 1;
            if self.size >= max {
                // In the kernel a start before the file is a large number: no page is in that window.
                let start = index.wrapping_sub(max);
                *self = Self {
                    start,
                    size: max,
                    next_size: max as i64,
                    average: max / 2,
                    hits: self.hits,
                    ..Self::default()
                };
            }
        } else {
            self.size = self.size.saturating_sub(1);
        }
        self.previous = index;
    }
}

/// Current and ahead windows.
#[derive(Debug)]
pub struct Linux2610 {
    min: u64,
    max: u64,
    files: Recent<(u32, u32), State>,
    queue: Queue,
}

impl Linux2610 {
    /// Windows of up to `max` blocks, and of at least `min` while pages go missing; state for `files` open files, and a
    /// queue of `nr_requests` requests below a cache of `frames` blocks.
    #[must_use]
    pub fn new(min: u64, max: u64, nr_requests: u32, files: usize, frames: usize) -> Self {
        Self { min, max: max.max(1), files: Recent::new(files), queue: Queue::new(nr_requests, frames) }
    }
}

impl ReadAhead for Linux2610 {
    fn asked(&mut self, _: Nanos, asked: &Asked, found: &[Found], cached: &dyn Cached, prefetch: &mut Vec<Run>) {
        let state = self.files.get_or_default((asked.file, asked.client));
        if asked.first == 0 || state.next_size == 0 && !state.is_off {
            *state = State { average: self.max / 2, ..State::default() };
        }
        let opened = prefetch.len();
        let mut pass = Pass { asked, cached, queue: &mut self.queue, prefetch, opened };
        for (index, found) in (asked.first..asked.end()).zip(found) {
            state.page(self.max, index, &mut pass);
            if !found.is_hit() && !pass.is_cached(index) {
                state.missed((self.min, self.max), index);
            }
        }
        pass.issue(found);
    }

    fn remembered(&self) -> usize {
        self.files.len() + self.queue.remembered()
    }
}
