//! Linux 2.6 as the prefetching literature simulates it: groups of blocks that double, a window of two groups.
//!
//! Source: zhang-pfc, section 2.2, after A. R. Butt, C. Gniady and Y. C. Hu, "The Performance Impact of Kernel
//! Prefetching on Buffer Cache Replacement Algorithms", SIGMETRICS 2005. For each file a *read-ahead group*, the
//! blocks of the last prefetch, and a *read-ahead window*, that group and the one before it. A request that begins
//! outside the window prefetches the minimum, 3 blocks, after itself; one that begins inside is sequential and
//! prefetches a group of twice the size, up to 32 blocks. There is no trigger distance: hits and misses trigger.
//!
//! Readings. When a request inside the window prefetches: `trigger = "group"`, once it enters the current group
//! (nothing while it is in the previous one); groups run 3, 6, 12, 24, 32. With `"window"`, at each request inside the
//! window, as zhang-pfc's sentence says word for word ("if the next access is within the read-ahead window"). The
//! default is not that sentence, for two reasons. Linux does the former, in 2.4 (mm/filemap.c,
//! generic_file_readahead: inside the last read-ahead) as in 2.6 up to 2.6.22 (mm/readahead.c, page_cache_readahead: a
//! new ahead window once the old one is entered). And the latter contradicts the sentence that follows it, that
//! sequential reads double the group up to 32: after 3, 6 and 12 the window has run away from a reader of single
//! blocks, who falls out of it and starts again at 3. "Trigger on each hit and each miss" holds of both: neither asks
//! whether the block was cached. The next group begins where the window ends, or after the request if that is further.
//! Left out: what 2.6 does beyond this description (no group at all after a jump, first groups by the size of the
//! request, its counters of hits and misses, congestion); `linux` is the present kernel.
//! Cost: constant per request; 80 bytes a file, of at most `files` files, the least recently read forgotten first.
//! Not for random reads of one or two blocks: each costs three more.

use serde::{Deserialize, Serialize};

use headstart_types::Nanos;

use super::recent::Recent;
use super::{Asked, Cached, Found, ReadAhead, Run};

/// Which requests inside the window prefetch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Trigger {
    /// Those that begin in the current group.
    #[default]
    Group,
    /// All.
    Window,
}

/// The window of one file: `previous..group` and `group..end`.
#[derive(Debug, Clone, Copy, Default)]
struct Window {
    previous: u64,
    group: u64,
    end: u64,
}

/// Read-ahead groups and windows.
#[derive(Debug)]
pub struct Linux26 {
    min: u64,
    max: u64,
    trigger: Trigger,
    files: Recent<u32, Window>,
}

impl Linux26 {
    /// Groups of `min` to `max` blocks, state for `files` files.
    #[must_use]
    pub fn new(min: u64, max: u64, trigger: Trigger, files: usize) -> Self {
        Self { min, max: max.max(min), trigger, files: Recent::new(files) }
    }
}

impl ReadAhead for Linux26 {
    fn asked(&mut self, _: Nanos, asked: &Asked, _: &[Found], _: &dyn Cached, prefetch: &mut Vec<Run>) {
        let window = self.files.get_or_default(asked.file);
        if !(window.previous..window.end).contains(&asked.first) {
            let group = asked.end();
            *window = Window { previous: group, group, end: group.saturating_add(self.min) };
        } else if asked.first >= window.group || self.trigger == Trigger::Window {
            let size = (window.end - window.group).saturating_mul(2).min(self.max);
            let group = window.end.max(asked.end());
            *window = Window { previous: window.group, group, end: group.saturating_add(size) };
        } else {
            return;
        }
        prefetch.push(Run::between(asked.file, window.group, window.end));
    }

    fn remembered(&self) -> usize {
        self.files.len()
    }
}
