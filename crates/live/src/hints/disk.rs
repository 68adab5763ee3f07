//! A disk and the threads that read from it: they find out where files lie, and bring pages into the page cache.
//!
//! A read is a `pread` of a file whose read-ahead is off, in pieces of [`PIECE_PAGES`] at most: what the kernel is asked to read ahead
//! (readahead(2), POSIX_FADV_WILLNEED) it cuts at the device's read-ahead or its greatest request, and does not say when it is done.
//! Few are outstanding, so that what the command itself asks for waits for few.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use headstart_types::Block;
use rustc_hash::FxBuildHasher;

use super::list::{HintList, HintedFile, PAGE_BYTES};
use super::pieces::{Cut, Piece, Pieces, Placed};
use super::system::{advise_random, begin, cached_pages, extents, lower_io_priority};

/// Pages of a read at most: 1 MiB.
pub const PIECE_PAGES: u64 = 256;
/// Of an arm: reading a hole of 128 KiB takes about 2 ms, less than half a turn.
const ARM_HOLE_PAGES: u64 = 32;
/// Without an arm: a hole of 16 KiB costs less than a request.
const FLASH_HOLE_PAGES: u64 = 4;
/// Reads outstanding. The command's own come between them, each at the cost of two seeks: an arm that has but one or two reads to choose
/// from spends its time on the way between both.
const ARM_DEPTH: usize = 8;
const FLASH_DEPTH: usize = 16;
/// Without an arm: pages that wait for their reads before no further file is opened.
const PLACED_ENOUGH: usize = 256;

/// What a thread has to say.
#[derive(Debug)]
pub enum Done {
    /// These blocks have been read, in that time, and so many pages with them that nobody has asked for.
    Read(Vec<Block>, Duration, u64),
    /// These blocks need not be read: they are in the page cache, in a hole, or cannot be read.
    Unneeded(Vec<Block>, Why),
}

/// Why a block is not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// It is in the page cache.
    Cached,
    /// It has no place on the device: zeros, or in memory only.
    Hole,
    /// The file is not there any more, or is not the one that was recorded.
    Stale,
    /// The device itself may not be read: its metadata cannot be prefetched.
    Denied,
}

impl Why {
    /// Why a file cannot be read that could not be opened.
    fn not_opened(file: &HintedFile) -> Self {
        if file.is_device {
            Why::Denied
        } else {
            Why::Stale
        }
    }
}

/// What is known of a disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiskFacts {
    /// It has an arm.
    pub arm: bool,
    /// Its scheduler puts requests of the idle class behind all others, without starving them.
    pub idle_class: bool,
}

impl DiskFacts {
    /// Those of the device of that number, as sysfs has them; without a device there is no arm.
    #[must_use]
    pub fn of(sys: &Path, major: u64, minor: u64) -> Self {
        let folder = sys.join(format!("dev/block/{major}:{minor}"));
        // A partition's queue is its disk's.
        let read = |name: &str| {
            let own = fs::read_to_string(folder.join("queue").join(name));
            own.or_else(|_| fs::read_to_string(folder.join("../queue").join(name))).unwrap_or_default()
        };
        Self { arm: read("rotational").trim() == "1", idle_class: read("scheduler").contains("[mq-deadline]") }
    }

    fn cut(&self) -> Cut {
        let hole_max = if self.arm { ARM_HOLE_PAGES } else { FLASH_HOLE_PAGES };
        Cut { by_address: self.arm, hole_max, pages_max: PIECE_PAGES }
    }
}

#[derive(Debug, Default)]
struct Queue {
    metadata: Pieces,
    /// Reads of metadata under way, and files that are being placed.
    metadata_active: usize,
    placing: usize,
    /// Blocks and pages of files whose places are not known yet.
    unplaced: BTreeMap<u32, Vec<(Block, u64)>>,
    data: Pieces,
    /// Where waiting blocks are.
    placed: hashbrown::HashMap<Block, Placed, FxBuildHasher>,
    holes_left: u64,
    stopped: bool,
}

enum Work {
    Place(u32, Vec<(Block, u64)>),
    Read(Piece, bool),
}

/// A disk.
pub struct Disk {
    queue: Mutex<Queue>,
    changed: Condvar,
    facts: DiskFacts,
    list: Arc<HintList>,
}

impl Disk {
    /// One for the files of `list`.
    #[must_use]
    pub fn new(facts: DiskFacts, list: Arc<HintList>) -> Self {
        let queue = Mutex::new(Queue::default());
        Self { queue, changed: Condvar::new(), facts, list }
    }

