//! ZFS's zfetch: several streams per file, with a distance that doubles quickly and then grows only when necessary.
//!
//! Source: OpenZFS 2.3 and later, module/zfs/dmu_zfetch.c (dmu_zfetch_prepare, _run, _hit, _future, _stream_create,
//! _done), read line by line in a tree of after April 2024 (with reordered ranges and the prefetch property); the
//! defaults are its zfetch_* parameters.
//!
//! A read that begins at a stream's position (or one block before) advances it. A read that begins a little further
//! ahead (max_reorder) is kept as a future range, of at most 9, and the stream jumps over holes once they are at most a
//! quarter (hole_shift) of the jump. A read just behind is ignored. Any other read starts a stream at its end. It
//! replaces a stream that has not been hit for more than 2 s (max_reap) or, if all 8 are in use, 1 s (min_reap);
//! otherwise none is started. A file has at most as many streams as maximal distances fit into it, and at least one.
//! Each hit makes the distance at least the read's size, doubles it up to 4 MiB (min_distance), and then adds an
//! eighth, up to 64 MiB (max_distance), if a prefetched block arrived later than its reader. Blocks within the distance
//! are prefetched, once a read of the stream has found an absent block.
//!
//! Time counts in whole seconds, and a stream that has never been hit starts min_reap old: it may be replaced from the
//! next second on.
//!
//! Differences: a block of the level is a record. A late block is noticed when its reader finds it in flight, and
//! counts at the stream's next hit; in ZFS when its I/O ends, which the reader waits for. Left out: prefetch of
//! indirect blocks, the limit while prefetches hold a sixteenth of the ARC, the wait for parallel callers.
//!
//! Cost: a check of each stream of the file (at most `streams`) per request; up to 250 bytes per stream, for at most
//! `files` files, the least recently read forgotten first. Not for many more streams on one file than `streams`.

use headstart_types::{as_text, keys, KeyTable, Nanos};

use super::recent::Recent;
use super::{Asked, Cached, Found, ReadAhead, ReadAheadContext, ReadsAhead, Run, Size, FILES};
use crate::row::{Family, PolicyRow};

/// Its row in the registry.
pub static ROW: PolicyRow = PolicyRow {
    name: "zfs",
    summary: "zfetch: up to 8 streams per file; the distance doubles up to 4 MiB and grows slowly up to 64 MiB",
    source: "OpenZFS 2.3 and later, module/zfs/dmu_zfetch.c",
    keys: KeyTable::of::<ZfsKeys>(),
    default_replacement: Some("lru"),
    family: Family::ReadAhead(ReadsAhead::new(&|keys, context| {
        let keys: &ZfsKeys = keys.get();
        let files = keys.files as usize;
        Ok(Box::new(Zfs::new(keys.setting(context), files)))
    })),
};

keys! {
    /// Keys of `zfs`.
    pub struct ZfsKeys {
        /// Distance up to which each hit doubles the distance.
        #[serde(deserialize_with = "super::size::some_blocks")]
        pub min_distance: Size = Size::mib(4),
        /// Maximum distance.
        #[serde(deserialize_with = "super::size::some_blocks")]
        pub max_distance: Size = Size::mib(64),
        /// Maximum distance of an out-of-order read ahead of its stream.
        pub max_reorder: Size = Size::mib(16),
        /// n: a stream jumps over holes if they are at most 2^-n of the jump.
        pub hole_shift: u32 = 2,
        /// Maximum number of streams per file.
        #[schemars(range(min = 1))]
        pub streams: u32 = 8,
        /// Idle time after which a stream may be replaced if all are in use.
        #[serde(serialize_with = "as_text")]
        pub min_reap: Nanos = Nanos(1_000_000_000),
        /// Idle time after which a stream is always removed.
        #[serde(serialize_with = "as_text")]
        pub max_reap: Nanos = Nanos(2_000_000_000),
        /// Maximum number of files with state. The least recently read one is forgotten first.
        #[schemars(range(min = 1))]
        pub files: u32 = FILES / 8,
    }
}

impl ZfsKeys {
    fn setting(&self, context: &ReadAheadContext) -> ZfsSetting {
        let bytes = |size: Size| size.blocks(context.block_bytes).saturating_mul(context.block_bytes);
        ZfsSetting {
            block_bytes: context.block_bytes,
            min_distance: bytes(self.min_distance),
            max_distance: bytes(self.max_distance),
            // ZFS's ranges are 16 bits wide.
            max_reorder: (self.max_reorder.blocks(context.block_bytes) + 1).min(u64::from(u16::MAX)),
            hole_shift: self.hole_shift,
            streams: self.streams as usize,
            min_reap: self.min_reap,
            max_reap: self.max_reap,
        }
    }
}

