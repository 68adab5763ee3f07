//! An oracle: of each stream, when it begins, all that it is going to use, and nothing else.
//!
//! Source: C. Li, K. Shen and A. E. Papathanasiou, "Competitive Prefetching for Concurrent Sequential I/O", EuroSys 2007,
//! section 6.2: the policy OPT, to which applications say through `open()` what they will read: "the OS then prefetches
//! exactly the amount of data needed for each sequential stream". All of a stream is asked for at its first demand, in
//! requests that lie one after another: one switch and no waste, the optimum of section 4.1.
//!
//! Readings. A stream is what one process reads of one file, each read from where another one of the stream ended: of
//! reads that go by turns to two files, or to two places of a file, each is a stream. It is left for good by a process
//! that reads as many other blocks as the level has frames before it comes back, and what it reads then is another
//! stream: so long nothing would be kept. Reads that repeat the last block of a stream belong to it, writes to none.
//! At most half of the frames hold what has been prefetched and not been read: a stream that is longer than what is left
//! of them is cut, and goes on in the same way where it was cut. Should blocks be evicted before they are
//! read all the same, the rest of the stream is asked for again where one is missed. A request has `max_request` at most,
//! as the kernel's had, so that a reader goes on as soon as the first of a stream is there and thinks while the others
//! come; in one request a reader that thinks would wait for all of it, and be slower than under `competitive`. (A switch
//! to another stream between two of these is the scheduler's choice.)
//! Cost: a look-up per request, and what it names. Memory: 32 bytes for each stream of the whole run, 40 for each one that
//! has begun and not ended. Not a policy for a system: it knows what will be read.

use std::collections::BTreeMap;
use std::sync::Arc;

use hashbrown::HashMap;
use headstart_types::{keys, read_keys, KeyError, KeyTable, Nanos};
use rustc_hash::FxBuildHasher;

use super::{Asked, BuildReadAhead, Cached, Found, Needs, ReadAhead, ReadsAhead, Run, Size};
use crate::row::{Family, PolicyRow};

/// Its row in the registry.
pub static ROW: PolicyRow = PolicyRow {
    name: "oracle-depth",
    summary: "an oracle: when a stream begins, all that it is going to use at once, and nothing else",
    source: "Li, Shen and Papathanasiou, EuroSys 2007, section 6.2 (OPT)",
    keys: KeyTable::of::<OracleDepthKeys>(),
    default_replacement: Some("lru"),
    family: Family::ReadAhead(ReadsAhead {
        only_ahead: true,
        spares_random: true,
        needs: Needs::Future,
        build: BuildReadAhead::Apart(&|keys, context| {
            let keys: OracleDepthKeys = read_keys(keys)?;
            let request_max = keys.max_request.some_blocks("max_request", context.block_bytes)?;
            let future = context.future.clone().ok_or_else(|| {
                let problem = "oracle-depth works from what processes will read, which is not known here";
                KeyError::new("name", problem, "the level that processes ask, or another policy")
            })?;
            Ok(Box::new(OracleDepth::new(future, context.frames, request_max)))
        }),
    }),
};

keys! {
    /// Keys of `oracle-depth`: for the level that processes ask, closed arrivals, and no pattern.
    pub struct OracleDepthKeys {
        /// The largest request: what Linux 2.6 let a SCSI host have (SCSI_DEFAULT_MAX_SECTORS, 1024).
        pub max_request: Size = Size::kib(512),
    }
}

/// Blocks that one process is going to read, one after another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stream {
    /// Which of the process's blocks read is the first, from 0.
    pub at: u64,
    /// The file.
    pub file: u32,
    /// Its blocks: `first..end`.
    pub first: u64,
    /// See `first`.
    pub end: u64,
}

