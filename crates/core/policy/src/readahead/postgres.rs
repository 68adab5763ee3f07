//! PostgreSQL's read stream: a scan looks ahead by a distance that doubles with each read and shrinks with each hit.
//!
//! Source: PostgreSQL 18.6, src/backend/storage/aio/read_stream.c (read_stream_look_ahead, _start_pending_read,
//! _next_buffer, _begin_impl), read line by line; io_combine_limit (128 kB) and effective_io_concurrency (16).
//!
//! The stream keeps up to `distance` blocks started but not consumed, initially 1. Consecutive blocks are gathered into
//! reads of up to io_combine_limit. A shorter read starts only when nothing else is pinned and it fills the distance,
//! or when the stream is found to end: then all is started, and it looks ahead no further. At most
//! effective_io_concurrency reads are in flight. When the first block of a read is consumed, the distance doubles, up
//! to (effective_io_concurrency + 1) * io_combine_limit, and less than 2^15. A block that was cached when its turn came
//! shortens it by one. So a scan of cached data looks ahead by one block, and a cold one soon by the limit. With a
//! concurrency of 0 reads are gathered alike, but each is issued only when its first block is consumed.
//!
//! Differences: PostgreSQL knows from the plan that a scan is one, and which blocks it will want. Here two consecutive
//! requests of an open file (file and client) make a scan, which takes every block after them, and any other request
//! ends it. A block in flight for another request counts as cached; in PostgreSQL it is one more wait. Left out: random
//! streams (bitmap scans), advice to the kernel (with io_method sync), the limit of pinned buffers for each backend,
//! the limits of scans with rings of buffers, scans that announce full reads at once.
//!
//! Cost: constant per consumed block; 100 bytes per stream and 16 per read in flight, for at most `files` streams, the
//! least recently read forgotten first. Not for random reads, where it does nothing.

use std::collections::VecDeque;

use headstart_types::{keys, KeyTable, Nanos};

use super::recent::Recent;
use super::{Asked, Cached, Found, ReadAhead, ReadsAhead, Run, Size, FILES};
use crate::row::{Family, PolicyRow};

/// Its row in the registry.
pub static ROW: PolicyRow = PolicyRow {
    name: "postgres",
    summary: "read stream: a distance that doubles with each read of a scan and shrinks with each hit",
    source: "PostgreSQL 18.6, src/backend/storage/aio/read_stream.c",
    keys: KeyTable::of::<PostgresKeys>(),
    default_replacement: Some("lru"),
    family: Family::ReadAhead(ReadsAhead::new(&|keys, context| {
        let keys: &PostgresKeys = keys.get();
        let combine = keys.io_combine_limit.blocks(context.block_bytes);
        let files = keys.files as usize;
        Ok(Box::new(Postgres::new(combine, keys.effective_io_concurrency, files)))
    })),
};

keys! {
    /// Keys of `postgres`.
    pub struct PostgresKeys {
        /// The largest read.
        #[serde(deserialize_with = "super::size::some_blocks")]
        pub io_combine_limit: Size = Size::kib(128),
        /// Maximum number of reads in flight.
        #[schemars(range(min = 0, max = 1000))]
        pub effective_io_concurrency: u32 = 16,
        /// Maximum number of files with state. The least recently read one is forgotten first.
        #[schemars(range(min = 1))]
        pub files: u32 = FILES,
    }
}

#[derive(Debug, Clone, Default)]
struct Stream {
    /// The block to be consumed next; `None` before the first request.
    next: Option<u64>,
    /// One past the last block started.
    started: u64,
    /// Number of blocks gathered after `started` and not yet started.
    pending: u64,
    /// Maximum number of blocks started but not consumed; 0 when the stream has been found to end.
    distance: u64,
    /// First block and count of each read in flight, oldest first.
    reads: VecDeque<(u64, u64)>,
}

/// Read streams.
#[derive(Debug)]
pub struct Postgres {
    combine: u64,
    concurrency: usize,
    /// Whether effective_io_concurrency is 0.
    synchronous: bool,
    /// Maximum distance.
    most: u64,
    files: Recent<(u32, u32), Stream>,
}

