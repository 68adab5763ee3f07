//! Where the pages of a recording lie now: according to the file system's maps, otherwise one file after another.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs::{self, File};
use std::ops::Range;
use std::path::Path;

use headstart_device::SECTOR_BYTES;
use headstart_trace::hints::{FileKind, ReadKind, RecordedFile, Recording};
use headstart_types::{open_regular, Disk};

use rustc_hash::FxBuildHasher;

use super::text::text;
use crate::device_number;
use crate::disk::{address, keep_access_time, queue_setting, DiskFacts};
use crate::list::PAGE_BYTES;
use crate::system::{extents, Extent};

/// Pages of a chunk, which stays together if places beyond the end of the drive must be moved: 16 MiB.
const CHUNK_PAGES: u64 = 4096;

/// Where a file lies.
#[derive(Debug)]
enum Place {
    /// The device itself.
    Device,
    /// The extents that the file system reports.
    Mapped(Vec<Extent>),
    /// Contiguous, from this page on.
    Whole(u64),
}

/// A device that holds files of the recording.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DiskFound {
    /// Its name in /dev; empty if there is none.
    pub name: String,
    /// Its number in traces.
    pub number: u64,
    /// It has an arm, according to the system, which does not know this of a virtual machine's disk.
    pub arm: bool,
    /// It belongs to a virtual machine.
    pub is_virtual: bool,
    /// The kernel's read-ahead.
    pub read_ahead_bytes: u64,
    /// Maximum size of a request.
    pub request_bytes_max: u64,
    /// The kernel's scheduler; empty if unknown.
    pub scheduler: String,
    /// The median wait of the reads that waited for it; `None` if none did.
    pub waited_ns: Option<u64>,
    /// The sum of these waits.
    pub waited_all_ns: u64,
    /// Pages that the command read from it, or, if nothing was read from any device, referenced.
    pub pages: u64,
    /// Start of a partition, in pages of its disk.
    start: u64,
    /// Where chunks are moved to if the drive is smaller than the places.
    moved: BTreeMap<u64, u64>,
}

impl DiskFound {
    fn of(sys: &Path, number: u64) -> Self {
        let (major, minor) = (number >> 20, number & 0xf_ffff);
        let folder = sys.join(format!("dev/block/{major}:{minor}"));
        let queue = |name: &str| queue_setting(sys, (major, minor), name);
        let bytes = |name: &str, default: u64| queue(name).parse().unwrap_or(default) << 10;
        let scheduler = queue("scheduler");
        let chosen = scheduler.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map(|(name, _)| name);
        let DiskFacts { arm, is_virtual, .. } = DiskFacts::of(sys, major, minor);
        let name = fs::read_link(&folder).ok().and_then(|link| Some(link.file_name()?.to_string_lossy().into_owned()));
        let start = fs::read_to_string(folder.join("start")).ok().and_then(|text| text.trim().parse::<u64>().ok());
        Self {
            name: name.unwrap_or_default(),
            number,
            arm,
            is_virtual,
            read_ahead_bytes: bytes("read_ahead_kb", 128),
            request_bytes_max: bytes("max_sectors_kb", 1280).max(PAGE_BYTES),
            scheduler: chosen.unwrap_or_default().to_owned(),
            start: start.unwrap_or(0) * SECTOR_BYTES / PAGE_BYTES,
            ..Self::default()
        }
    }

    /// The name for users.
    pub(super) fn shown(&self) -> String {
        if self.name.is_empty() {
            "a device without a name".to_owned()
        } else {
            format!("/dev/{}", self.name)
        }
    }
}

/// Where everything lies.
#[derive(Debug, Default)]
pub(super) struct Places {
    files: Vec<Place>,
    /// By file: its disk; its pages, or `None` if it is the device.
    pub disk_of: Vec<Disk>,
    pub pages_of: Vec<Option<u64>>,
    /// By file: the pages that are mapped as executable.
    text_of: Vec<Vec<Range<u64>>>,
    pub disks: Vec<DiskFound>,
    /// Files that have changed, and the number of files whose places are unknown.
    pub changed: Vec<bool>,
    pub unplaced: usize,
    /// The number of files of the command itself; the others are named only by its hints.
    own: usize,
    /// Pages of metadata that the command reads, and those that its hints name: file, first, end.
    metadata: [Vec<(u32, u64, u64)>; 2],
}

