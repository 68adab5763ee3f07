//! A disk and the threads that read from it: they find the places of files, and bring pages into the page cache.
//!
//! A read is a `pread` of a file whose read-ahead is off, in pieces of at most [`PIECE_PAGES`]: the kernel limits a
//! read-ahead request (readahead(2), POSIX_FADV_WILLNEED) to the device's read-ahead or its largest request, and does
//! not report completion. Few reads are in flight, so that the command's own requests wait for few.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use headstart_types::{open_checked, Block};
use nix::fcntl::{fcntl, FcntlArg, OFlag};

use super::list::{device_number, HintList, HintedFile, PAGE_BYTES};
use super::pieces::{Piece, Placed};
use super::queue::{depth, Queue, Work};
use super::system::{advise_random, begin, cached_pages, extents, lower_io_priority, read_over};

/// A message of a thread.
#[derive(Debug)]
pub enum Done {
    /// These blocks have been read, in this time, along with this many pages that nothing asked for.
    Read(Vec<Block>, Duration, u64),
    /// These blocks need not be read: they are in the page cache, in a hole, or cannot be read.
    Unneeded(Vec<Block>, Why),
}

/// Why a block is not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// It is in the page cache.
    Cached,
    /// It has no place on the device: it is a hole or only in memory.
    Hole,
    /// The file is gone, or is not the one that was recorded.
    Stale,
    /// The device itself is not readable: its metadata cannot be prefetched.
    Denied,
}

impl Why {
    /// Why a file could not be opened.
    fn not_opened(file: &HintedFile) -> Self {
        if file.is_device {
            Why::Denied
        } else {
            Why::Stale
        }
    }
}

/// The known properties of a disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiskFacts {
    /// It has an arm, according to the system.
    pub arm: bool,
    /// It belongs to a virtual machine: the system does not know whether it has an arm, and says that it has.
    pub is_virtual: bool,
    /// Its scheduler puts idle-class requests behind all others, without starving them.
    pub idle_class: bool,
}

impl DiskFacts {
    /// Reads the facts of the device of that number from sysfs; without a device there is no arm.
    #[must_use]
    pub fn of(sys: &Path, major: u64, minor: u64) -> Self {
        let queue = |name: &str| queue_setting(sys, (major, minor), name);
        // ../../devices/pci0000:00/0000:00:04.0/virtio2/block/vda, and Xen's ../../devices/vbd-768/block/xvda.
        let place = fs::canonicalize(sys.join(format!("dev/block/{major}:{minor}"))).unwrap_or_default();
        let is_virtual = |name: &str| ["virtio", "vbd-"].iter().any(|driver| name.starts_with(driver));
        Self {
            arm: queue("rotational") == "1",
            is_virtual: place.iter().any(|name| name.to_str().is_some_and(is_virtual)),
            idle_class: queue("scheduler").contains("[mq-deadline]"),
        }
    }
}

/// A setting of the queue of a device, in sysfs; empty if unknown. A partition uses its disk's queue.
#[must_use]
pub fn queue_setting(sys: &Path, (major, minor): (u64, u64), name: &str) -> String {
    let folder = sys.join(format!("dev/block/{major}:{minor}"));
    let read = |of: &str| fs::read_to_string(folder.join(of).join(name));
    read("queue").or_else(|_| read("../queue")).unwrap_or_default().trim().to_owned()
}

/// The state that the threads share.
struct State {
    queue: Queue,
    stopped: bool,
}

/// A disk.
pub struct Disk {
    state: Mutex<State>,
    changed: Condvar,
    facts: DiskFacts,
    list: Arc<HintList>,
}

impl Disk {
    /// A disk for the files of `list`.
    #[must_use]
    pub fn new(facts: DiskFacts, list: Arc<HintList>) -> Self {
        let state = Mutex::new(State { queue: Queue::new(facts.arm), stopped: false });
        Self { state, changed: Condvar::new(), facts, list }
    }

