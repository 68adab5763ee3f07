//! fsspec's "readahead" cache: each read that leaves the buffer fetches itself and a block size beyond.
//!
//! Source: fsspec 2025.9.0, fsspec/caching.py (ReadAheadCache._fetch) and fsspec/spec.py (AbstractBufferedFile:
//! block_size 5 MiB), read line by line.
//!
//! An open file has one buffer. A read inside it costs nothing. A read that begins inside and ends beyond keeps the
//! rest of the buffer's blocks and fetches from the buffer's end to 5 MiB after the read's end. Any other read fetches
//! itself and 5 MiB. What was fetched is the new buffer. Reads and fetches are cut at the end of the file; a read
//! beyond it does nothing. Differences: fsspec issues one synchronous request; here the level joins the read and the
//! prefetch if both are contiguous. The level remembers more than the one buffer, so a seek back may hit where fsspec
//! would fetch again. fsspec's other caches (bytes, blocks, background) are not modelled.
//!
//! Cost: constant per request; 60 bytes per open file (file and client), for at most `files`, the least recently read
//! forgotten first. Not for random reads of large files: each pays 5 MiB.

use headstart_types::{keys, KeyTable, Nanos};

use super::recent::Recent;
use super::{Asked, Cached, Found, ReadAhead, ReadsAhead, Run, Size, FILES};
use crate::row::{Family, PolicyRow};

/// Its row in the registry.
pub static ROW: PolicyRow = PolicyRow {
    name: "fsspec-readahead",
    summary: "5 MiB beyond each read that leaves the buffer of the last one",
    source: "fsspec 2025.9.0, fsspec/caching.py, ReadAheadCache",
    keys: KeyTable::of::<FsspecKeys>(),
    default_replacement: Some("lru"),
    family: Family::ReadAhead(ReadsAhead {
        only_ahead: true,
        spares_random: false,
        ..ReadsAhead::new(&|keys, context| {
            let keys: &FsspecKeys = keys.get();
            let blocks = keys.block_size.blocks(context.block_bytes);
            Ok(Box::new(FsspecReadahead::new(blocks, keys.files as usize)))
        })
    }),
};

keys! {
    /// Keys of `fsspec-readahead`.
    pub struct FsspecKeys {
        /// Bytes prefetched beyond each read.
        pub block_size: Size = Size::mib(5),
        /// Maximum number of files with state. The least recently read one is forgotten first.
        #[schemars(range(min = 1))]
        pub files: u32 = FILES,
    }
}

/// One buffer per open file.
#[derive(Debug)]
pub struct FsspecReadahead {
    blocks: u64,
    /// First block of the buffer, and one past its last.
    buffers: Recent<(u32, u32), (u64, u64)>,
}

impl FsspecReadahead {
    /// Reads `blocks` beyond each read, for `files` open files.
    #[must_use]
    pub fn new(blocks: u64, files: usize) -> Self {
        Self { blocks, buffers: Recent::new(files) }
    }
}

impl ReadAhead for FsspecReadahead {
    fn asked(&mut self, _: Nanos, asked: &Asked, _: &[Found], cached: &dyn Cached, prefetch: &mut Vec<Run>) {
        let size = cached.file_blocks(asked.file).unwrap_or(u64::MAX);
        let asked_end = asked.end().min(size);
        let buffer = self.buffers.get_or_default((asked.file, asked.client));
        let (start, end) = *buffer;
        if asked.first >= size || (asked.first >= start && asked_end <= end) {
            return;
        }
        let first = if (start..end).contains(&asked.first) { end } else { asked.first };
        *buffer = (first, asked_end.saturating_add(self.blocks).min(size));
        if asked_end < buffer.1 {
            prefetch.push(Run::between(asked.file, asked_end, buffer.1));
        }
    }

    fn remembered(&self) -> usize {
        self.buffers.len()
    }
}
