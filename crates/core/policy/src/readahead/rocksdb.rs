//! RocksDB's implicit read-ahead of iterators: from the third sequential read, 8 KiB, doubled up to 256 KiB.
//!
//! Source: RocksDB 9.11.2, table/block_based/block_prefetcher.cc and .h (PrefetchIfNeeded, the path of buffered reads;
//! IsBlockSequential, ResetValues), read line by line, and the options initial_auto_readahead_size (8 KiB),
//! max_auto_readahead_size (256 KiB) and num_file_reads_for_auto_readahead (2) of include/rocksdb/table.h.
//!
//! A read that ends within what has been read ahead does nothing. Any other must begin where the last one ended,
//! otherwise all state is reset. When more than two in a row have been counted, the read includes the read-ahead,
//! synchronously, and the next one is twice as long. Differences: a read of the level is a data block, and an open file
//! (file and client) is an iterator on one table file. Left out: direct I/O and its own buffer (which also shrinks by 8
//! KiB when a block was in the block cache), asynchronous reads, trimming by upper bound or by block cache, the larger
//! read-ahead of compactions, state carried over to the next file.
//!
//! Cost: constant per request; 70 bytes per open file, for at most `files`, the least recently read forgotten first.
//! Not for slow devices: it never reads before a block is needed, only more when one is.

use headstart_types::{keys, KeyTable, Nanos};

use super::recent::Recent;
use super::{Asked, Cached, Found, ReadAhead, ReadsAhead, Run, Size, FILES};
use crate::row::{Family, PolicyRow};

/// Its row in the registry.
pub static ROW: PolicyRow = PolicyRow {
    name: "rocksdb",
    summary: "8 KiB from the third sequential read on, doubling up to 256 KiB",
    source: "RocksDB 9.11.2, table/block_based/block_prefetcher.cc",
    keys: KeyTable::of::<RocksDbKeys>(),
    default_replacement: Some("lru"),
    family: Family::ReadAhead(ReadsAhead {
        only_ahead: true,
        ..ReadsAhead::new(&|keys, context| {
            let keys: &RocksDbKeys = keys.get();
            let initial = keys.initial.blocks(context.block_bytes);
            let max = keys.max.blocks(context.block_bytes);
            Ok(Box::new(RocksDb::new(initial, max, keys.reads, keys.files as usize)))
        })
    }),
};

keys! {
    /// Keys of `rocksdb`.
    pub struct RocksDbKeys {
        /// The first read-ahead.
        #[serde(deserialize_with = "super::size::some_blocks")]
        pub initial: Size = Size::kib(8),
        /// The largest read-ahead.
        #[serde(deserialize_with = "super::size::some_blocks")]
        pub max: Size = Size::kib(256),
        /// Number of sequential reads before the first read-ahead (num_file_reads_for_auto_readahead).
        pub reads: u32 = 2,
        /// Maximum number of files with state. The least recently read one is forgotten first.
        #[schemars(range(min = 1))]
        pub files: u32 = FILES,
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct State {
    /// End of the last read; `None` before the first.
    previous: Option<u64>,
    /// Number of sequential reads.
    reads: u32,
    /// Blocks in the next read-ahead; 0 if not yet set.
    size: u64,
    /// End of what has been read ahead.
    limit: u64,
}

/// The `rocksdb` read-ahead.
#[derive(Debug)]
pub struct RocksDb {
    initial: u64,
    max: u64,
    reads: u32,
    files: Recent<(u32, u32), State>,
}

impl RocksDb {
    /// Read-ahead of `initial` to `max` blocks, after more than `reads` sequential reads.
    #[must_use]
    pub fn new(initial: u64, max: u64, reads: u32, files: usize) -> Self {
        Self { initial: initial.min(max), max, reads, files: Recent::new(files) }
    }
}

impl ReadAhead for RocksDb {
    fn asked(&mut self, _: Nanos, asked: &Asked, _: &[Found], _: &dyn Cached, prefetch: &mut Vec<Run>) {
        let state = self.files.get_or_default((asked.file, asked.client));
        let previous = state.previous.replace(asked.end());
        if asked.end() <= state.limit {
            return;
        }
        if previous.is_some_and(|previous| previous != asked.first) {
            (state.reads, state.size, state.limit) = (1, self.initial, 0);
            return;
        }
        state.reads = state.reads.saturating_add(1);
        if state.reads <= self.reads {
            return;
        }
        let size = if state.size == 0 { self.initial } else { state.size };
        state.limit = asked.end().saturating_add(size);
        state.size = (size * 2).min(self.max);
        prefetch.push(Run::between(asked.file, asked.end(), state.limit));
    }

    fn remembered(&self) -> usize {
        self.files.len()
    }
}
