//! Linux 2.6 as simulated in the prefetching literature: groups of blocks that double, a window of two groups.
//!
//! Source: zhang-pfc, section 2.2, after A. R. Butt, C. Gniady and Y. C. Hu, "The Performance Impact of Kernel
//! Prefetching on Buffer Cache Replacement Algorithms", SIGMETRICS 2005. Each file has a *read-ahead group*, the blocks
//! of the last prefetch, and a *read-ahead window*, that group and the one before it. A request that begins outside the
//! window prefetches the minimum, 3 blocks, after itself. One that begins inside is sequential and prefetches a group
//! of twice the size, up to 32 blocks. There is no trigger distance: hits and misses trigger.
//!
//! Readings. When a request inside the window prefetches: with `trigger = "group"`, once it enters the current group
//! (not while it is in the previous one); groups run 3, 6, 12, 24, 32. With `"window"`, at each request inside the
//! window, as zhang-pfc literally says ("if the next access is within the read-ahead window"). The default is not the
//! literal reading, for two reasons. Linux does the former, in 2.4 (mm/filemap.c, generic_file_readahead: inside the
//! last read-ahead) and in 2.6 up to 2.6.22 (mm/readahead.c, page_cache_readahead: a new ahead window once the old one
//! is entered). And the latter contradicts the paper's next sentence, that sequential reads double the group up to 32:
//! after 3, 6 and 12 the window has moved past a reader of single blocks, which then falls out of it and starts again
//! at 3. "Trigger on each hit and each miss" holds for both, because neither checks whether the block was cached. The
//! next group begins where the window ends, or after the request if that is further. Left out: what 2.6 does beyond
//! this description (no group at all after a jump, first groups by the size of the request, its counters of hits and
//! misses, congestion); `linux` is the current kernel.
//!
//! Cost: constant per request; 80 bytes per file, for at most `files` files, the least recently read forgotten first.
//! Not for random reads of one or two blocks: each costs three more.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use headstart_types::{keys, KeyTable, Nanos};

use super::recent::Recent;
use super::{Asked, Cached, Found, ReadAhead, ReadsAhead, Run, Size, FILES};
use crate::row::{Family, PolicyRow};

/// Its row in the registry.
pub static ROW: PolicyRow = PolicyRow {
    name: "linux-2.6",
    summary: "groups that double from 3 to 32 blocks while reads stay in the file's window",
    source: "zhang-pfc, section 2.2; Butt, Gniady and Hu, SIGMETRICS 2005",
    keys: KeyTable::of::<Linux26Keys>(),
    default_replacement: Some("lru"),
    family: Family::ReadAhead(ReadsAhead {
        only_ahead: true,
        spares_random: false,
        ..ReadsAhead::new(&|keys, context| {
            let keys: &Linux26Keys = keys.get();
            let min = keys.min.blocks(context.block_bytes);
            let max = keys.max.blocks(context.block_bytes);
            Ok(Box::new(Linux26::new(min, max, keys.trigger, keys.files as usize)))
        })
    }),
};

keys! {
    /// Keys of `linux-2.6`.
    pub struct Linux26Keys {
        /// The smallest group.
        #[serde(deserialize_with = "super::size::some_blocks")]
        pub min: Size = Size::Blocks(3),
        /// The largest group.
        #[serde(deserialize_with = "super::size::some_blocks")]
        pub max: Size = Size::Blocks(32),
        /// Which requests within the window start a prefetch.
        pub trigger: Trigger = Trigger::default(),
        /// Maximum number of files with state. The least recently read one is forgotten first.
        #[schemars(range(min = 1))]
        pub files: u32 = FILES,
    }
}

/// Which requests within the window start a prefetch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Trigger {
    /// Requests that begin in the current group.
    #[default]
    Group,
    /// All requests.
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
