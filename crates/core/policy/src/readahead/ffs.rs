//! The 4.4BSD Fast File System: the blocks of a cluster in requests that double, one prefetch ahead of the reader.
//!
//! Source: E. Shriver, C. Small and K. A. Smith, "Why does file system prefetching work?", USENIX 1999, section 2.1,
//! for the rules; 4.4BSD-Lite, sys/kern/vfs_cluster.c, `cluster_read`, for what the paper leaves open. A read of block
//! x is sequential if the last block read from the file was x or x - 1. An absent block is fetched together with the
//! blocks of the window after it. A cached block causes an asynchronous fetch of the blocks from one window further on,
//! if the first of them is absent. The window starts empty, is one block at the first prefetch, and doubles with each
//! fetch while more contiguous blocks on the disk exist than it holds, up to a cluster. It is halved when a block to be
//! prefetched was prefetched before and has been evicted. A read that is not sequential resets the window. The fragment
//! at a file's end is never prefetched. So a file of 64 KiB is read in requests of 8, 16, 24 and 16 KiB: four, of 16
//! KiB on average, as the paper counts (section 5).
//!
//! Readings. If a prefetch needs an indirect block that is not cached, 4.4BSD reads that block while the application
//! waits. Here the indirect block is prefetched, and the blocks it points to at the first read that finds it. `first`
//! above one block is the paper's proposal (section 6): once the head is over a cluster, read all of it. Every read
//! that is not sequential then fetches that many blocks.
//!
//! Cost: constant per block; about 50 bytes per file, for at most `files` files, the least recently read forgotten
//! first.

use headstart_types::{keys, KeyError, KeyTable, Nanos};

use super::recent::Recent;
use super::{Asked, Cached, Found, ReadAhead, ReadsAhead, Run, Size, FILES};
use crate::row::{Family, PolicyRow};

/// Its row in the registry.
pub static ROW: PolicyRow = PolicyRow {
    name: "ffs",
    summary: "4.4BSD's clusters: requests that double up to 64 KiB, one prefetch ahead of a sequential reader",
    source: "Shriver, Small and Smith, USENIX 1999, section 2.1; 4.4BSD-Lite, sys/kern/vfs_cluster.c",
    keys: KeyTable::of::<FfsKeys>(),
    default_replacement: Some("lru"),
    family: Family::ReadAhead(ReadsAhead::new(&|keys, context| {
        let keys: &FfsKeys = keys.get();
        let first = keys.first.blocks(context.block_bytes);
        let max = keys.max.blocks(context.block_bytes);
        if first > max {
            let problem = format!("{first} blocks are more than max, {max}");
            return Err(KeyError::new("first", problem, "at most max"));
        }
        let files = keys.files as usize;
        Ok(Box::new(Ffs::new(first, max, files)))
    })),
};

keys! {
    /// Keys of `ffs`.
    pub struct FfsKeys {
        /// Size of a read that is not sequential. Set it to the value of `max` to read whole clusters (file-system.md).
        #[serde(deserialize_with = "super::size::some_blocks")]
        pub first: Size = Size::Blocks(1),
        /// Size of a cluster, which is the largest request (shriver99, Table 1).
        #[serde(deserialize_with = "super::size::some_blocks")]
        pub max: Size = Size::kib(64),
        /// Maximum number of files with state. The least recently read one is forgotten first.
        #[schemars(range(min = 1))]
        pub files: u32 = FILES,
    }
}

/// State of a file's reader.
#[derive(Debug, Clone, Copy, Default)]
struct Reader {
    /// The block read last; `None` before the first.
    last: Option<u64>,
    /// The window: number of blocks prefetched beside or ahead of the one that is read.
    window: u64,
    /// The last block of the latest fetch.
    reached: u64,
    /// The block whose prefetch waits for an indirect block.
    put_off: Option<u64>,
}

/// Whether the address of a block is known.
enum Mapped {
    Yes,
    /// Its indirect block is in flight.
    Soon,
    /// Its indirect block, given by file and index, must be read.
    No(u32, u64),
}

/// The `ffs` read-ahead.
#[derive(Debug)]
pub struct Ffs {
    first: u64,
    max: u64,
    readers: Recent<u32, Reader>,
}

impl Ffs {
    /// Requests of `first` blocks for reads that are not sequential, and of at most `max`; state for `files` files.
    #[must_use]
    pub fn new(first: u64, max: u64, files: usize) -> Self {
        Self { first: first.min(max), max, readers: Recent::new(files) }
    }

