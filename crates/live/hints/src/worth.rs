//! Whether a command is helped at all: whether it would wait long enough for hinted pages that are not in the page
//! cache now.
//!
//! The start and end of a run, its trace and its threads take time from the command. It can gain only a part of the
//! time that it waits, so there must be enough of that, whatever the hints are:
//!
//! - A range of pages counts with the recorded command's wait for it, unless it continues the previous range of its
//!   file and has not waited for an arm: the kernel reads ahead of sequential reads, and any remaining wait is for the
//!   disk's rate.
//! - A range that was cached then counts with the time of a read, if nothing of its file came from the device: in other
//!   files it had been read ahead with what was waited for. It counts once within [`READ_PAGES`] pages, and after
//!   those: the kernel reads ahead.
//! - Of this, only the part counts that is not in the page cache now. [`SAMPLES`] ranges are examined, without a read:
//!   a file that the kernel cannot open without a read is not cached.
//! - Metadata counts at most as much as pages of files: references to it are not visible, and nothing else would prove
//!   the hints right.
//! - A command whose threads wait at the same time keeps enough reads in flight for a disk without an arm, in an order
//!   of its own.
//!
//! Cost: some 0.2 ms.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use headstart_types::Disk;

use super::disk::open_unchanged;
use super::list::{arm_wait_ns, in_stretches, HintList, HintedFile, HintedRange, PAGE_BYTES};
use super::system::{cached_pages, open_cached, Cached};

/// The command's minimum wait. The start and end of a run that helps take some 10 ms; about half of the wait is saved.
const WAIT_MIN: Duration = Duration::from_millis(30);
/// The same as a share of the recorded time: following a command takes some 1 %.
const WAIT_SHARE: f64 = 0.08;
/// Without an arm: mean number of simultaneous waits above which the command's own threads keep the disk busy.
const WAITS_AT_A_TIME: f64 = 1.5;
/// The number of ranges examined.
const SAMPLES: usize = 128;
/// The time of a read that was cached in the recorded run. With an arm it takes longer, but nothing proves that there
/// is one if nothing was waited for: virtual disks often claim so.
const READ_NS: u64 = 200_000;
const READ_PAGES: u64 = 32;

