//! InnoDB's linear read-ahead: an extent that has been read in order causes the whole next one to be read.
//!
//! Source: MySQL 8.4.8, storage/innobase/buf/buf0rea.cc (buf_read_ahead_linear), read line by line in a tree that
//! carries that version and leaves the function unchanged; the parameter innodb_read_ahead_threshold (56).
//!
//! The first access since loading to the last page of an extent of 64 pages (to the first page, for downward scans)
//! triggers a check of the whole extent: a page fails if it has not been accessed, or was first accessed before the
//! accessed page ahead of it (after it, downwards). With at most 64 - 56 = 8 failures the next extent (the previous
//! one, downwards) is read, if both are complete. A threshold of 0 turns it off. In a buffer pool under 1056 pages the
//! extent is smaller: a 32nd of the pool, rounded up to a power of two.
//!
//! Differences: a page's neighbours in the file count as its neighbours in the B-tree (InnoDB uses the page's own
//! links, and does nothing where the two differ). Times are access numbers, so none are equal. An extent has at least 2
//! pages. InnoDB reads an extent as single pages; here it is one run. Left out: random read-ahead, which is off by
//! default, and the pause while half of the pool's pages are being read.
//!
//! Cost: constant per page, one pass over the extent at its borders; 600 bytes per extent, for at most `extents` and at
//! most one per frame, the least recently read forgotten first. Not for short scans: nothing is read ahead in the first
//! 64 pages.

use headstart_types::{keys, KeyTable, Nanos};

use super::recent::Recent;
use super::{Asked, Cached, Found, ReadAhead, ReadsAhead, Run, FILES};
use crate::row::{Family, PolicyRow};

/// Its row in the registry.
pub static ROW: PolicyRow = PolicyRow {
    name: "innodb",
    summary: "linear read-ahead: the next extent of 64 pages after an extent with at least 56 pages read in order",
    source: "MySQL 8.4.8, storage/innobase/buf/buf0rea.cc",
    keys: KeyTable::of::<InnoDbKeys>(),
    default_replacement: Some("lru"),
    family: Family::ReadAhead(ReadsAhead::new(&|keys, context| {
        let keys: &InnoDbKeys = keys.get();
        // An extent is only worth remembering if it has a page in the pool.
        let extents = keys.extents.min(context.frames) as usize;
        Ok(Box::new(InnoDb::new(context.frames, keys.threshold, extents)))
    })),
};

keys! {
    /// Keys of `innodb`.
    pub struct InnoDbKeys {
        /// Number of pages of an extent that must be read in order before the next extent is prefetched
        /// (innodb_read_ahead_threshold).
        #[schemars(range(min = 0, max = 64))]
        pub threshold: u32 = 56,
        /// Maximum number of extents with state.
        #[schemars(range(min = 1))]
        pub extents: u32 = FILES,
    }
}

/// Linear read-ahead.
#[derive(Debug)]
pub struct InnoDb {
    /// Pages per extent, a power of two.
    area: u64,
    /// Number of pages that may fail; `None`: no read-ahead.
    failures: Option<u64>,
    accesses: u64,
    /// By file and extent number: for each page the number of its first access since it was loaded, or 0.
    extents: Recent<(u32, u64), Vec<u64>>,
}

impl InnoDb {
    /// For a buffer pool of `frames` pages; state for `extents` extents.
    #[must_use]
    pub fn new(frames: u32, threshold: u32, extents: usize) -> Self {
        let area = u64::from((frames / 32).max(2).next_power_of_two().min(64));
        let failures = (threshold > 0).then(|| u64::from(64u32.saturating_sub(threshold)).min(area));
        Self { area, failures, accesses: 0, extents: Recent::new(extents) }
    }

    /// Records an access; returns whether it is the first since the page was loaded.
    fn access(&mut self, file: u32, index: u64, absent: bool) -> bool {
        self.accesses += 1;
        let times = self.extents.get_or_default((file, index / self.area));
        times.resize(self.area as usize, 0);
        let time = &mut times[(index % self.area) as usize];
        let first = *time == 0 || absent;
        if first {
            *time = self.accesses;
        }
        first
    }

    /// Whether few enough pages of the extent fail.
    fn in_order(&self, file: u32, extent: u64, upwards: bool) -> bool {
        let (Some(failures), Some(times)) = (self.failures, self.extents.peek((file, extent))) else { return false };
        let (mut failed, mut before) = (0, 0);
        for time in times {
            let ordered = before == 0 || (*time > before) == upwards;
            failed += u64::from(*time == 0 || !ordered);
            if *time > 0 {
                before = *time;
            }
        }
        failed <= failures
    }
}

impl ReadAhead for InnoDb {
    fn asked(&mut self, _: Nanos, asked: &Asked, found: &[Found], cached: &dyn Cached, prefetch: &mut Vec<Run>) {
        let file = asked.file;
        for (index, found) in (asked.first..asked.end()).zip(found) {
            let first = self.access(file, index, *found == Found::Absent);
            let (extent, page) = (index / self.area, index % self.area);
            // As in InnoDB, the first page of an extent only triggers downwards.
            let upwards = page != 0;
            if !first || (upwards && page != self.area - 1) || !self.in_order(file, extent, upwards) {
                continue;
            }
            let next = if upwards { extent.checked_add(1) } else { extent.checked_sub(1) };
            let start = next.and_then(|next| next.checked_mul(self.area));
            let Some((start, end)) = start.and_then(|start| Some((start, start.checked_add(self.area)?))) else {
                continue;
            };
            // Downwards, the extent to be read precedes the one that was read.
            let whole = if upwards { end } else { end.saturating_add(self.area) };
            if cached.file_blocks(file).is_none_or(|blocks| whole <= blocks) {
                prefetch.push(Run::between(file, start, end));
            }
        }
    }

    fn evicted(&mut self, file: u32, index: u64, _unused: bool) {
        // Does not refresh the entry: an extent that loses pages is not in use.
        let page = (index % self.area) as usize;
        if let Some(time) = self.extents.peek_mut((file, index / self.area)).and_then(|times| times.get_mut(page)) {
            *time = 0;
        }
    }

    fn remembered(&self) -> usize {
        self.extents.values().map(|times| 1 + times.len()).sum()
    }
}
