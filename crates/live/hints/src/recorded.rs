//! Turns a recording (`headstart_trace::hints`) into what is prefetched.

use headstart_trace::hints::{FileKind, RecordedFile, Recording};

use super::list::{device_number, HintList, HintedFile, HintedRange, PAGE_BYTES};
use super::Error;

impl TryFrom<&Recording> for HintList {
    type Error = Error;

    /// The command's own references, in order, without files of unknown path.
    fn try_from(recording: &Recording) -> Result<Self, Error> {
        if recording.about.page_bytes != PAGE_BYTES {
            return Err(Error::Pages(recording.about.page_bytes));
        }
        let mut number_of = Vec::with_capacity(recording.files.len());
        let about = &recording.about;
        let mut list = Self {
            elapsed_ns: about.elapsed_ns,
            command: about.command.iter().map(Into::into).collect(),
            folder: about.folder.clone().into(),
            ..Self::default()
        };
        let mut came = vec![0; recording.files.len()];
        for read in recording.reads.iter().filter(|read| !read.hit) {
            came[read.file as usize] += u64::from(read.pages);
        }
        for file in &recording.files {
            let hinted = hinted(file, came[number_of.len()]);
            number_of.push(hinted.is_some().then_some(list.files.len() as u32));
            list.files.extend(hinted);
        }
        for read in recording.references() {
            if let Some(file) = number_of[read.file as usize] {
                let count = recording.pages_within(read, recording.files[read.file as usize].size_bytes);
                let (first, wait_ns, hit) = (read.start, read.wait_ns, read.hit);
                list.ranges.extend((count > 0).then_some(HintedRange { file, first, count, wait_ns, hit }));
            }
        }
        Ok(list)
    }
}

/// `None` if it cannot be read ahead: its path is unknown, or it is a directory, cached like a file.
fn hinted(file: &RecordedFile, came_pages: u64) -> Option<HintedFile> {
    if file.path.as_os_str().is_empty() {
        return None;
    }
    let is_device = match file.kind {
        FileKind::Regular => false,
        FileKind::Device => true,
        FileKind::Other => return None,
    };
    Some(HintedFile {
        path: file.path.clone(),
        identity: identity(file),
        is_device,
        size: (!is_device).then_some(file.size_bytes),
        mtime_ns: (!is_device).then_some(file.mtime_ns.into()),
        came_pages,
    })
}

/// See [`HintedFile::identity`].
pub fn identity(file: &RecordedFile) -> (u64, u64) {
    let device = device_number(u64::from(file.major), u64::from(file.minor));
    if file.kind == FileKind::Device {
        (0, device)
    } else {
        (device, file.inode)
    }
}

#[cfg(test)]
mod tests {
    use headstart_policy::BlockMap;
    use headstart_trace::hints::{About, Read, ReadKind, RecordedProcess};
    use headstart_types::{Block, Disk};

    use super::super::universe::{HintedSpace, Universe};
    use super::*;

    /// A recording of a file of `size_bytes` with reads of these pages.
    fn recording(size_bytes: u64, reads: &[(u64, u32)]) -> Recording {
        let about = About {
            command: vec!["sh".into()],
            folder: "/".into(),
            recorded_at_s: 0,
            elapsed_ns: 1_000_000_000,
            exit_status: 0,
            kernel: "6.18".into(),
            page_bytes: PAGE_BYTES,
            cold: true,
            lost_events: 0,
            recordings: 1,
        };
        let file = RecordedFile {
            kind: FileKind::Regular,
            path: "/none".into(),
            major: 8,
            minor: 0,
            inode: 12,
            size_bytes,
            mtime_ns: 0,
        };
        let read = |(start, pages): &(u64, u32)| Read {
            time_ns: 0,
            wait_ns: 0,
            start: *start,
            pages: *pages,
            process: 0,
            file: 0,
            kind: ReadKind::Read,
            hit: false,
        };
        let processes = vec![RecordedProcess { pid: 1, name: "sh".into() }];
        Recording { about, processes, files: vec![file], reads: reads.iter().map(read).collect() }
    }

    #[test]
    fn pages_beyond_the_end_of_a_file_are_not_hinted() {
        // 2 pages and a byte.
        let list = HintList::try_from(&recording(8193, &[(1 << 50, 4), (0, 1 << 31), (2, 1), (3, 9)])).expect("fine");
        let ranges: Vec<_> = list.ranges.iter().map(|range| (range.first, range.count)).collect();
        assert_eq!(ranges, [(0, 3), (2, 1)]);
    }

    #[test]
    fn a_long_stretch_in_order_is_left_to_the_kernel_where_there_is_no_arm() {
        let reads = [(0, 256), (256, 256), (512, 256), (768, 10), (2000, 1), (778, 1)];
        let list = HintList::try_from(&recording(1 << 30, &reads)).expect("fine");
        let blocks = |left: &[bool]| {
            let universe = Universe::new(&list, vec![Disk(0)], left);
            (universe.blocks(), [100, 511, 512, 777, 2000, 778].map(|page| universe.is_left_to_kernel(0, page)))
        };
        assert_eq!(blocks(&[false]), (780, [false; 6]));
        // Reads after one of another place form a separate stretch.
        assert_eq!(blocks(&[true]), (514, [false, false, true, true, false, false]));
    }

    #[test]
    fn pages_that_are_named_again_are_passed_over_and_too_many_are_counted() {
        let pages = |size_bytes, reads: &[(u64, u32)]| {
            let list = HintList::try_from(&recording(size_bytes, reads)).expect("fine");
            let universe = Universe::new(&list, vec![Disk(0)], &[]);
            let named =
                (0..universe.blocks().min(9) as u32).map(|block| universe.place(Block(block)).1).collect::<Vec<_>>();
            (named, universe.blocks(), universe.left_out)
        };
        let reads = [(4, 2), (7, 1), (3, 3), (2, 6), (4, 1), (0, 1), (2, 6)];
        assert_eq!(pages(1 << 20, &reads), (vec![4, 5, 7, 3, 2, 6, 0], 7, 0));
        // Half a million reads of 8 TiB take no longer than 16 GiB of new pages.
        let (_, blocks, left_out) = pages(1 << 43, &vec![(0, 1 << 31); 500_000]);
        assert_eq!((blocks, left_out), (4 << 20, (1 << 31) - (4 << 20)));
    }
}
