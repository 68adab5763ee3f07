//! PostgreSQL's read stream: a scan looks ahead by a distance that doubles with each read and shrinks with each hit.
//!
//! Source: PostgreSQL 18, src/backend/storage/aio/read_stream.c; io_combine_limit (128 kB) and
//! effective_io_concurrency (16).
//!
//! The stream keeps up to `distance` blocks started but not consumed, at first 1. Consecutive blocks are gathered into
//! reads of up to io_combine_limit; a shorter one starts only when nothing else is pinned. At most
//! effective_io_concurrency reads are under way. When the first block of a read is consumed, the distance doubles, up
//! to (effective_io_concurrency + 1) * io_combine_limit; a block that was cached when its turn came shortens it by one.
//! A scan of cached data thus looks ahead by one block, and a cold one soon by the limit.
//!
//! What differs: PostgreSQL knows from the plan that a scan is one, and which blocks it will want. Here two requests in
//! a row of an open file (file and client) make a scan, which takes every block after them, and any other request ends
//! it. Left out: random streams (bitmap scans), advice to the kernel, the limit of pinned buffers for each backend,
//! scans that announce full reads at once.
//! Cost: constant per block consumed; 100 bytes a stream and 8 a read under way, of at most `files` streams, the least
//! recently read forgotten first. Not for random reads, where it does nothing.

use std::collections::VecDeque;

use headstart_types::Nanos;

use super::recent::Recent;
use super::{Asked, Cached, Found, ReadAhead, Run};

#[derive(Debug, Clone, Default)]
struct Stream {
    /// The block that is consumed next; `None` before the first request.
    next: Option<u64>,
    /// The block after the last that was started.
    started: u64,
    /// Gathered after `started`, not yet started.
    pending: u64,
    distance: u64,
    /// First blocks of the reads under way, oldest first.
    reads: VecDeque<u64>,
}

/// Read streams.
#[derive(Debug)]
pub struct Postgres {
    combine: u64,
    concurrency: usize,
    files: Recent<(u32, u32), Stream>,
}

/// A stream at work on one request.
struct Scan<'a> {
    stream: &'a mut Stream,
    combine: u64,
    concurrency: usize,
    file: u32,
    cached: &'a dyn Cached,
    prefetch: &'a mut Vec<Run>,
}

impl Scan<'_> {
    /// Starts what is gathered, up to the first cached block.
    fn start(&mut self) {
        let stream = &mut *self.stream;
        let first = stream.started;
        if self.cached.is_cached(self.file, first) {
            (stream.started, stream.pending) = (first + 1, stream.pending - 1);
            stream.distance = (stream.distance - 1).max(1);
            return;
        }
        let absent = |index: &u64| !self.cached.is_cached(self.file, *index);
        let blocks = (first..first + stream.pending).take_while(absent).count() as u64;
        self.prefetch.push(Run::between(self.file, first, first + blocks));
        stream.reads.push_back(first);
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
                break;
            }
        }
        let stream = &*self.stream;
        let at_end = stream.started.saturating_add(stream.pending) >= end;
        let alone = stream.pending == stream.distance && pinned(stream) == 0;
        if stream.pending > 0
            && stream.reads.len() < self.concurrency
            && (stream.pending == self.combine || alone || at_end)
        {
            self.start();
        }
    }

    /// The consumer takes `block`.
    fn consume(&mut self, block: u64, most: u64) {
        if self.stream.started <= block {
            self.stream.started = block;
            self.look_ahead(block);
        }
        if self.stream.reads.front() == Some(&block) {
            self.stream.reads.pop_front();
            self.stream.distance = (self.stream.distance * 2).min(most);
        }
        self.look_ahead(block + 1);
    }
}

impl Postgres {
    /// Reads of up to `combine` blocks, up to `concurrency` at once, state for `files` open files.
    #[must_use]
    pub fn new(combine: u64, concurrency: u32, files: usize) -> Self {
        Self { combine: combine.max(1), concurrency: (concurrency as usize).max(1), files: Recent::new(files) }
    }
}

impl ReadAhead for Postgres {
    fn asked(&mut self, _: Nanos, asked: &Asked, _: &[Found], cached: &dyn Cached, prefetch: &mut Vec<Run>) {
        let stream = self.files.get_or_default((asked.file, asked.client));
        let follows = stream.next == Some(asked.first);
        stream.next = Some(asked.end());
        // So near the end of the number space no sum below may overflow; nothing lives there.
        let most = (self.concurrency as u64 + 1) * self.combine;
        if !follows || asked.end() > u64::MAX - 2 * most {
            (stream.started, stream.pending, stream.distance) = (asked.end(), 0, 1);
            stream.reads.clear();
            return;
        }
        let (combine, concurrency, file) = (self.combine, self.concurrency, asked.file);
        let mut scan = Scan { stream, combine, concurrency, file, cached, prefetch };
        for block in asked.first..asked.end() {
            scan.consume(block, most);
        }
    }
}
