//! The content of a recording that `run` needs: files, and ranges of their pages in the order in which they were read.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use headstart_types::{Disk, Nanos};

/// Bytes of a page: the unit of everything here.
pub const PAGE_BYTES: u64 = 4096;

/// A file as it was when it was recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HintedFile {
    /// Its path then.
    pub path: PathBuf,
    /// Device and inode, which identify its pages in the kernel's traces. The inode of a block device is its device
    /// number.
    pub identity: (u64, u64),
    /// A block device, whose pages are metadata of its file system.
    pub is_device: bool,
    /// Size of a regular file.
    pub size: Option<u64>,
    /// Modification time of a regular file, in ns since 1970.
    pub mtime_ns: Option<i128>,
    /// Pages of it that came from the device in the recorded run, read-ahead included.
    pub came_pages: u64,
}

/// Pages of one file that are read in sequence.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HintedRange {
    /// Index of the file.
    pub file: u32,
    /// First page.
    pub first: u64,
    /// Number of pages.
    pub count: u32,
    /// How long it waited for the device; zero if it did not, or if unknown.
    pub wait_ns: u64,
    /// They were in the page cache.
    pub hit: bool,
}

/// A recording.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HintList {
    /// The files.
    pub files: Vec<HintedFile>,
    /// What was read, in order; a page may recur.
    pub ranges: Vec<HintedRange>,
    /// Duration of the recorded run in ns; zero if unknown.
    pub elapsed_ns: u64,
    /// The recorded command and its arguments; empty if unknown.
    pub command: Vec<OsString>,
    /// The folder in which it ran.
    pub folder: PathBuf,
}

impl HintList {
    /// Whether it was recorded from this command, in the same folder.
    #[must_use]
    pub fn is_of(&self, command: &[OsString], folder: &Path) -> bool {
        !command.is_empty() && self.command == command && self.folder == folder
    }

    /// The number of distinct pages.
    #[must_use]
    pub fn pages(&self) -> u64 {
        let ends = |range: &HintedRange| (range.file, range.first, range.first.saturating_add(range.count.into()));
        let mut ranges: Vec<_> = self.ranges.iter().map(ends).collect();
        ranges.sort_unstable();
        let (mut pages, mut counted) = (0, (0, 0));
        for (file, first, end) in ranges {
            let from = if counted.0 == file { first.max(counted.1) } else { first };
            pages += end.saturating_sub(from);
            counted = (file, if counted.0 == file { end.max(counted.1) } else { end });
        }
        pages
    }
}

/// The ranges in order, each with the number of pages that were read in sequence right before it: 0 if it does not
/// continue the previous range of its `stream`, such as its file.
pub fn in_stretches<'a>(
    ranges: impl IntoIterator<Item = &'a HintedRange>,
    mut stream: impl FnMut(&HintedRange) -> usize,
) -> impl Iterator<Item = (&'a HintedRange, u64)> {
    // By stream: the file, the end and the length of its latest stretch.
    let mut latest = Vec::new();
    ranges.into_iter().map(move |range| {
        let at = stream(range);
        if at >= latest.len() {
            latest.resize(at + 1, (0, 0, 0));
        }
        let (file, end, length) = latest[at];
        let before = if (file, end) == (range.file, range.first) { length } else { 0 };
        let count = u64::from(range.count);
        latest[at] = (range.file, range.first + count, before + count);
        (range, before)
    })
}

/// The disk that the recorded command waited for most; among equals, the one with most of the pages in `ranges`. A disk
/// whose pages were cached does not matter, however many they are.
#[must_use]
pub fn main_disk(ranges: &[HintedRange], of_file: &[Disk], disks: usize) -> usize {
    let mut weights = vec![(0, 0); disks];
    for range in ranges {
        let (waited_ns, pages) = &mut weights[of_file[range.file as usize].index()];
        *waited_ns += range.wait_ns;
        *pages += u64::from(range.count);
    }
    (0..disks).rev().max_by_key(|disk| weights[*disk]).unwrap_or(0)
}

/// Reads with a median wait below this, beside the transfer, do not wait for an arm, whatever the system says: virtual
/// disks claim to be rotational, and a network volume or a loop device over a hard disk does not.
pub const ARM_WAIT_NS_MIN: u64 = 1_500_000;
/// Minimum time in which a disk with an arm transfers a page: 200 MB/s.
const ARM_PAGE_NS: u64 = 20_000;
/// With fewer waits there is no verdict.
const WAITS_MIN: usize = 8;

/// Whether the recorded command has waited for `disk` as for one with an arm; `None` if it has waited too rarely. A
/// read that continues the previous one does not count, since drives read ahead.
#[must_use]
pub fn waited_for_arm(list: &HintList, of_file: &[Disk], disk: Disk) -> Option<bool> {
    let is_here = |file: u32| of_file[file as usize] == disk;
    let here = list.ranges.iter().filter(|range| is_here(range.file));
    let starts = in_stretches(here, |_| 0).filter(|(range, before)| range.wait_ns > 0 && *before == 0);
    let mut waits: Vec<u64> = starts.map(|(range, _)| range.wait_ns).collect();
    if waits.len() < WAITS_MIN {
        return None;
    }
    let came = (0..).zip(&list.files).filter(|(at, _)| is_here(*at)).map(|(_, file)| file.came_pages);
    let least = arm_wait_ns(came.sum(), waits.len() as u64);
    let middle = waits.len() / 2;
    Some(*waits.select_nth_unstable(middle).1 >= least)
}

/// The minimum wait of a read that waits for an arm, if `waits` of them have brought `pages`.
#[must_use]
pub fn arm_wait_ns(pages: u64, waits: u64) -> u64 {
    ARM_WAIT_NS_MIN + pages / waits.max(1) * ARM_PAGE_NS
}