/// Maximum number of future ranges of a stream; beyond it the furthest is dropped.
const RANGES: usize = 9;

/// One second in nanoseconds.
const SECOND: u64 = 1_000_000_000;

/// zfetch's parameters.
#[derive(Debug, Clone, Copy)]
pub struct ZfsSetting {
    /// Bytes per block.
    pub block_bytes: u64,
    /// Limit up to which the distance doubles, in bytes.
    pub min_distance: u64,
    /// Maximum distance, in bytes.
    pub max_distance: u64,
    /// Maximum distance of a read from its stream, in blocks.
    pub max_reorder: u64,
    /// Holes may be 1 / 2^hole_shift of what is jumped over.
    pub hole_shift: u32,
    /// Maximum number of streams per file, at least 1.
    pub streams: usize,
    /// Time without a hit after which a stream may be replaced.
    pub min_reap: Nanos,
    /// Time without a hit after which a stream is removed.
    pub max_reap: Nanos,
}

#[derive(Debug, Clone, Default)]
struct Stream {
    /// The block expected next.
    at: u64,
    /// Future ranges, relative to `at`, in ascending order and disjoint.
    ranges: Vec<(u64, u64)>,
    /// Time of the last hit in ns; may be negative.
    hit_at: i128,
    /// Look-ahead distance in bytes.
    distance: u64,
    /// One past the last block prefetched.
    prefetched: u64,
    /// One past the last block within the distance.
    wanted: u64,
    /// Whether a read of the stream has found an absent block.
    missed: bool,
    /// Whether a prefetched block has arrived later than its reader since the distance was last set.
    late: bool,
}

impl Stream {
    /// Advances by `blocks` and by the future ranges that these reach; returns the number of blocks advanced.
    fn hit(&mut self, mut blocks: u64) -> u64 {
        for (start, end) in &self.ranges {
            if *start > blocks {
                break;
            }
            blocks = blocks.max(*end);
        }
        self.ranges.retain(|(start, _)| *start > blocks);
        self.ranges.iter_mut().for_each(|range| *range = (range.0 - blocks, range.1 - blocks));
        self.at = self.at.saturating_add(blocks);
        blocks
    }

    /// Records a read of `start..end` ahead of the stream. Advances if few holes remain; returns the number of blocks
    /// advanced.
    fn future(&mut self, start: u64, end: u64, hole_shift: u32) -> u64 {
        let (start, end) = (start - self.at, end - self.at);
        let joins = |range: &(u64, u64)| range.0 <= end && range.1 >= start;
        let joined: Vec<_> = self.ranges.iter().copied().filter(joins).collect();
        self.ranges.retain(|range| !joins(range));
        let merged = joined.iter().fold((start, end), |all, range| (all.0.min(range.0), all.1.max(range.1)));
        let place = self.ranges.partition_point(|range| range.0 < merged.0);
        if place == RANGES {
            return 0;
        }
        self.ranges.insert(place, merged);
        self.ranges.truncate(RANGES);
        let (mut holes, mut from, mut filled) = (0, 0, 0);
        for (start, end) in &self.ranges {
            holes += start - from;
            from = *end;
            if hole_shift < 16 && holes <= end >> hole_shift {
                filled = *end;
            }
        }
        if filled > 0 {
            self.hit(filled)
        } else {
            0
        }
    }
}

/// How a read relates to the streams of its file.
enum Match {
    /// It advances the stream of this index by this many blocks.
    Hit(usize, u64),
    Behind,
    None,
}

/// The `zfs` read-ahead.
#[derive(Debug)]
pub struct Zfs {
    setting: ZfsSetting,
    files: Recent<u32, Vec<Stream>>,
}

impl Zfs {
    /// A read-ahead with streams for `files` files.
    #[must_use]
    pub fn new(setting: ZfsSetting, files: usize) -> Self {
        Self { setting, files: Recent::new(files) }
    }

