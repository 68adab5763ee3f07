//! Mountpoint for Amazon S3: a window ahead of the reader that doubles whenever the reader has to wait.
//!
//! Source: mountpoint-s3 of 2025 (with the memory pool of 1.20), mountpoint-s3-fs/src/prefetch.rs at 064de784,
//! prefetch/backpressure_controller.rs at 5225d343, prefetch/task.rs and part_stream.rs, read line by line.
//!
//! The first read of an open file starts a download at its offset with a window of 1 MiB + 128 KiB (1 MiB reads plus
//! the kernel's own read-ahead). After each read, when less than half of the window is left ahead of the reader, it is
//! extended to a whole window from the reader's position. If the reader has then consumed everything that had arrived,
//! the next window is doubled, to at least the read part size of 8 MiB and at most 2 GiB. The reader may seek forward
//! within the window (waiting for at most 16 MiB that have not arrived) and back by up to 1 MiB of what it has read
//! since the download began. Any other seek drops the download and starts again with the first window.
//!
//! Differences: the reader counts as having consumed everything if it requests a block in flight, or an absent block
//! within the window; the first read of a download does not count. The blocks to wait for before a seek's target are
//! counted from the reader, unless the target has arrived. The memory limiter, which scales windows down, is replaced:
//! a window is at most half the frames of the level. Left out: parts and their alignment, the disk cache.
//!
//! Cost: constant per request; 90 bytes per open file (file and client), for at most `files`, the least recently read
//! forgotten first. Not for random reads: each fetches a first window.

use headstart_types::{keys, KeyTable, Nanos};

use super::recent::Recent;
use super::{Asked, Cached, Found, ReadAhead, ReadAheadContext, ReadsAhead, Run, Size, FILES};
use crate::row::{Family, PolicyRow};

/// Its row in the registry.
pub static ROW: PolicyRow = PolicyRow {
    name: "mountpoint-s3",
    summary: "a window of 1.125 MiB ahead of the reader: grows to 8 MiB and doubles when it stalls, resets on a seek",
    source:
        "mountpoint-s3 at 064de784 (1.20), mountpoint-s3-fs/src/prefetch.rs and prefetch/backpressure_controller.rs",
    keys: KeyTable::of::<MountpointKeys>(),
    default_replacement: Some("lru"),
    family: Family::ReadAhead(ReadsAhead {
        only_ahead: true,
        spares_random: false,
        ..ReadsAhead::new(&|keys, context| {
            let keys: &MountpointKeys = keys.get();
            let files = keys.files as usize;
            Ok(Box::new(MountpointS3::new(keys.setting(context), context.frames, files)))
        })
    }),
};

keys! {
    /// Keys of `mountpoint-s3`.
    pub struct MountpointKeys {
        /// The first window.
        #[serde(deserialize_with = "super::size::some_blocks")]
        pub initial: Size = Size::kib(1152),
        /// The smallest window after the first growth.
        #[serde(deserialize_with = "super::size::some_blocks")]
        pub read_part_size: Size = Size::mib(8),
        /// The largest window.
        #[serde(deserialize_with = "super::size::some_blocks")]
        pub max: Size = Size::mib(2048),
        /// Factor by which the window grows when the reader stalls.
        #[schemars(range(min = 1))]
        pub multiplier: u32 = 2,
        /// Longest forward seek that keeps the window.
        pub max_forward_seek: Size = Size::mib(16),
        /// Longest backward seek that keeps the window.
        pub max_backward_seek: Size = Size::mib(1),
        /// Maximum number of files with state. The least recently read one is forgotten first.
        #[schemars(range(min = 1))]
        pub files: u32 = FILES,
    }
}

impl MountpointKeys {
    fn setting(&self, context: &ReadAheadContext) -> MountpointSetting {
        MountpointSetting {
            initial: self.initial.blocks(context.block_bytes),
            part: self.read_part_size.blocks(context.block_bytes),
            max: self.max.blocks(context.block_bytes),
            multiplier: u64::from(self.multiplier),
            forward: self.max_forward_seek.blocks(context.block_bytes),
            backward: self.max_backward_seek.blocks(context.block_bytes),
        }
    }
}

/// The prefetcher's parameters, in blocks.
#[derive(Debug, Clone, Copy)]
pub struct MountpointSetting {
    /// The first window.
    pub initial: u64,
    /// Minimum size of a grown window: the read part size.
    pub part: u64,
    /// Maximum window.
    pub max: u64,
    /// Factor by which a stall grows the window, at least 1.
    pub multiplier: u64,
    /// Maximum number of blocks that a forward seek waits for.
    pub forward: u64,
    /// Maximum length of a backward seek.
    pub backward: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Download {
    /// Start of the download.
    start: u64,
    /// The block that a sequential reader requests next.
    next: u64,
    /// End of the window.
    end: u64,
    /// The preferred window; 0 means no download.
    window: u64,
}

/// The `mountpoint-s3` read-ahead.
#[derive(Debug)]
pub struct MountpointS3 {
    setting: MountpointSetting,
    files: Recent<(u32, u32), Download>,
}

impl MountpointS3 {
    /// For a level of `frames` frames, with state for `files` open files.
    #[must_use]
    pub fn new(setting: MountpointSetting, frames: u32, files: usize) -> Self {
        let most = u64::from(frames / 2).max(1);
        let setting = MountpointSetting {
            initial: setting.initial.min(most),
            part: setting.part.min(most),
            max: setting.max.max(setting.initial).min(most),
            ..setting
        };
        Self { setting, files: Recent::new(files) }
    }

    /// Whether the download can continue at `first`.
    fn reaches(setting: &MountpointSetting, download: &Download, first: u64, found: &[Found]) -> bool {
        if download.window == 0 {
            return false;
        }
        if first >= download.next {
            let soon = first < download.next.saturating_add(setting.forward);
            let there = matches!(found.first(), Some(Found::Ready | Found::ReadyPrefetched));
            return first == download.next || (first < download.end && (soon || there));
        }
        first >= download.start && download.next - first <= setting.backward
    }
}

impl ReadAhead for MountpointS3 {
    fn asked(&mut self, _: Nanos, asked: &Asked, found: &[Found], cached: &dyn Cached, prefetch: &mut Vec<Run>) {
        let setting = &self.setting;
        let size = cached.file_blocks(asked.file).unwrap_or(u64::MAX);
        if asked.first >= size {
            return;
        }
        let download = self.files.get_or_default((asked.file, asked.client));
        let mut from = asked.end();
        let goes_on = Self::reaches(setting, download, asked.first, found);
        if goes_on {
            from = from.max(download.end);
        } else {
            let end = asked.first.saturating_add(setting.initial).min(size);
            *download = Download { start: asked.first, next: asked.first, end, window: setting.initial };
        }
        download.next = asked.end();
        // A read may request more than the window held.
        let left = download.end.saturating_sub(download.next);
        if left.saturating_mul(2) < download.window || download.end < download.next {
            download.end = download.next.saturating_add(download.window).max(download.end).min(size);
        }
        if goes_on && !found.iter().all(|found| matches!(found, Found::Ready | Found::ReadyPrefetched)) {
            let grown = download.window.saturating_mul(setting.multiplier).max(setting.part);
            download.window = download.window.max(grown.min(setting.max));
        }
        if from < download.end {
            prefetch.push(Run::between(asked.file, from, download.end));
        }
    }

    fn remembered(&self) -> usize {
        self.files.len()
    }
}