/// The streams of one process in a level of `frames` frames, in the order in which they begin. `reads` are the blocks
/// that it reads, in order: the file and the block in it. What it writes is left out, as from what [`ReadAhead::asked`]
/// is told.
pub fn streams(reads: impl IntoIterator<Item = (u32, u64)>, frames: u32) -> Vec<Stream> {
    let mut streams: Vec<Stream> = Vec::new();
    // By file and the block that would go on: which stream, and its last read.
    let mut open: HashMap<(u32, u64), (usize, u64), FxBuildHasher> = HashMap::default();
    for (at, (file, index)) in (0..).zip(reads) {
        let is_alive = |open: &HashMap<_, (usize, u64), _>, next| {
            open.get(&(file, next)).is_some_and(|(_, last)| at - last <= u64::from(frames))
        };
        let stream = if is_alive(&open, index) {
            open.remove(&(file, index)).map_or(0, |(stream, _)| stream)
        } else if is_alive(&open, index + 1) {
            continue;
        } else {
            streams.push(Stream { at, file, first: index, end: index });
            streams.len() - 1
        };
        streams[stream].end = index + 1;
        open.insert((file, index + 1), (stream, at));
    }
    streams
}

/// How far a reader is.
#[derive(Debug, Clone, Copy, Default)]
struct Reader {
    /// Blocks that it has read.
    read: u64,
    /// The next of its streams to begin.
    next: usize,
}

/// Exactly what each stream needs.
#[derive(Debug)]
pub struct OracleDepth {
    /// By client.
    future: Arc<[Vec<Stream>]>,
    readers: Vec<Reader>,
    /// Streams that have begun and not ended, by client, file and the block that is read next: up to where they have
    /// been named, and where they end.
    open: BTreeMap<(u32, u32, u64), (u64, u64)>,
    /// Blocks named and not read.
    ahead: u64,
    ahead_max: u64,
    request_max: u32,
}

impl OracleDepth {
    /// In a level of `frames` frames; `future` holds the streams of each client. Requests have `request_max` blocks at
    /// most, at least 1.
    #[must_use]
    pub fn new(future: Arc<[Vec<Stream>]>, frames: u32, request_max: u64) -> Self {
        let readers = vec![Reader::default(); future.len()];
        let request_max = u32::try_from(request_max.max(1)).unwrap_or(u32::MAX);
        Self { future, readers, open: BTreeMap::new(), ahead: 0, ahead_max: u64::from(frames / 2), request_max }
    }

    /// The stream that `asked` belongs to: up to where it has been named, and its end. Counts the blocks read.
    fn stream_of(&mut self, asked: &Asked) -> Option<(u64, u64)> {
        let client = asked.client as usize;
        let (reader, streams) = (self.readers.get_mut(client)?, &self.future[client]);
        reader.read += u64::from(asked.count);
        if let Some(stream) = streams.get(reader.next).filter(|stream| stream.at < reader.read) {
            reader.next += 1;
            return Some((stream.first, stream.end));
        }
        // It may begin with the last block once more.
        let from = [asked.first, asked.first.saturating_add(1)];
        let key =
            from.map(|next| (asked.client, asked.file, next)).into_iter().find(|key| self.open.contains_key(key))?;
        let (named, end) = self.open.remove(&key)?;
        self.ahead -= named.saturating_sub(key.2);
        Some((named, end))
    }
}

impl ReadAhead for OracleDepth {
    fn asked(&mut self, _: Nanos, asked: &Asked, found: &[Found], _: &dyn Cached, prefetch: &mut Vec<Run>) {
        let Some((mut named, end)) = self.stream_of(asked) else { return };
        let read = asked.end().min(end);
        let mut wanted = found.contains(&Found::Absent);
        if named < end && read >= named {
            // It begins, or has come to where it was cut.
            named = end.min(read.saturating_add(self.ahead_max.saturating_sub(self.ahead)));
            wanted = true;
        }
        if wanted && read < named {
            prefetch.push(Run::between(asked.file, read, named));
        }
        self.ahead += named.saturating_sub(read);
        if read < end {
            self.open.insert((asked.client, asked.file, read), (named, end));
        }
    }

    fn order_max(&self) -> u32 {
        self.request_max
    }

    fn remembered(&self) -> usize {
        self.open.len()
    }
}
