//! Whether a command is helped at all: whether it would wait long enough for what hints name and is not in the page cache now.
//!
//! Start and end of a run, its trace and its threads take time from the command. What it can gain is a part of the time that it waits, so
//! there has to be enough of that, whatever the hints are:
//!
//! - A range of pages counts with what the recorded command has waited for it; one that was cached then, with what a read takes.
//! - Of that counts the part that is not in the page cache now. [`SAMPLES`] ranges are looked at, and nothing is read for it: what the kernel
//!   cannot open without a read is not cached.
//! - Metadata counts no more than pages of files do: references to it are not seen, and nothing else would prove the hints right.
//! - A command whose threads wait at the same time has reads enough under way for a disk without an arm, in an order of its own.
//!
//! Cost: some 0.2 ms.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use headstart_types::Disk;

use super::disk::open_unchanged;
use super::list::{HintList, HintedFile, HintedRange, PAGE_BYTES};
use super::system::{cached_pages, open_cached, Cached};

/// What the command has to wait for at least. Start and end of a run take some 10 ms, twice that from a cold disk; of what is waited for
/// about the half is saved.
const WAIT_MIN: Duration = Duration::from_millis(60);
/// The same as a share of the recorded time: following a command takes some 1 %.
const WAIT_SHARE: f64 = 0.08;
/// Without an arm: waits at a time from which on the command's own threads keep the disk busy.
const WAITS_AT_A_TIME: f64 = 1.5;
/// Ranges that are looked at.
const SAMPLES: usize = 128;
/// What a read takes that was cached when it was recorded, without an arm and with one, for each [`READ_PAGES`].
const READ_NS: [u64; 2] = [200_000, 6_000_000];
const READ_PAGES: u32 = 32;

/// Why a command with these hints is not helped, if so; by file its disk, and by disk whether it has an arm.
#[must_use]
pub fn why_alone(list: &HintList, of_file: &[Disk], arms: &[bool]) -> Option<String> {
    let arm = |range: &HintedRange| arms[of_file[range.file as usize].index()];
    let waited =
        |arms: bool| list.ranges.iter().filter(|range| arm(range) == arms).map(|range| range.wait_ns).sum::<u64>();
    let elapsed = list.elapsed_ns as f64;
    if waited(false) > waited(true) && waited(false) as f64 > elapsed * WAITS_AT_A_TIME {
        return Some("its threads read at the same time, which keeps a disk without an arm busy".to_owned());
    }
    let cost = |range: &HintedRange| match range.hit {
        true => u64::from(range.count.div_ceil(READ_PAGES)) * READ_NS[usize::from(arm(range))],
        false => range.wait_ns,
    };
    let mut opened = BTreeMap::new();
    let mut uncached = |range: &HintedRange| {
        let file = &list.files[range.file as usize];
        let cached = opened.entry(range.file).or_insert_with(|| open(file));
        match cached {
            Cached::No => 1.0,
            Cached::Gone => 0.0,
            Cached::Maybe(file) => {
                let (first, count) = (range.first * PAGE_BYTES, u64::from(range.count));
                cached_pages(file, first, count * PAGE_BYTES).map_or(1.0, |cached| 1.0 - cached as f64 / count as f64)
            }
        }
    };
    let may_be_read = |range: &&HintedRange| open_unchanged(&list.files[range.file as usize]).is_some();
    let (data, mut metadata): (Vec<_>, Vec<_>) = (list.ranges.iter().filter(|range| cost(range) > 0))
        .partition(|range| !list.files[range.file as usize].is_device);
    metadata.truncate(if metadata.first().is_some_and(may_be_read) { metadata.len() } else { 0 });
    let sum = |ranges: &[&HintedRange]| ranges.iter().map(|range| cost(range)).sum::<u64>() as f64;
    let step = data.len().div_ceil(SAMPLES).max(1);
    let looked: Vec<&HintedRange> = data.iter().step_by(step).copied().collect();
    let missing: f64 = looked.iter().map(|range| cost(range) as f64 * uncached(range)).sum();
    let missing = sum(&data) * missing / sum(&looked).max(1.0);
    let all = missing + sum(&metadata).min(missing);
    let least = (WAIT_MIN.as_nanos() as f64).max(elapsed * WAIT_SHARE);
    (all < least).then(|| {
        let ms = |ns: f64| ns / 1e6;
        format!(
            "it would wait for {:.0} ms for what can be prefetched, too little to be helped: {:.0} ms",
            ms(all),
            ms(least)
        )
    })
}

/// The file, if it is the one that was recorded and may be cached.
fn open(hinted: &HintedFile) -> Cached {
    let Ok(path) = CString::new(hinted.path.as_os_str().as_bytes()) else { return Cached::Gone };
    open_cached(&path, |found| {
        found.is_file() && found.ino() == hinted.identity.1 && hinted.size.is_none_or(|size| size == found.len())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn range(file: u32, wait_ms: u64, hit: bool) -> HintedRange {
        HintedRange { file, count: 40, wait_ns: wait_ms * MS, hit, ..HintedRange::default() }
    }

    /// What is said of a command of 600 ms with these ranges, of a file that is cached, one that is not known to be, and a device.
    fn said(ranges: Vec<HintedRange>, arm: bool) -> Option<String> {
        let path = std::env::temp_dir().join(format!(
            "headstart-worth-{}-{:?}",
            std::process::id(),
            std::thread::current().id()
        ));
        std::fs::write(&path, vec![7; 40 * PAGE_BYTES as usize]).expect("there is room");
        let found = std::fs::metadata(&path).expect("ours");
        let file = |path: &std::path::Path, is_device| HintedFile {
            path: path.to_owned(),
            identity: (0, found.ino()),
            is_device,
            size: None,
            mtime_ns: None,
            came_pages: 0,
        };
        // A name in proc is never opened without a look at the process.
        let files = vec![file(&path, false), file("/proc/self/exe".as_ref(), false), file("/dev/null".as_ref(), true)];
        let list = HintList { files, ranges, elapsed_ns: 600 * MS, ..HintList::default() };
        let why = why_alone(&list, &[Disk(0); 3], &[arm]);
        std::fs::remove_file(&path).expect("ours");
        why
    }

    #[test]
    fn what_is_cached_now_is_not_waited_for() {
        assert!(said(vec![range(0, 500, false)], false).is_some_and(|why| why.contains("wait for 0 ms")));
    }

    #[test]
    fn threads_that_wait_at_the_same_time_are_left_alone_on_a_disk_without_an_arm() {
        let ranges = || vec![range(0, 901, false)];
        assert!(said(ranges(), false).is_some_and(|why| why.contains("at the same time")));
        assert!(said(ranges(), true).is_some_and(|why| why.contains("wait for 0 ms")));
        assert!(said(vec![range(0, 900, false)], false).is_some_and(|why| why.contains("wait for 0 ms")));
    }
}
