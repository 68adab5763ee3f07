//! Faults of mapped files in `linux`: read around, ahead of program text, or not at all.
//!
//! Source: Linux 6.12.107 and 6.18, mm/filemap.c (do_sync_mmap_readahead, do_async_mmap_readahead, filemap_map_pages).
//! Faults share windows and marks with the reads of the open file. A fault of an absent page reads `read_ahead` pages,
//! half of them before it, the last quarter behind the mark. Since 6.17, if the page is mapped executable, it reads
//! from the page to the end of the mapping, without a mark. An open file with 100 more such faults than hits reads only
//! the page. Left out: madvise.

use super::folios::Folio;
use super::linux::{State, Windows};
use super::{Asked, Cached, Run};

/// `MMAP_LOTSAMISS`.
const MISSES_MAX: u32 = 100;

impl Windows {
    /// Handles a touch of the one block of `asked`, which is not mapped, and appends what is read. `text`: the end of
    /// the executable mapping that was touched, if it is one. Returns true if the kernel has read ahead and takes the
    /// fault again.
    pub fn fault(
        &mut self,
        max: u64,
        asked: &Asked,
        text: Option<u64>,
        cached: &dyn Cached,
        prefetch: &mut Vec<Run>,
    ) -> bool {
        let key = (asked.file, asked.client);
        let mut state = *self.files.get_or_default(key);
        let mut pass = self.pass(max, asked, cached);
        let is_ahead = if cached.is_cached(asked.file, asked.first) {
            state.misses = state.misses.saturating_sub(1);
            let folio = self.marks.take(asked.file, asked.first);
            // Reading continues from the page that was touched, not from the start of its folio.
            let goes_on = |Folio { pages, .. }| {
                pass.marked(&mut state, &self.folios, (asked.first, pages), max) && {
                    self.open(&mut pass, &state, prefetch);
                    true
                }
            };
            folio.is_some_and(goes_on)
        } else {
            state.misses = (state.misses + 1).min(10 * MISSES_MAX);
            let reads = state.misses <= MISSES_MAX;
            if reads {
                state = window(state, asked.first, max, text.filter(|_| self.ramp.is_laid_in_folios()));
                self.open(&mut pass, &state, prefetch);
            }
            reads
        };
        *self.files.get_or_default(key) = state;
        is_ahead
    }

    /// Records that `pages` cached pages around a touched one were mapped with it.
    pub fn mapped(&mut self, file: u32, client: u32, pages: u32) {
        if let Some(state) = self.files.peek_mut((file, client)) {
            state.misses = state.misses.saturating_sub(pages);
        }
    }
}

/// The window for a fault on an absent page.
fn window(state: State, page: u64, max: u64, text: Option<u64>) -> State {
    match text {
        Some(end) => State { start: page, size: max.min(end.saturating_sub(page)), async_size: 0, order: 0, ..state },
        None => State { start: page.saturating_sub(max / 2), size: max, async_size: max / 4, order: 0, ..state },
    }
}