/// A stream while it processes one request.
struct Scan<'a> {
    stream: &'a mut Stream,
    combine: u64,
    concurrency: usize,
    synchronous: bool,
    most: u64,
    file: u32,
    cached: &'a dyn Cached,
    prefetch: &'a mut Vec<Run>,
}

impl Scan<'_> {
    /// Starts the gathered blocks up to the first cached one.
    fn start(&mut self) {
        let stream = &mut *self.stream;
        let first = stream.started;
        if self.cached.is_cached(self.file, first) {
            (stream.started, stream.pending) = (first + 1, stream.pending - 1);
            if stream.distance > 1 {
                stream.distance -= 1;
            }
            return;
        }
        let absent = |index: &u64| !self.cached.is_cached(self.file, *index);
        let blocks = (first..first + stream.pending).take_while(absent).count() as u64;
        if !self.synchronous {
            self.prefetch.push(Run::between(self.file, first, first + blocks));
        }
        stream.reads.push_back((first, blocks));
        (stream.started, stream.pending) = (first + blocks, stream.pending - blocks);
    }

    fn look_ahead(&mut self, next: u64) {
        let end = self.cached.file_blocks(self.file).unwrap_or(u64::MAX);
        let pinned = |stream: &Stream| stream.started.saturating_sub(next);
        while self.stream.reads.len() < self.concurrency
            && pinned(self.stream) + self.stream.pending < self.stream.distance
        {
            if self.stream.pending == self.combine {
                self.start();
            } else if self.stream.started.saturating_add(self.stream.pending) < end {
                self.stream.pending += 1;
            } else {
                self.stream.distance = 0;
            }
        }
        let stream = &*self.stream;
        let alone = stream.pending >= stream.distance && pinned(stream) == 0;
        if stream.pending > 0
            && stream.reads.len() < self.concurrency
            && (stream.pending == self.combine || alone || stream.distance == 0)
        {
            self.start();
        }
    }

    /// The consumer takes `block`.
    fn consume(&mut self, block: u64) {
        if self.stream.started <= block {
            self.stream.started = block;
            self.look_ahead(block);
        }
        if let Some((first, blocks)) = self.stream.reads.front().copied().filter(|read| read.0 == block) {
            self.stream.reads.pop_front();
            if self.synchronous {
                self.prefetch.push(Run::between(self.file, first, first + blocks));
            }
            self.stream.distance = (self.stream.distance * 2).min(self.most);
        }
        self.look_ahead(block + 1);
    }
}

impl Postgres {
    /// Reads of up to `combine` blocks, up to `concurrency` at once, with state for `files` open files.
    #[must_use]
    pub fn new(combine: u64, concurrency: u32, files: usize) -> Self {
        // PostgreSQL counts buffers in 16 bits, and the last read may extend past the end of their ring.
        let combine = combine.clamp(1, (1 << 14) - 1);
        Self {
            combine,
            concurrency: (concurrency as usize).max(1),
            synchronous: concurrency == 0,
            most: ((u64::from(concurrency) + 1) * combine).min((1 << 15) - 1 - combine),
            files: Recent::new(files),
        }
    }
}

impl ReadAhead for Postgres {
    fn asked(&mut self, _: Nanos, asked: &Asked, _: &[Found], cached: &dyn Cached, prefetch: &mut Vec<Run>) {
        let stream = self.files.get_or_default((asked.file, asked.client));
        let follows = stream.next == Some(asked.first);
        stream.next = Some(asked.end());
        // Near the largest block number the sums below could overflow; no real file has such blocks.
        if !follows || asked.end() > u64::MAX - (1 << 16) {
            (stream.started, stream.pending, stream.distance) = (asked.end(), 0, 1);
            stream.reads.clear();
            return;
        }
        let (combine, concurrency, synchronous, most) = (self.combine, self.concurrency, self.synchronous, self.most);
        let mut scan = Scan { stream, combine, concurrency, synchronous, most, file: asked.file, cached, prefetch };
        for block in asked.first..asked.end() {
            scan.consume(block);
        }
    }

    fn remembered(&self) -> usize {
        self.files.values().map(|stream| 1 + stream.reads.len()).sum()
    }
}