/// Why a command with these hints is not helped, if it is not; `of_file`: by file, its disk; `arms`: by disk, whether
/// it has an arm.
#[must_use]
pub fn why_alone(list: &HintList, of_file: &[Disk], arms: &[bool]) -> Option<String> {
    let arm = |range: &HintedRange| arms[of_file[range.file as usize].index()];
    let waited =
        |arms: bool| list.ranges.iter().filter(|range| arm(range) == arms).map(|range| range.wait_ns).sum::<u64>();
    let elapsed = list.elapsed_ns as f64;
    if waited(false) > waited(true) && waited(false) as f64 > elapsed * WAITS_AT_A_TIME {
        return Some("its threads read at the same time, which keeps a disk without an arm busy".to_owned());
    }
    let mut waits_of_file = vec![0; list.files.len()];
    list.ranges.iter().filter(|range| range.wait_ns > 0).for_each(|range| waits_of_file[range.file as usize] += 1);
    let arm_wait = |file: u32| arm_wait_ns(list.files[file as usize].came_pages, waits_of_file[file as usize]);
    let mut counted = BTreeSet::new();
    let mut is_counted = |range: &HintedRange| {
        let [first, last] = [range.first, range.first + u64::from(range.count) - 1].map(|page| page / READ_PAGES);
        let is_counted =
            counted.contains(&(range.file, first)) || counted.contains(&(range.file, first.wrapping_sub(1)));
        counted.extend([(range.file, first), (range.file, last)]);
        is_counted
    };
    let cost = |(range, before): (&HintedRange, u64)| match range.hit {
        _ if before > 0 && range.wait_ns < arm_wait(range.file) => 0,
        false => range.wait_ns,
        true if list.files[range.file as usize].came_pages > 0 || is_counted(range) => 0,
        true => READ_NS,
    };
    let costs = in_stretches(&list.ranges, |range| range.file as usize).map(cost);
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
    let may_be_read = |(range, _): &(&HintedRange, u64)| open_unchanged(&list.files[range.file as usize]).is_some();
    let (data, mut metadata): (Vec<_>, Vec<_>) = (list.ranges.iter().zip(costs).filter(|(_, cost)| *cost > 0))
        .partition(|(range, _)| !list.files[range.file as usize].is_device);
    metadata.truncate(if metadata.first().is_some_and(may_be_read) { metadata.len() } else { 0 });
    let sum = |ranges: &[(&HintedRange, u64)]| ranges.iter().map(|(_, cost)| cost).sum::<u64>() as f64;
    let step = data.len().div_ceil(SAMPLES).max(1);
    let looked: Vec<(&HintedRange, u64)> = data.iter().step_by(step).copied().collect();
    let missing: f64 = looked.iter().map(|(range, cost)| *cost as f64 * uncached(range)).sum();
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

/// The file, if it is the recorded one and may be cached.
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

    /// The verdict for a command of 600 ms with these ranges, of a cached file, a file not known to be cached, a
    /// device, and a file like the second of which pages came.
    fn said(ranges: Vec<HintedRange>, arm: bool) -> Option<String> {
        let path = std::env::temp_dir().join(format!(
            "headstart-worth-{}-{:?}",
            std::process::id(),
            std::thread::current().id()
        ));
        std::fs::write(&path, vec![7; 40 * PAGE_BYTES as usize]).expect("there is room");
        let found = std::fs::metadata(&path).expect("ours");
        let file = |path: &std::path::Path, is_device, came_pages| HintedFile {
            path: path.to_owned(),
            identity: (0, found.ino()),
            is_device,
            size: None,
            mtime_ns: None,
            came_pages,
        };
        // A name in proc is never opened without examining the process.
        let (unknown, device) = ("/proc/self/exe".as_ref(), "/dev/null".as_ref());
        let files = [(&*path, false, 0), (unknown, false, 0), (device, true, 0), (unknown, false, 1)];
        let files = files.map(|(path, is_device, came_pages)| file(path, is_device, came_pages)).into();
        let list = HintList { files, ranges, elapsed_ns: 600 * MS, ..HintList::default() };
        let why = why_alone(&list, &[Disk(0); 4], &[arm]);
        std::fs::remove_file(&path).expect("ours");
        why
    }

    #[test]
    fn what_is_cached_now_is_not_waited_for() {
        assert!(said(vec![range(0, 500, false)], false).is_some_and(|why| why.contains("wait for 0 ms")));
    }

    #[test]
    fn what_was_cached_counts_once_for_a_read_and_not_where_it_was_read_ahead() {
        let said = |file, pages: &[u64]| {
            let hit = |first: &u64| HintedRange { file, first: *first, count: 1, hit: true, ..HintedRange::default() };
            said(pages.iter().map(hit).collect(), true)
        };
        let waits = |ms: u64| Some(format!("it would wait for {ms} ms "));
        let shown = |said: Option<String>| said.map(|why| why[..why.find("for what").unwrap_or(0)].to_owned());
        // 50 reads of different places, however often; one counts where the kernel reads ahead.
        let apart: Vec<u64> = (0..100).map(|at| at % 50 * 64).collect();
        assert_eq!(shown(said(1, &apart)), waits(10));
        assert_eq!(shown(said(1, &(0..9000).collect::<Vec<_>>())), waits(0));
        assert_eq!(shown(said(1, &[0, 31, 320, 5, 33, 325, 640, 64, 1280, 1600])), waits(1));
        assert_eq!(shown(said(3, &apart)), waits(0));
        assert_eq!(said(1, &(0..301).map(|at| at * 64).collect::<Vec<_>>()), None);
    }

    #[test]
    fn what_is_read_in_order_counts_once_unless_it_waits_for_an_arm() {
        let waits = |file, pages: &mut dyn Iterator<Item = u64>, wait_ms| {
            let at = |page| HintedRange { first: page, ..range(file, wait_ms, false) };
            said(pages.map(at).collect(), true).map(|why| why[..why.find("for what").unwrap_or(0)].to_owned())
        };
        assert_eq!(waits(1, &mut (0..90).map(|at| at * 40), 1), Some("it would wait for 1 ms ".into()));
        // Other places, and backwards.
        assert_eq!(waits(1, &mut (0..90).map(|at| at * 50), 1), None);
        assert_eq!(waits(1, &mut (0..90).map(|at| (90 - at) * 40), 1), None);
        // As if each window of the read-ahead started with a seek: another file is read in turn.
        assert_eq!(waits(1, &mut (0..9).map(|at| at * 40), 8), None);
    }

    #[test]
    fn threads_that_wait_at_the_same_time_are_left_alone_on_a_disk_without_an_arm() {
        let ranges = || vec![range(0, 901, false)];
        assert!(said(ranges(), false).is_some_and(|why| why.contains("at the same time")));
        assert!(said(ranges(), true).is_some_and(|why| why.contains("wait for 0 ms")));
        assert!(said(vec![range(0, 900, false)], false).is_some_and(|why| why.contains("wait for 0 ms")));
    }
}