impl Places {
    /// Places the command's `own` files, and those that only its hints name, which do not change the places of the
    /// former. `hinted`: pages of metadata that the hints name: file, first, end. The caller guarantees that pages have
    /// 4096 bytes.
    pub fn new(recording: &Recording, own: usize, hinted: Vec<(u32, u64, u64)>, sys: &Path) -> Self {
        let mut places = Self { own, metadata: [Vec::new(), hinted], ..Self::default() };
        places.changed = vec![false; recording.files.len()];
        for stale in headstart_trace::hints::check(recording) {
            places.changed[stale.file] = true;
        }
        let mut ends = vec![0; recording.files.len()];
        let mut is_faulted = vec![false; recording.files.len()];
        for read in recording.references() {
            let file = read.file as usize;
            ends[file] = read.end().max(ends[file]);
            is_faulted[file] |= matches!(read.kind, ReadKind::Fault | ReadKind::Map);
        }
        for ((file, end), is_faulted) in recording.files.iter().zip(ends).zip(is_faulted) {
            places.add(file, end, is_faulted, sys);
        }
        // Only what came from a device counts, or everything if nothing did.
        let all = recording.references().all(|read| read.hit);
        let mut seen: HashSet<(u32, u64), FxBuildHasher> = HashSet::default();
        let mut waits = vec![Vec::new(); places.disks.len()];
        for read in recording.references() {
            let disk = places.disk_of[read.file as usize].index();
            if all || !read.hit {
                let new = (read.start..read.end()).filter(|page| seen.insert((read.file, *page))).count();
                places.disks[disk].pages += new as u64;
            }
            waits[disk].extend((read.wait_ns > 0).then_some(read.wait_ns));
        }
        for (disk, mut waits) in places.disks.iter_mut().zip(waits) {
            waits.sort_unstable();
            disk.waited_all_ns = waits.iter().sum();
            disk.waited_ns = waits.get(waits.len() / 2).copied();
        }
        places.place_rest(recording);
        places
    }

    /// Adds a file that was read up to the page `end`, with its disk.
    fn add(&mut self, file: &RecordedFile, end: u64, is_faulted: bool, sys: &Path) {
        let number = device_number(u64::from(file.major), u64::from(file.minor));
        let disk = self.disks.iter().position(|disk| disk.number == number).unwrap_or_else(|| {
            self.disks.push(DiskFound::of(sys, number));
            self.disks.len() - 1
        });
        self.disk_of.push(Disk(disk as u32));
        let is_device = file.kind == FileKind::Device;
        self.pages_of.push((!is_device).then_some(file.size_bytes.div_ceil(PAGE_BYTES).max(end)));
        let opened = opened(file);
        let extents = opened.as_ref().and_then(mapped);
        self.files.push(match extents {
            _ if is_device => Place::Device,
            Some(extents) => Place::Mapped(extents),
            None => Place::Whole(u64::MAX),
        });
        self.text_of.push(opened.filter(|_| is_faulted).map_or_else(Vec::new, |opened| text(&opened)));
    }

    /// Places the files of unknown place behind the others, in inode order: first the command's own, then the rest.
    fn place_rest(&mut self, recording: &Recording) {
        let mut next: Vec<u64> = vec![0; self.disks.len()];
        for read in recording.references() {
            if let Place::Device = self.files[read.file as usize] {
                let next = &mut next[self.disk_of[read.file as usize].index()];
                *next = read.end().max(*next);
                self.metadata[0].push((read.file, read.start, read.end()));
            }
        }
        for files in [0..self.own, self.own..self.files.len()] {
            for at in files.clone() {
                if let Place::Mapped(extents) = &self.files[at] {
                    let end = extents.iter().map(|each| (each.physical + each.length) / PAGE_BYTES).max();
                    let next = &mut next[self.disk_of[at].index()];
                    *next = end.unwrap_or(0).max(*next);
                }
            }
            let is_unplaced = |at: &usize| matches!(self.files[*at], Place::Whole(_));
            let mut rest: Vec<usize> = files.filter(is_unplaced).collect();
            rest.sort_by_key(|at| recording.files[*at].inode);
            self.unplaced += rest.len();
            for at in rest {
                let next = &mut next[self.disk_of[at].index()];
                self.files[at] = Place::Whole(*next);
                *next += self.pages_of[at].unwrap_or(0);
            }
        }
    }