    fn find(setting: &ZfsSetting, streams: &mut [Stream], first: u64, end: u64, now: i128) -> Match {
        let exact = |stream: &Stream| stream.at == first || first.checked_add(1) == Some(stream.at);
        if let Some(number) = streams.iter().position(exact) {
            let blocks = end.saturating_sub(streams[number].at);
            return Match::Hit(number, streams[number].hit(blocks));
        }
        let oldest_active = now - i128::from(setting.max_reap.0);
        for (number, stream) in streams.iter_mut().enumerate() {
            if first > stream.at {
                if end <= stream.at.saturating_add(setting.max_reorder) {
                    return Match::Hit(number, stream.future(first, end, setting.hole_shift));
                }
            } else if end >= stream.at {
                let blocks = end - stream.at;
                return Match::Hit(number, stream.hit(blocks));
            } else if end.saturating_add(setting.max_reorder) > stream.at && stream.hit_at >= oldest_active {
                stream.hit_at = now;
                return Match::Behind;
            }
        }
        Match::None
    }

    /// Starts a stream at `at`, if there is room or an old stream to replace.
    fn create(setting: &ZfsSetting, streams: &mut Vec<Stream>, at: u64, now: i128, last: Option<u64>) {
        let max_reap = now - i128::from(setting.max_reap.0);
        let min_reap = now - i128::from(setting.min_reap.0);
        streams.retain(|stream| stream.hit_at >= max_reap);
        // Small files have fewer streams, so that streams need not overlap.
        let apart = |last: u64| last.saturating_mul(setting.block_bytes) / setting.max_distance.max(1);
        let most = last.map_or(u64::MAX, apart).min(setting.streams as u64).max(1);
        if streams.len() as u64 >= most {
            let oldest = (0..streams.len()).min_by_key(|number| streams[*number].hit_at);
            match oldest.filter(|number| streams[*number].hit_at < min_reap) {
                Some(number) => drop(streams.remove(number)),
                None => return,
            }
        }
        streams.insert(0, Stream { at, hit_at: min_reap, prefetched: at, wanted: at, ..Stream::default() });
    }

    /// Grows the distance after a hit of `blocks`.
    fn grow(setting: &ZfsSetting, stream: &mut Stream, blocks: u64) {
        let bytes = blocks.saturating_mul(setting.block_bytes);
        if stream.distance < bytes {
            stream.distance = bytes;
        } else if stream.distance < setting.min_distance {
            stream.distance *= 2;
        } else if stream.late {
            stream.distance += stream.distance / 8;
        }
        stream.distance = stream.distance.min(setting.max_distance);
    }
}

impl ReadAhead for Zfs {
    fn asked(&mut self, now: Nanos, asked: &Asked, found: &[Found], cached: &dyn Cached, prefetch: &mut Vec<Run>) {
        let file_blocks = cached.file_blocks(asked.file);
        if file_blocks.is_some_and(|blocks| blocks < 3) {
            return;
        }
        let (setting, now) = (&self.setting, i128::from(now.0 - now.0 % SECOND));
        let streams = self.files.get_or_default(asked.file);
        let last = file_blocks.map(|blocks| blocks - 1);
        let ends = |at: u64| last.is_some_and(|last| at >= last);
        let (number, blocks) = match Self::find(setting, streams, asked.first, asked.end(), now) {
            Match::Hit(number, blocks) => (number, blocks),
            Match::Behind => return,
            Match::None => {
                if !ends(asked.end()) {
                    Self::create(setting, streams, asked.end(), now, last);
                }
                return;
            }
        };
        let stream = &mut streams[number];
        stream.hit_at = now;
        let late = asked.first < stream.at && found.contains(&Found::UnreadyPrefetched);
        if blocks == 0 {
            stream.late |= late;
            return;
        }
        if ends(stream.at) {
            streams.remove(number);
            return;
        }
        Self::grow(setting, stream, blocks);
        stream.late = late;
        stream.missed |= !found.iter().all(|found| matches!(found, Found::Ready | Found::ReadyPrefetched));
        stream.prefetched = stream.prefetched.max(stream.at);
        let reach = stream.at.saturating_add(stream.distance / setting.block_bytes.max(1));
        stream.wanted = stream.wanted.max(reach).min(file_blocks.unwrap_or(u64::MAX));
        if stream.missed && stream.prefetched < stream.wanted {
            prefetch.push(Run::between(asked.file, stream.prefetched, stream.wanted));
            stream.prefetched = stream.wanted;
        }
    }

    fn remembered(&self) -> usize {
        self.files.values().flatten().map(|stream| 1 + stream.ranges.len()).sum()
    }
}