    /// The number of threads that it wants.
    #[must_use]
    pub fn depth(&self) -> usize {
        depth(self.facts.arm)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Orders reads.
    pub fn order(&self, blocks: impl IntoIterator<Item = (Block, u32, u64)>) {
        let mut state = self.lock();
        let mut count = 0;
        for (block, file, page) in blocks {
            state.queue.add(block, file, page, self.list.files[file as usize].is_device);
            count += 1;
        }
        drop(state);
        (0..self.depth().min(count)).for_each(|_| self.changed.notify_one());
    }

    /// The command has read `block` itself; withdraws the read unless it has begun. Returns whether it did.
    pub fn cancel(&self, block: Block) -> bool {
        self.lock().queue.cancel(block)
    }

    /// Allows `pages` more pages of holes.
    pub fn allow_holes(&self, pages: u64) {
        self.lock().queue.allow_holes(pages);
    }

    /// See [`Queue::slow`].
    pub fn slow(&self, halvings: u32) {
        let may_begin = self.lock().queue.slow(halvings);
        self.wake(may_begin);
    }

    /// See [`Queue::limit`].
    pub fn limit(&self, reads: usize, pages: u64) {
        let may_begin = self.lock().queue.limit(reads, pages);
        self.wake(may_begin);
    }

    /// Wakes threads only if they may start something: both limits are set in every turn, and a useless wake-up takes
    /// time from the command.
    fn wake(&self, may_begin: bool) {
        if may_begin {
            self.changed.notify_all();
        }
    }

    /// Starts no more reads.
    pub fn stop(&self) {
        self.lock().stopped = true;
        self.changed.notify_all();
    }

    /// Whether nothing is in flight.
    pub fn is_idle(&self) -> bool {
        self.lock().queue.is_idle()
    }

    /// Whether nothing is in flight or waiting.
    pub fn has_nothing_to_do(&self) -> bool {
        let queue = &self.lock().queue;
        queue.is_idle() && queue.is_empty()
    }

    /// Waits for the next piece of work. `None` when the disk has been stopped.
    fn next(&self) -> Option<Work> {
        let mut state = self.lock();
        loop {
            if state.stopped {
                return None;
            }
            let work = state.queue.choose();
            if work.is_some() {
                return work;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// The loop of one thread, until the disk is stopped. `tell` wakes the receiver of `done`.
    pub fn serve(&self, done: &Sender<Done>, tell: &dyn Fn()) {
        lower_io_priority(self.facts.idle_class);
        let mut reader = Reader::default();
        while let Some(work) = self.next() {
            match work {
                Work::Place(file, blocks) => {
                    if let Some(said) = self.place(file, blocks) {
                        let _ = done.send(said);
                    }
                    self.changed.notify_all();
                }
                Work::Read(piece, metadata) => {
                    for said in reader.read(&self.list, &piece) {
                        let _ = done.send(said);
                    }
                    self.lock().queue.read(metadata);
                    // After a read of a file, this thread itself starts the next one; others wait for metadata.
                    if metadata {
                        self.changed.notify_all();
                    }
                }
            }
            tell();
        }
    }

    /// Finds the places of `blocks`, and queues those that are stored. Returns the others.
    fn place(&self, file: u32, blocks: Vec<(Block, u64)>) -> Option<Done> {
        let hinted = &self.list.files[file as usize];
        let opened = open_unchanged(hinted);
        let end = blocks.iter().map(|(_, page)| (page + 1) * PAGE_BYTES).max().unwrap_or(0);
        let found = opened.as_ref().map(|opened| extents(opened, end));
        let others = self.lock().queue.place(file, blocks, |page| match found.as_ref()? {
            None => Some(page),
            Some(extents) => address(extents, page),
        });
        let why = if found.is_some() { Why::Hole } else { Why::not_opened(hinted) };
        (!others.is_empty()).then_some(Done::Unneeded(others, why))
    }
}

/// The page of the device that holds page `page` of the file; `None` in a hole.
#[must_use]
pub fn address(extents: &[super::system::Extent], page: u64) -> Option<u64> {
    let at = page * PAGE_BYTES;
    let after = extents.partition_point(|extent| extent.logical <= at);
    let extent = extents[..after].last().filter(|extent| extent.stored && at - extent.logical < extent.length)?;
    Some((extent.physical + (at - extent.logical)) / PAGE_BYTES)
}

/// Opens a file if it is the recorded one, unchanged. Opens nothing else: a pipe has another end, and opening some
/// devices has effects.
#[must_use]
pub fn open_unchanged(hinted: &HintedFile) -> Option<File> {
    let changed = || io::Error::from(io::ErrorKind::NotFound);
    let opened = open_checked(&hinted.path, |found| is_unchanged(found, hinted).then_some(()).ok_or_else(changed));
    opened.ok().inspect(keep_access_time)
}

/// Keeps reads from changing the file's access time, where that is allowed.
pub fn keep_access_time(file: &File) {
    let _ = fcntl(file, FcntlArg::F_SETFL(OFlag::O_NOATIME | OFlag::O_NONBLOCK));
}

fn is_unchanged(found: &fs::Metadata, hinted: &HintedFile) -> bool {
    let (_, inode) = hinted.identity;
    if hinted.is_device {
        let (major, minor) = (nix::sys::stat::major(found.rdev()), nix::sys::stat::minor(found.rdev()));
        return found.file_type().is_block_device() && device_number(major, minor) == inode;
    }
    let changed_ns = i128::from(found.mtime()) * 1_000_000_000 + i128::from(found.mtime_nsec());
    found.is_file()
        && found.ino() == inode
        && hinted.size.is_none_or(|size| size == found.len())
        && hinted.mtime_ns.is_none_or(|ns| ns == changed_ns)
}

/// The data itself is not needed, so a thread needs only a small buffer.
const ROOM_BYTES: usize = 64 << 10;

/// A thread's tools for reading: the file that it read last, and a buffer.
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
            self.room.resize(ROOM_BYTES, 0);
            let begun = begin();
            let read = read_whole(file, &mut self.room, first * PAGE_BYTES, length);
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

/// Reads `length` bytes, or up to the end of the file, reusing `room`. Returns the bytes read.
fn read_whole(file: &File, room: &mut [u8], offset: u64, length: u64) -> u64 {
    let mut read = 0;
    while read < length {
        match read_over(file, room, offset + read, length - read) {
            Ok(0) => break,
            Ok(bytes) => read += bytes,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    read
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_needs_little_room_and_ends_with_the_file() {
        let path = std::env::temp_dir().join(format!("headstart-read-over-{}", std::process::id()));
        let content: Vec<u8> = (0..200_000u32).map(|at| (at / 1000) as u8).collect();
        fs::write(&path, &content).expect("there is room");
        let file = File::open(&path).expect("ours");
        let mut room = vec![0; ROOM_BYTES];
        assert_eq!(read_whole(&file, &mut room, 0, 1 << 20), 200_000);
        // The last part overwrites the earlier ones.
        let last = content.len() / ROOM_BYTES * ROOM_BYTES;
        assert_eq!(room[..content.len() - last], content[last..]);
        assert_eq!(read_whole(&file, &mut room, 199_000, 4096), 1000);
        assert_eq!(read_whole(&file, &mut room, 1 << 30, 4096), 0);
        fs::remove_file(&path).expect("ours");
    }

    #[test]
    fn only_the_recorded_device_is_opened() {
        // Not a disk, and a disk with another number.
        for (path, number) in [("/dev/null", device_number(1, 3)), ("/proc/self/exe", 0), ("/dev", device_number(8, 0))]
        {
            let file = HintedFile {
                path: path.into(),
                identity: (0, number),
                is_device: true,
                size: None,
                mtime_ns: None,
                came_pages: 0,
            };
            assert!(open_unchanged(&file).is_none(), "{path}");
        }
    }
}