    /// The page of the file's disk that holds `page`; `None` in a hole.
    pub fn page(&self, file: u32, page: u64) -> Option<u64> {
        let disk = &self.disks[self.disk_of[file as usize].index()];
        let at = disk.start
            + match &self.files[file as usize] {
                Place::Device => page,
                Place::Mapped(extents) => address(extents, page)?,
                Place::Whole(first) => first + page,
            };
        let (chunk, rest) = (at / CHUNK_PAGES, at % CHUNK_PAGES);
        Some(disk.moved.get(&chunk).map_or(at, |chunk| chunk * CHUNK_PAGES + rest))
    }

    /// The end of the executable mapping that `page` is in, if it is in one.
    pub fn text_end(&self, file: u32, page: u64) -> Option<u64> {
        self.text_of[file as usize].iter().find(|text| text.contains(&page)).map(|text| text.end)
    }

    /// Moves chunks together if places are beyond the end of a drive of `capacity` pages. Returns whether that was
    /// necessary. The command's own chunks move independently of the hints; chunks that only its hints name take the
    /// room that is left.
    pub fn fit(&mut self, disk: usize, capacity: Option<u64>) -> bool {
        let is_beyond = |end: u64| capacity.is_some_and(|capacity| end > capacity);
        let [(own, own_end), (all, end)] = [false, true].map(|with_hints| self.chunks(disk, with_hints));
        if is_beyond(end) {
            let own: BTreeMap<u64, u64> = match is_beyond(own_end) {
                true => own.into_iter().zip(0..).collect(),
                false => own.into_iter().map(|chunk| (chunk, chunk)).collect(),
            };
            let taken: BTreeSet<u64> = own.values().copied().collect();
            let others = all.into_iter().filter(|chunk| !own.contains_key(chunk));
            let free = (0..).filter(|place| !taken.contains(place));
            self.disks[disk].moved = others.zip(free).collect();
            self.disks[disk].moved.extend(own);
        }
        is_beyond(end)
    }

    /// The chunks of `disk` that hold the command's own files and metadata, with `with_hints` also those of its hints;
    /// and where they end.
    fn chunks(&self, disk: usize, with_hints: bool) -> (BTreeSet<u64>, u64) {
        let (mut chunks, mut last) = (BTreeSet::new(), 0);
        let start = self.disks[disk].start;
        let mut add = |first: u64, end: u64| {
            chunks.extend((start + first) / CHUNK_PAGES..(start + end).div_ceil(CHUNK_PAGES));
            last = last.max(start + end);
        };
        let (files, lists) = if with_hints { (self.files.len(), 2) } else { (self.own, 1) };
        let metadata = self.metadata[..lists].iter().flatten();
        for (_, first, end) in metadata.filter(|(file, ..)| self.disk_of[*file as usize].index() == disk) {
            add(*first, *end);
        }
        for file in (0..files).filter(|file| self.disk_of[*file].index() == disk) {
            match &self.files[file] {
                Place::Device => {}
                Place::Mapped(extents) => extents.iter().for_each(|each| {
                    add(each.physical / PAGE_BYTES, each.physical / PAGE_BYTES + each.length.div_ceil(PAGE_BYTES));
                }),
                Place::Whole(first) => add(*first, first + self.pages_of[file].unwrap_or(0)),
            }
        }
        (chunks, last)
    }
}

/// The file, if it exists and has a path.
fn opened(file: &RecordedFile) -> Option<File> {
    if file.kind != FileKind::Regular || file.path.as_os_str().is_empty() {
        return None;
    }
    open_regular(&file.path).ok().inspect(keep_access_time)
}

/// The extents of a file, if the file system reports them.
fn mapped(opened: &File) -> Option<Vec<Extent>> {
    extents(opened, opened.metadata().ok()?.len()).filter(|extents| extents.iter().any(|extent| extent.stored))
}
