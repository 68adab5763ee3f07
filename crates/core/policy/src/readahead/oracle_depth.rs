//! An oracle: when a stream begins, it prefetches exactly what the stream will use.
//!
//! Source: C. Li, K. Shen and A. E. Papathanasiou, "Competitive Prefetching for Concurrent Sequential I/O", EuroSys
//! 2007, section 6.2: the policy OPT, to which applications announce through `open()` what they will read: "the OS then
//! prefetches exactly the amount of data needed for each sequential stream". All of a stream is requested at its first
//! demand, in contiguous requests: one switch and no waste, the optimum of section 4.1.
//!
//! Readings. A stream is what one process reads of one file, where each read starts at the end of another read of the
//! stream. If reads alternate between two files, or two places of a file, each is a stream. A stream ends if the
//! process reads as many other blocks as the level has frames before it returns; what it reads then is another stream,
//! because nothing would be kept that long. Reads that repeat the last block of a stream belong to it; writes belong to
//! none. At most half of the frames hold prefetched and unread blocks: a stream longer than the rest of them is cut,
//! and continued in the same way where it was cut. If blocks are evicted before they are read, the rest of the stream
//! is requested again when one is missed. A request has at most `max_request`, as in the kernel, so that a reader
//! continues as soon as the first request of a stream has arrived and thinks while the others arrive. With one request
//! per stream, a reader that thinks would wait for all of it, and be slower than under `competitive`. (Switching to
//! another stream between two of these requests is the scheduler's choice.)
//!
//! Cost: a lookup per request, and the named blocks. Memory: 32 bytes for each stream of the whole run, 40 for each
//! stream in progress. Not a policy for a real system: it knows what will be read.

use std::collections::BTreeMap;
use std::sync::Arc;

use hashbrown::HashMap;
use headstart_types::{keys, KeyError, KeyTable, Nanos};
use rustc_hash::FxBuildHasher;

use super::{Asked, Cached, Found, Needs, ReadAhead, ReadsAhead, Run, Size};
use crate::row::{Family, PolicyRow};

/// Its row in the registry.
pub static ROW: PolicyRow = PolicyRow {
    name: "oracle-depth",
    summary: "an oracle: when a stream begins, prefetch exactly what it will use, all at once",
    source: "Li, Shen and Papathanasiou, EuroSys 2007, section 6.2 (OPT)",
    keys: KeyTable::of::<OracleDepthKeys>(),
    default_replacement: Some("lru"),
    family: Family::ReadAhead(ReadsAhead {
        only_ahead: true,
        needs: Needs::Future,
        ..ReadsAhead::new(&|keys, context| {
            let keys: &OracleDepthKeys = keys.get();
            let request_max = keys.max_request.blocks(context.block_bytes);
            let future = context.future.clone().ok_or_else(|| {
                let problem = "oracle-depth needs to know what processes will read, which is unknown here";
                KeyError::new("name", problem, "the first level, or another policy")
            })?;
            Ok(Box::new(OracleDepth::new(future, context.frames, request_max)))
        })
    }),
};

keys! {
    /// Keys of `oracle-depth`, which needs the first level, closed arrivals and no pattern.
    pub struct OracleDepthKeys {
        /// The largest request: Linux 2.6's limit for a SCSI host (SCSI_DEFAULT_MAX_SECTORS, 1024).
        #[serde(deserialize_with = "super::size::some_blocks")]
        pub max_request: Size = Size::kib(512),
    }
}

/// Consecutive blocks that one process will read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stream {
    /// Index of its first block among the blocks that the process reads, from 0.
    pub at: u64,
    /// The file.
    pub file: u32,
    /// Its blocks: `first..end`.
    pub first: u64,
    /// See `first`.
    pub end: u64,
}

/// The streams of one process in a level of `frames` frames, in the order in which they begin. `reads` are the blocks
/// that it reads, in order, as file and index. Writes are left out, as in the calls of [`ReadAhead::asked`].
pub fn streams(reads: impl IntoIterator<Item = (u32, u64)>, frames: u32) -> Vec<Stream> {
    let mut streams: Vec<Stream> = Vec::new();
    // By file and next block: the stream, and its last read.
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

/// The progress of a reader.
#[derive(Debug, Clone, Copy, Default)]
struct Reader {
    /// Number of blocks that it has read.
    read: u64,
    /// Index of its next stream to begin.
    next: usize,
}

/// The `oracle-depth` read-ahead.
#[derive(Debug)]
pub struct OracleDepth {
    /// Indexed by client.
    future: Arc<[Vec<Stream>]>,
    readers: Vec<Reader>,
    /// Streams in progress, by client, file and next block: the end of what has been named, and the end of the stream.
    open: BTreeMap<(u32, u32, u64), (u64, u64)>,
    /// Number of blocks named and not read.
    ahead: u64,
    ahead_max: u64,
    request_max: u32,
}

impl OracleDepth {
    /// For a level of `frames` frames; `future` holds the streams of each client. Requests have at most `request_max`
    /// blocks, at least 1.
    #[must_use]
    pub fn new(future: Arc<[Vec<Stream>]>, frames: u32, request_max: u64) -> Self {
        let readers = vec![Reader::default(); future.len()];
        let request_max = u32::try_from(request_max.max(1)).unwrap_or(u32::MAX);
        Self { future, readers, open: BTreeMap::new(), ahead: 0, ahead_max: u64::from(frames / 2), request_max }
    }

    /// The stream that `asked` belongs to: the end of what has been named, and its end. Counts the blocks read.
    fn stream_of(&mut self, asked: &Asked) -> Option<(u64, u64)> {
        let client = asked.client as usize;
        let (reader, streams) = (self.readers.get_mut(client)?, &self.future[client]);
        reader.read += u64::from(asked.count);
        if let Some(stream) = streams.get(reader.next).filter(|stream| stream.at < reader.read) {
            reader.next += 1;
            return Some((stream.first, stream.end));
        }
        // The request may begin by repeating the last block.
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
            // The stream begins, or has reached the point where it was cut.
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
