//! Competitive prefetching: prefetches as much as the disk transfers in the time of a switch.
//!
//! Source: C. Li, K. Shen and A. E. Papathanasiou, "Competitive Prefetching for Concurrent Sequential I/O", EuroSys
//! 2007, sections 4.1, 4.3, 5 and 7. Streams and slow start are those of `fixed-depth`; the depth is computed anew at
//! each request.
//!
//! The theorem (equations (8) and (15)). An oracle that knows each stream's length spends one switch on it and the
//! transfer of what is used. With windows of (average seek + half a rotation) x (rate at the place of the stream), the
//! disk spends less than 2 + P times as much over all streams, where P windows of the slow start precede the first
//! whole one. The theorem holds under these conditions:
//!
//! - each stream is read in order from one place on, its blocks are in order at one rate, and it has its own file or
//!   reader. If a stream does not begin its file, the demand of its first read counts as one more window of the slow
//!   start;
//! - each window costs one switch of the average time, and none is larger than half of the frames or shrunk by
//!   `pressure`;
//! - a window is issued when those before it are used up. The paper's kernel, like `linux`, issues it when the reader
//!   enters the previous one; a short stream then pays two windows that it does not use. From P = 2 on the bound covers
//!   them. For P = 0 and P = 1 it does not, so there each window waits until the previous one is used.
//!
//! ```text
//! I/O returns from disk     average seek = moving average over the seek times of the arm's movements (`depth`)
//! request                   depth = (average seek + half a rotation) x rate where it begins, to the nearest block;
//!                           less if many blocks are evicted before they are used (`pressure`);
//!                           at most half of the frames; then as `fixed-depth`, but one window at a time if
//!                           twice the first is the depth or more (P < 2)
//! ```
//!
//! Readings. The paper prints no weight of the moving average: 1/16 is ours. The average starts with the drive's own
//! mean seek, as does the paper's reference depth (393 KB). Only I/Os that do not continue the previous one have a seek
//! that counts (`seeks = "all"`: each has one, possibly of no time). Contiguous blocks that arrive together are one
//! I/O. Shrinking depths are a possibility in section 7 that the paper's prototype did not have (`shrink = false`).
//! Half of the frames is what Linux 2.6.10 allowed a window of the inactive and free pages (max_sane_readahead).
//!
//! Not observed are writes, blocks that bypass the cache and, above another level, blocks that do not come straight
//! from a disk. Without observations the depth stays the one given by the drive's mean seek.
//!
//! Cost: that of `fixed-depth`, plus a constant per arriving block. Memory: that of `fixed-depth`, plus a name per
//! frame. Not for devices without an arm, which have no switch time to weigh.

use headstart_types::{keys, Block, Disk, DriveFacts, KeyError, KeyTable, Nanos, SECTOR_BYTES};

use super::depth::{CompetitiveDepth, SeekWatch, Seeks};
use super::linux::{Ramp, Windows};
use super::pressure::Pressure;
use super::{Asked, Cached, Found, Needs, ReadAhead, ReadAheadContext, ReadsAhead, Run, Size, FILES};
use crate::row::{Family, PolicyRow};
use crate::BlockMap;

/// Its row in the registry.
pub static ROW: PolicyRow = PolicyRow {
    name: "competitive",
    summary:
        "like fixed-depth, up to what the disk transfers in its average switch: less than 2 + P times an oracle's disk \
                  work, with P windows of slow start",
    source: "Li, Shen and Papathanasiou, EuroSys 2007, sections 4, 5 and 7 (CP)",
    keys: KeyTable::of::<CompetitiveKeys>(),
    default_replacement: Some("lru"),
    family: Family::ReadAhead(ReadsAhead {
        needs: Needs::Drive,
        ..ReadsAhead::new(&|keys, context| {
            let setting = keys.get::<CompetitiveKeys>().setting(context);
            let drive = context.drive.as_ref().ok_or_else(|| {
                let problem = "competitive weighs seeks against transfers, but the device has no arm";
                KeyError::new("name", problem, "fixed-depth or another policy, or a drive with an arm")
            })?;
            Ok(Box::new(Competitive::new(&setting, drive)))
        })
    }),
};

