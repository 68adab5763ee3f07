//! Linux's detection of streams with slow start and a fixed maximum depth: the aggressive prefetching of li07.
//!
//! Source: C. Li, K. Shen and A. E. Papathanasiou, "Competitive Prefetching for Concurrent Sequential I/O", EuroSys
//! 2007, sections 4.3 (slow start), 5 ("we use our competitive prefetching policy to control the depth of prefetching
//! operations; we have not modified other aspects of the prefetching algorithm used in the Linux kernel") and 6.2,
//! where AP is the same with a depth of 800 KB. So this is `linux` with other windows: `linux` decides what a stream
//! is, when the next operation is issued and what is random. An operation fetches a window including what is demanded
//! of it. The first has 64 KiB, and each that continues the previous one has twice as much, up to `depth`: in pages 16,
//! 32, 64, 98, 98, ... for a depth of 392 KiB, which is the paper's own example.
//!
//! Readings. The detection is that of `linux`, a later kernel than the paper's 2.6.10, about whose windows the paper
//! only describes the slow start (there a first read gets half the maximum, which is 64 KiB at the default of 128 KiB,
//! and each hit adds two pages to the next window, which doubles it). A request that continues nothing fetches what it
//! demands and counts as a first operation of that length: the next one has 64 KiB if that was less, else twice as
//! much. A first operation that is demanded as a whole has no mark, so a single request of 64 KiB fetches 64 KiB; the
//! kernel's would mark half of it and continue at once. Requests above `depth` are read in pieces of up to
//! `max_request`, as in `linux`; from the second such request of a stream on, half as much again is prefetched after
//! it.
//!
//! Cost: as `linux`. Not for streams that end early: each prefetches up to `depth` blocks too many.

use headstart_types::{keys, KeyTable, Nanos};

use super::linux::{Ramp, Windows};
use super::{Asked, Cached, Found, ReadAhead, ReadsAhead, Run, Size, FILES};
use crate::row::{Family, PolicyRow};

/// Its row in the registry.
pub static ROW: PolicyRow = PolicyRow {
    name: "fixed-depth",
    summary: "linux's streams, slow start: windows of 64 KiB that double up to a fixed depth",
    source: "Li, Shen and Papathanasiou, EuroSys 2007, sections 4.3 and 6.2 (AP)",
    keys: KeyTable::of::<FixedDepthKeys>(),
    default_replacement: Some("lru"),
    family: Family::ReadAhead(ReadsAhead::new(&|keys, context| {
        let keys: &FixedDepthKeys = keys.get();
        let depth = keys.depth.blocks(context.block_bytes);
        let start = keys.start.blocks(context.block_bytes);
        let request_max = keys.max_request.blocks(context.block_bytes);
        let files = keys.files as usize;
        Ok(Box::new(FixedDepth::new(start, depth, request_max, files, context.frames as usize)))
    })),
};

keys! {
    /// Keys of `fixed-depth`.
    pub struct FixedDepthKeys {
        /// The largest window (li07, section 6.2).
        #[serde(deserialize_with = "super::size::some_blocks")]
        pub depth: Size = Size::kib(800),
        /// The first window. Each later window of a stream is twice as large (li07, section 4.3).
        #[serde(deserialize_with = "super::size::some_blocks")]
        pub start: Size = Size::kib(64),
        /// As in `linux`.
        pub max_request: Size = Size::kib(1280),
        /// Maximum number of files with state. The least recently read one is forgotten first.
        #[schemars(range(min = 1))]
        pub files: u32 = FILES,
    }
}

/// Slow start up to a fixed depth.
#[derive(Debug)]
pub struct FixedDepth {
    depth: u64,
    windows: Windows,
}

impl FixedDepth {
    /// Windows of `first` blocks that double up to `depth`; requests beyond it are read in pieces of up to
    /// `request_max`; state for `files` open files and marks for a cache of `frames` blocks.
    #[must_use]
    pub fn new(first: u64, depth: u64, request_max: u64, files: usize, frames: usize) -> Self {
        Self { depth: depth.max(1), windows: Windows::new(Ramp::Slow(first), request_max, files, frames) }
    }
}

impl ReadAhead for FixedDepth {
    fn asked(&mut self, _: Nanos, asked: &Asked, found: &[Found], cached: &dyn Cached, prefetch: &mut Vec<Run>) {
        self.windows.asked(self.depth, asked, found, cached, prefetch);
    }

    fn evicted(&mut self, file: u32, index: u64, _unused: bool) {
        self.windows.evicted(file, index);
    }

    fn remembered(&self) -> usize {
        self.windows.remembered()
    }
}