/// The cost of a request to a disk without an arm, in pages that it could transfer in that time. A guess, from 100 us
/// and 1 GB/s.
pub const REQUEST_PAGES: u64 = 25;

/// The median wait of the recorded reads per page, with a request counted as [`REQUEST_PAGES`]; `None` if no read
/// waited.
#[must_use]
pub fn waited_for_page(ranges: &[HintedRange]) -> Option<Nanos> {
    let waited = ranges.iter().filter(|range| range.wait_ns > 0);
    let mut waits: Vec<u64> = waited.map(|range| range.wait_ns / (u64::from(range.count) + REQUEST_PAGES)).collect();
    let middle = waits.len() / 2;
    (!waits.is_empty()).then(|| Nanos(*waits.select_nth_unstable(middle).1))
}

/// By file: its disk; and the device numbers of the disks, at least one.
#[must_use]
pub fn disks_of(files: &[HintedFile]) -> (Vec<Disk>, Vec<u64>) {
    let mut numbers: Vec<u64> = Vec::new();
    let mut disk = |file: &HintedFile| {
        let number = if file.is_device { file.identity.1 } else { file.identity.0 };
        let at = numbers.iter().position(|each| *each == number).unwrap_or_else(|| {
            numbers.push(number);
            numbers.len() - 1
        });
        Disk(at as u32)
    };
    let of_file = files.iter().map(&mut disk).collect();
    if numbers.is_empty() {
        numbers.push(0);
    }
    (of_file, numbers)
}

/// The kernel's number of a device in its traces, from its major and minor number.
#[must_use]
pub fn device_number(major: u64, minor: u64) -> u64 {
    (major << 20) | minor
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_main_disk_is_the_one_that_was_waited_for() {
        let range = |file, count, wait_ns| HintedRange { file, count, wait_ns, ..HintedRange::default() };
        let disks = [Disk(0), Disk(1)];
        // A thousand cached pages of libraries, and ten pages that were waited for.
        assert_eq!(main_disk(&[range(0, 1000, 0), range(1, 10, 5)], &disks, 2), 1);
        assert_eq!(main_disk(&[range(0, 1000, 0), range(1, 10, 0)], &disks, 2), 0);
        assert_eq!(main_disk(&[], &disks, 2), 0);
    }

    #[test]
    fn the_median_wait_beside_the_transfer_says_whether_there_is_an_arm() {
        let file = |came_pages| HintedFile {
            path: "/x".into(),
            identity: (0, 1),
            is_device: false,
            size: None,
            mtime_ns: None,
            came_pages,
        };
        // Every second page, unless `step` is 1.
        let waited = |waits_us: &[u64], came_pages, step| {
            let range = |(at, wait_us): (usize, &u64)| HintedRange {
                file: 1,
                first: at as u64 * step,
                count: 1,
                wait_ns: wait_us * 1000,
                ..HintedRange::default()
            };
            let ranges = waits_us.iter().enumerate().map(range).collect();
            let list = HintList { files: vec![file(0), file(came_pages)], ranges, ..HintList::default() };
            [0, 1].map(|disk| waited_for_arm(&list, &[Disk(0), Disk(1)], Disk(disk)))
        };
        // Reads that did not wait do not count, nor do a few slow ones.
        assert_eq!(waited(&[0, 100, 200, 100, 9000, 100, 8000, 100, 7000], 9, 2), [None, Some(false)]);
        assert_eq!(waited(&[0, 100, 200, 100, 9000, 2000, 8000, 100, 7000], 9, 2), [None, Some(true)]);
        assert_eq!(waited(&[5000; 7], 7, 2)[1], None, "too few");
        assert_eq!(waited(&[5000; 9], 9, 1)[1], None, "one read and eight that continue it");
        // 8 MiB each at 1 GB/s; a disk with an arm takes at least 41 ms for them.
        assert_eq!([8_000, 50_000].map(|us| waited(&[us; 8], 8 * 2048, 2)[1]), [Some(false), Some(true)]);
    }

    #[test]
    fn a_range_continues_the_previous_one_of_its_stream() {
        let range = |(file, first, count)| HintedRange { file, first, count, ..HintedRange::default() };
        // Two files, read in turn; 0 begins with its first page, and later goes back.
        let ranges = [(0, 0, 2), (1, 7, 1), (0, 2, 3), (1, 8, 1), (1, 9, 4), (0, 5, 1), (0, 5, 1)].map(range);
        let before = |stream: fn(&HintedRange) -> usize| -> Vec<u64> {
            in_stretches(&ranges, stream).map(|(_, before)| before).collect()
        };
        assert_eq!(before(|range| range.file as usize), [0, 0, 2, 1, 2, 5, 0]);
        assert_eq!(before(|_| 0), [0, 0, 0, 0, 1, 0, 0]);
    }

    #[test]
    fn pages_count_once() {
        let range = |(file, first, count)| HintedRange { file, first, count, ..HintedRange::default() };
        let pages = |ranges: &[(u32, u64, u32)]| {
            HintList { ranges: ranges.iter().copied().map(range).collect(), ..HintList::default() }.pages()
        };
        assert_eq!(pages(&[]), 0);
        assert_eq!(pages(&[(1, 5, 5), (0, 0, 4), (1, 8, 4), (1, 5, 1), (2, 0, 1), (0, 9, 1)]), 4 + 1 + 7 + 1);
        // Within another range, and after a range that lies within another one.
        assert_eq!(pages(&[(3, 0, 10), (3, 2, 1), (3, 5, 2), (3, 9, 2)]), 11);
    }
}
