//! The number of open files on each disk, for a buffer with as many segments.
//!
//! Shriver, Small and Smith (USENIX 1999, section 6) propose that the file system set a drive's number of cache
//! segments to the number of files being read from it. A trace does not tell when files are opened and closed: a
//! process has the file open that the disks last read for it, until it reads another, or until its last block was read.
//! Two processes that read one file have it open twice: they are two streams. Metadata do not belong to an open file,
//! and written data need no segment to be read from.
//!
//! Our choice: a change costs the buffer's contents, so segments are added when there are more open files, but only
//! removed when fewer than half of them are in use.
//!
//! Cost: two look-ups per request. Memory: 40 bytes per process, and a disk's number for each disk of an open file.

use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of segments: the paper's drive can be set to 1 to 16 (section 4.2).
pub(crate) const SEGMENTS_MAX: u32 = 16;

#[derive(Debug)]
pub(crate) struct OpenFiles {
    /// By process: its file, and the disks that it is read from.
    of: BTreeMap<u32, (u32, BTreeSet<u32>)>,
    /// By disk: the number of open files, and the number of its buffer's segments.
    disks: Vec<Counted>,
    least: u32,
}

#[derive(Debug, Clone, Copy)]
struct Counted {
    open: u32,
    segments: u32,
}

impl OpenFiles {
    /// No open files, on `disks` disks whose buffers now have `segments` segments, and at least `least`.
    pub fn new(disks: usize, segments: u32, least: u32) -> Self {
        Self { of: BTreeMap::new(), disks: vec![Counted { open: 0, segments }; disks], least }
    }

    /// `disk` reads from `file` for `process`; up to the file's last block, if `to_end`.
    pub fn read(&mut self, process: u32, file: u32, disk: u32, to_end: bool) {
        if self.of.get(&process).is_some_and(|(open, _)| *open != file) {
            self.close(process);
        }
        if self.of.entry(process).or_insert_with(|| (file, BTreeSet::new())).1.insert(disk) {
            self.disks[disk as usize].open += 1;
        }
        if to_end {
            self.close(process);
        }
    }

    fn close(&mut self, process: u32) {
        let Some((_, disks)) = self.of.remove(&process) else { return };
        disks.iter().for_each(|disk| self.disks[*disk as usize].open -= 1);
    }

    /// The number of segments that the buffer of `disk` should have, if it differs.
    pub fn wanted(&self, disk: u32) -> Option<u32> {
        let Counted { open, segments } = self.disks[disk as usize];
        let wanted = open.clamp(self.least, SEGMENTS_MAX);
        (open > 0 && (wanted > segments || 2 * wanted < segments)).then_some(wanted)
    }

    /// The buffer of `disk` was divided.
    pub fn divided(&mut self, disk: u32, segments: u32) {
        self.disks[disk as usize].segments = segments;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_one_file_open() {
        let mut files = OpenFiles::new(2, 3, 1);
        assert_eq!(files.wanted(0), None, "nothing is open yet");
        // One file on disk 0: fewer than half of three segments. Another on disk 1.
        files.read(0, 7, 0, false);
        assert_eq!((files.wanted(0), files.wanted(1)), (Some(1), None));
        files.divided(0, 1);
        files.read(0, 7, 0, false);
        assert_eq!(files.wanted(0), None);
        // A second process reads the same file; the first switches to another one, on both disks.
        files.read(1, 7, 0, false);
        assert_eq!(files.wanted(0), Some(2));
        files.read(0, 8, 1, false);
        files.read(0, 8, 0, false);
        assert_eq!((files.wanted(0), files.wanted(1)), (Some(2), Some(1)));
        // To its end: closed on both.
        files.divided(1, 1);
        files.read(0, 8, 1, true);
        files.read(2, 9, 1, false);
        assert_eq!((files.wanted(0), files.wanted(1)), (None, None));
    }

    #[test]
    fn segments_stay_until_fewer_than_half_are_used() {
        let mut files = OpenFiles::new(1, 3, 1);
        (0..20).for_each(|process| files.read(process, process, 0, false));
        assert_eq!(files.wanted(0), Some(16), "at most");
        files.divided(0, 16);
        (0..12).for_each(|process| files.read(process, process, 0, true));
        assert_eq!(files.wanted(0), None, "8 of 16");
        files.read(12, 12, 0, true);
        assert_eq!(files.wanted(0), Some(7));
    }
}