    /// How many threads it wants.
    #[must_use]
    pub fn depth(&self) -> usize {
        if self.facts.arm {
            ARM_DEPTH
        } else {
            FLASH_DEPTH
        }
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads to be done.
    pub fn order(&self, blocks: impl IntoIterator<Item = (Block, u32, u64)>) {
        let mut queue = self.lock();
        for (block, file, page) in blocks {
            if self.list.files[file as usize].is_device {
                let placed = Placed { block, file, page, address: page };
                queue.metadata.add(Cut { by_address: true, ..self.facts.cut() }, placed);
            } else {
                queue.unplaced.entry(file).or_default().push((block, page));
            }
        }
        drop(queue);
        self.changed.notify_all();
    }

    /// The command has read `block` itself: if its read has not begun it is not needed any more.
    pub fn cancel(&self, block: Block) -> bool {
        let mut queue = self.lock();
        let Some(placed) = queue.placed.remove(&block) else { return false };
        queue.data.cancel(self.facts.cut(), &placed)
    }

    /// Holes of `pages` more may be read.
    pub fn allow_holes(&self, pages: u64) {
        self.lock().holes_left += pages;
    }

    /// Nothing is begun any more.
    pub fn stop(&self) {
        self.lock().stopped = true;
        self.changed.notify_all();
    }

    /// What to do next; waits for it. `None` when it has been stopped.
    fn next(&self) -> Option<Work> {
        let mut queue = self.lock();
        loop {
            if queue.stopped {
                return None;
            }
            let work = self.choose(&mut queue);
            if work.is_some() {
                return work;
            }
            queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn choose(&self, queue: &mut Queue) -> Option<Work> {
        let cut = self.facts.cut();
        if let Some(piece) = queue.metadata.next(Cut { by_address: true, ..cut }, u64::MAX) {
            queue.metadata_active += 1;
            return Some(Work::Read(piece, true));
        }
        if queue.metadata_active > 0 {
            return None;
        }
        // The order of addresses is known when all places are.
        if self.facts.arm || queue.data.len() < PLACED_ENOUGH {
            if let Some((file, blocks)) = queue.unplaced.pop_first() {
                queue.placing += 1;
                return Some(Work::Place(file, blocks));
            }
        }
        if self.facts.arm && queue.placing > 0 {
            return None;
        }
        let holes_left = queue.holes_left;
        let piece = queue.data.next(cut, holes_left)?;
        queue.holes_left -= piece.count() - piece.pages.len() as u64;
        for page in &piece.pages {
            queue.placed.remove(&page.block);
        }
        Some(Work::Read(piece, false))
    }

    /// The work of one thread, until the disk is stopped. `tell` wakes whoever listens to `done`.
    pub fn serve(&self, done: &Sender<Done>, tell: &dyn Fn()) {
        lower_io_priority(self.facts.idle_class);
        let mut reader = Reader::default();
        while let Some(work) = self.next() {
            match work {
                Work::Place(file, blocks) => {
                    for said in self.place(file, blocks) {
                        let _ = done.send(said);
                    }
                }
                Work::Read(piece, metadata) => {
                    for said in reader.read(&self.list, &piece) {
                        let _ = done.send(said);
                    }
                    if metadata {
                        self.lock().metadata_active -= 1;
                    }
                }
            }
            self.changed.notify_all();
            tell();
        }
    }

    /// Finds out where `blocks` lie, and puts those that are stored among what is to be read. Returns those that are not.
    fn place(&self, file: u32, blocks: Vec<(Block, u64)>) -> Vec<Done> {
        let hinted = &self.list.files[file as usize];
        let (mut stored, mut holes, mut gone) = (Vec::new(), Vec::new(), Vec::new());
        match open_unchanged(hinted) {
            None => gone.extend(blocks.iter().map(|(block, _)| *block)),
            Some(opened) => {
                let end = blocks.iter().map(|(_, page)| (page + 1) * PAGE_BYTES).max().unwrap_or(0);
                let found = extents(&opened, end);
                for (block, page) in blocks {
                    match &found {
                        None => stored.push(Placed { block, file, page, address: page }),
                        Some(extents) => match address(extents, page) {
                            Some(address) => stored.push(Placed { block, file, page, address }),
                            None => holes.push(block),
                        },
                    }
                }
            }
        }
        let cut = self.facts.cut();
        let mut queue = self.lock();
        queue.placing -= 1;
        for placed in stored {
            queue.data.add(cut, placed);
            queue.placed.insert(placed.block, placed);
        }
        drop(queue);
        let said = [(holes, Why::Hole), (gone, Why::not_opened(hinted))];
        said.into_iter()
            .filter(|(blocks, _)| !blocks.is_empty())
            .map(|(blocks, why)| Done::Unneeded(blocks, why))
            .collect()
    }
}

/// The page of the device that holds that page of the file; `None` in a hole.
fn address(extents: &[super::system::Extent], page: u64) -> Option<u64> {
    let at = page * PAGE_BYTES;
    let after = extents.partition_point(|extent| extent.logical <= at);
    let extent = extents[..after].last().filter(|extent| extent.stored && at - extent.logical < extent.length)?;
    Some((extent.physical + (at - extent.logical)) / PAGE_BYTES)
}

/// Opens a file if it is the one that was recorded, unchanged.
#[must_use]
pub fn open_unchanged(hinted: &HintedFile) -> Option<File> {
    let file = open(&hinted.path)?;
    let found = file.metadata().ok()?;
    let (_, inode) = hinted.identity;
    let is_same = hinted.is_device
        || (found.is_file()
            && found.ino() == inode
            && hinted.size.is_none_or(|size| size == found.len())
            && hinted
                .mtime_ns
                .is_none_or(|ns| ns == i128::from(found.mtime()) * 1_000_000_000 + i128::from(found.mtime_nsec())));
    is_same.then_some(file)
}

/// Without a change of its time of access, where that is allowed; never waits for the other end of a pipe.
fn open(path: &PathBuf) -> Option<File> {
    let with = |flags| OpenOptions::new().read(true).custom_flags(flags | libc::O_NONBLOCK).open(path);
    with(libc::O_NOATIME).or_else(|_| with(0)).ok()
}

/// What a thread reads with: the file that it read last, and room.
#[derive(Default)]
struct Reader {
    opened: Option<(u32, File)>,
    room: Vec<u8>,
}

impl Reader {
    fn read(&mut self, list: &HintList, piece: &Piece) -> Vec<Done> {
        let blocks = || piece.pages.iter().map(|page| page.block).collect::<Vec<_>>();
        let number = piece.pages[0].file;
        if self.opened.as_ref().is_none_or(|(opened, _)| *opened != number) {
            self.opened = open_unchanged(&list.files[number as usize]).map(|file| (number, file));
            if let Some((_, file)) = &self.opened {
                advise_random(file);
            }
        }
        let Some((_, file)) = &self.opened else {
            let why = Why::not_opened(&list.files[number as usize]);
            return vec![Done::Unneeded(blocks(), why)];
        };
        let (mut needed, cached) = needed(file, piece);
        let mut said = Vec::new();
        if let Some((first, last)) = needed.first().zip(needed.last()).map(|(first, last)| (first.page, last.page)) {
            let length = (last - first + 1) * PAGE_BYTES;
            let holes = cached_pages(file, first * PAGE_BYTES, length)
                .map_or(last - first + 1, |cached| (last - first + 1).saturating_sub(cached))
                .saturating_sub(needed.len() as u64);
            self.room.resize((PIECE_PAGES * PAGE_BYTES) as usize, 0);
            let begun = begin();
            let read = read_whole(file, &mut self.room[..length as usize], first * PAGE_BYTES);
            if read == 0 {
                said.push(Done::Unneeded(needed.drain(..).map(|page| page.block).collect(), Why::Stale));
            } else {
                said.push(Done::Read(needed.iter().map(|page| page.block).collect(), begun.elapsed(), holes));
            }
        }
        if !cached.is_empty() {
            said.push(Done::Unneeded(cached, Why::Cached));
        }
        said
    }
}

/// The pages of a piece that are not in the page cache, and the blocks that are.
fn needed(file: &File, piece: &Piece) -> (Vec<Placed>, Vec<Block>) {
    let (first, count) = (piece.first(), piece.count());
    match cached_pages(file, first * PAGE_BYTES, count * PAGE_BYTES) {
        None | Some(0) => (piece.pages.clone(), Vec::new()),
        Some(_) => {
            let is_cached = |page: &Placed| cached_pages(file, page.page * PAGE_BYTES, PAGE_BYTES) == Some(1);
            let (cached, needed): (Vec<Placed>, Vec<Placed>) = piece.pages.iter().partition(|page| is_cached(page));
            (needed, cached.iter().map(|page| page.block).collect())
        }
    }
}

/// Reads until `room` is full or the file ends. Returns the bytes read.
fn read_whole(file: &File, room: &mut [u8], offset: u64) -> usize {
    let mut read = 0;
    while read < room.len() {
        match file.read_at(&mut room[read..], offset + read as u64) {
            Ok(0) => break,
            Ok(bytes) => read += bytes,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    read
}