    /// Handles the lookup of one block; returns what to fetch for it or ahead of it.
    fn read(&mut self, file: u32, block: u64, here: bool, cached: &dyn Cached) -> Option<Run> {
        let (first, max) = (self.first, self.max);
        let reader = self.readers.get_or_default(file);
        let last = reader.last.replace(block);
        let sequential = last.is_some_and(|last| block == last || block == last.saturating_add(1));
        if !sequential {
            reader.window = first - 1;
            reader.reached = block;
            if here || reader.window == 0 {
                return None;
            }
        }
        let put_off = reader.put_off.take().filter(|put_off| *put_off > block);
        let from = match here {
            true => put_off.unwrap_or(block.saturating_add(reader.window.max(1))),
            false => block,
        };
        if here && cached.is_cached(file, from) {
            return None;
        }
        let together = cached.contiguous(file, from, max);
        if together == 0 {
            // The end of the file, or the fragment at its end.
            return None;
        }
        match mapped(file, block, from, cached) {
            Mapped::Yes => {}
            not_yet => {
                reader.put_off = Some(from);
                return not_yet.fetch();
            }
        }
        let behind = together - 1;
        if behind > 0 && sequential {
            reader.resize(from, behind, last != Some(block));
        }
        let ahead = behind.min(reader.window);
        // The block being read is fetched anyway.
        let run = if here {
            Run::between(file, from, beyond(from, ahead))
        } else {
            Run::between(file, from.saturating_add(1), beyond(from, ahead))
        };
        reader.reached = from.saturating_add(ahead);
        match run.count {
            0 if sequential => self.read_next(file, block, last, cached),
            0 => None,
            _ => Some(run),
        }
    }

    /// `block` is the last of its contiguous blocks and fetched alone: the next ones are fetched beside it.
    fn read_next(&mut self, file: u32, block: u64, last: Option<u64>, cached: &dyn Cached) -> Option<Run> {
        let next = block.saturating_add(1);
        // With clusters of one block there is nothing to prefetch.
        if block == 0 || self.max == 1 || cached.is_cached(file, next) {
            return None;
        }
        let reader = self.readers.get_or_default(file);
        match mapped(file, block, next, cached) {
            Mapped::Yes => {}
            not_yet => {
                reader.put_off = Some(next);
                return not_yet.fetch();
            }
        }
        let behind = cached.contiguous(file, next, self.max).checked_sub(1)?;
        if behind > 0 {
            reader.resize(next, behind, last != Some(block));
        }
        let ahead = behind.min(reader.window);
        reader.reached = next.saturating_add(ahead);
        Some(Run::between(file, next, beyond(next, ahead)))
    }
}

impl Reader {
    /// Adapts the window to a fetch from block `from`, after which `behind` contiguous blocks follow. `moved`: the
    /// reader has advanced.
    fn resize(&mut self, from: u64, behind: u64, moved: bool) {
        if from <= self.reached {
            self.window = (self.window / 2).max(1);
        } else if behind > self.window && moved {
            self.window = if self.window == 0 { 1 } else { behind.min(self.window * 2) };
        }
    }
}

/// One past the last of the `ahead` blocks after `first`.
fn beyond(first: u64, ahead: u64) -> u64 {
    first.saturating_add(1).saturating_add(ahead)
}

impl Mapped {
    /// The indirect block to fetch, if any.
    fn fetch(&self) -> Option<Run> {
        match *self {
            Mapped::No(file, first) => Some(Run { file, first, count: 1 }),
            Mapped::Yes | Mapped::Soon => None,
        }
    }
}

/// Whether the address of `next` is known while `block` of the same file is read.
fn mapped(file: u32, block: u64, next: u64, cached: &dyn Cached) -> Mapped {
    let Some(map) = cached.mapped_by(file, next) else { return Mapped::Yes };
    if cached.mapped_by(file, block) == Some(map) || cached.is_resident(map.0, map.1) {
        return Mapped::Yes;
    }
    if cached.is_cached(map.0, map.1) {
        Mapped::Soon
    } else {
        Mapped::No(map.0, map.1)
    }
}

impl ReadAhead for Ffs {
    fn asked(&mut self, _: Nanos, asked: &Asked, found: &[Found], cached: &dyn Cached, prefetch: &mut Vec<Run>) {
        // The range ends at the last block number.
        for (block, found) in (asked.first..=u64::MAX).zip(found) {
            prefetch.extend(self.read(asked.file, block, found.is_hit(), cached));
        }
    }

    fn remembered(&self) -> usize {
        self.readers.len()
    }
}