keys! {
    /// Keys of `competitive`. The largest window is computed from the drive, which must have an arm.
    pub struct CompetitiveKeys {
        /// The first window, as in `fixed-depth`.
        #[serde(deserialize_with = "super::size::some_blocks")]
        pub start: Size = Size::kib(64),
        /// Weight of the latest seek in the moving average of seek times (our choice; the paper gives none).
        #[schemars(extend("exclusiveMinimum" = 0.0, "maximum" = 1.0))]
        pub weight: f64 = 0.0625,
        /// Which I/Os count as a seek.
        pub seeks: Seeks = Seeks::default(),
        /// Whether to reduce the depth while many prefetched blocks are evicted unused and fetched again.
        pub shrink: bool = true,
        /// As in `linux`.
        pub max_request: Size = Size::kib(1280),
        /// Maximum number of files with state. The least recently read one is forgotten first.
        #[schemars(range(min = 1))]
        pub files: u32 = FILES,
    }
}

impl CompetitiveKeys {
    fn setting(&self, context: &ReadAheadContext) -> CompetitiveSetting {
        CompetitiveSetting {
            first: self.start.blocks(context.block_bytes),
            weight: self.weight,
            seeks: self.seeks,
            shrink: self.shrink,
            request_max: self.max_request.blocks(context.block_bytes),
            files: self.files as usize,
            block_bytes: context.block_bytes,
            frames: context.frames,
        }
    }
}

/// Parameters of competitive prefetching.
#[derive(Debug, Clone, Copy)]
pub struct CompetitiveSetting {
    /// Blocks in the first window.
    pub first: u64,
    /// Weight of the latest seek in the average: above 0, at most 1.
    pub weight: f64,
    /// Which I/Os count as a seek.
    pub seeks: Seeks,
    /// Whether the depth shrinks when blocks are evicted before they are used.
    pub shrink: bool,
    /// Requests beyond the depth are read in pieces of at most this many blocks.
    pub request_max: u64,
    /// Maximum number of open files with state.
    pub files: usize,
    /// Bytes per block.
    pub block_bytes: u64,
    /// Frames of the level.
    pub frames: u32,
}

/// Windows up to the depth at which switch time and wasted transfers balance.
#[derive(Debug)]
pub struct Competitive {
    depth: CompetitiveDepth,
    watch: SeekWatch,
    mean_rate: f64,
    pressure: Option<Pressure>,
    first: u64,
    block_bytes: u64,
    frames: u32,
    windows: Windows,
}

impl Competitive {
    /// A read-ahead for disks with these facts.
    #[must_use]
    pub fn new(setting: &CompetitiveSetting, facts: &DriveFacts) -> Self {
        let CompetitiveSetting { first, request_max, files, frames, block_bytes, .. } = *setting;
        Self {
            depth: CompetitiveDepth::new(facts.mean_seek, facts.half_turn, setting.weight),
            watch: SeekWatch::new(facts.clone(), setting.seeks),
            mean_rate: facts.mean_rate(),
            pressure: setting.shrink.then(|| Pressure::new(frames)),
            first,
            block_bytes,
            frames,
            windows: Windows::new(Ramp::Slow(first), request_max, files, frames as usize),
        }
    }

    /// The largest window of a stream at `sector` (`None`: at an unknown place), in blocks.
    fn depth_at(&self, sector: Option<u64>) -> u64 {
        let rate = sector.map_or(self.mean_rate, |sector| self.watch.facts().rate_at(sector));
        let depth = self.depth.blocks(rate, self.block_bytes);
        let depth = self.pressure.as_ref().map_or(depth, |pressure| pressure.of(depth));
        depth.min(u64::from(self.frames / 2)).max(1)
    }
}

impl ReadAhead for Competitive {
    fn asked(&mut self, _: Nanos, asked: &Asked, found: &[Found], cached: &dyn Cached, prefetch: &mut Vec<Run>) {
        let depth = self.depth_at(cached.sector(asked.file, asked.first));
        self.windows.leaves_ahead = self.first.saturating_mul(2) < depth;
        self.windows.asked(depth, asked, found, cached, prefetch);
        if let Some(pressure) = &mut self.pressure {
            pressure.asked(asked, found, prefetch);
        }
    }

    fn evicted(&mut self, file: u32, index: u64, unused: bool) {
        if let Some(pressure) = &mut self.pressure {
            pressure.evicted(file, index, unused);
        }
        self.windows.evicted(file, index);
    }

    fn fetched(&mut self, now: Nanos, disk: Disk, block: Block, space: &dyn BlockMap) {
        let Some(sector) = space.sector(block) else { return };
        let end = sector + self.block_bytes.div_ceil(SECTOR_BYTES).max(1);
        if let Some(seek) = self.watch.served(now, disk, sector..end) {
            self.depth.seen(seek);
        }
    }

    fn remembered(&self) -> usize {
        self.windows.remembered() + self.pressure.as_ref().map_or(0, Pressure::remembered)
    }
}
