//! A regular file or a block device.
//!
//! What the kernel's page cache holds is copied from there. A long read of what it does not hold goes to the device straight into the pages
//! of this cache (`O_DIRECT`): the way through the page cache costs as much processor time again, and keeps a second copy. Whether
//! the page cache holds a range shows only when it is read, and the kernel then begins to fetch what is missing. So where it has held nothing,
//! it is tried ever more rarely, with a single page first. Short reads always take the page cache, and so do all reads of a file that is written here, as what
//! has been written stays in the page cache for a while.

use std::fs::{File, OpenOptions};
use std::io::{self, IoSliceMut, Seek, SeekFrom};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, FileTypeExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::Arc;

use bytes::BytesMut;
use headstart_live::tune::{Device, Roots};
use headstart_nbd::Extent;
use nix::errno::Errno;
use nix::fcntl::{fallocate, posix_fadvise, FallocateFlags, OFlag, PosixFadviseAdvice};
use nix::sys::uio::preadv;
use nix::unistd::{lseek, Whence};

use rustix::io::{preadv2, ReadWriteFlags};

use super::joined::{join, BUFFERS_MAX};
use super::{file_identity, Backing, RingRead};

/// Bytes of a read that is tried without a thread: what one reply, or one read ahead, mostly has.
const AT_ONCE_BYTES_MAX: usize = 1 << 20;
/// The least read that passes the page cache: shorter ones are mostly at random places, and may come again.
const DIRECT_BYTES_MIN: usize = 128 << 10;
/// Offsets, lengths and buffers of such reads are multiples of this on every device.
const ALIGNMENT: usize = 4096;
/// Reads that go without a look into the page cache, at most, after one that has found nothing: a file that comes into it later is found
/// within 64 MiB of a stream, and what a look fetches in vain is a page in 64 MiB.
const UNTRIED_MAX: u32 = 64;
/// Bytes of zeroes written at a time where the file system cannot make them.
const ZEROES: usize = 1 << 20;

/// A file or device.
pub struct FileBacking {
    file: Arc<File>,
    /// The same file, for reads that pass the page cache. The kernel writes back what it covers before it reads.
    direct: Option<Arc<File>>,
    /// All reads do.
    always_direct: bool,
    /// The device does not take such reads after all.
    direct_refused: AtomicBool,
    page_cache: PageCache,
    /// What the kernel reads ahead of the device.
    device_read_ahead_bytes: Option<u64>,
    size_bytes: u64,
    /// Holes can be told from data.
    sparse: bool,
}

/// Whether a look into the page cache is worth it, by what the last long reads have found there.
#[derive(Debug, Default)]
struct PageCache {
    /// Reads that go without a look after the next miss; 0 after a hit.
    pause: AtomicU32,
    /// Reads that still do.
    untried: AtomicU32,
}

/// How a read looks into the page cache.
#[derive(Debug, PartialEq, Eq)]
enum Look {
    No,
    /// At its first page, then at all of it.
    First,
    /// At all of it.
    All,
}

impl PageCache {
    /// How the next long read looks.
    fn look(&self) -> Look {
        let untried = self.untried.load(Ordering::Relaxed);
        if untried > 0 {
            self.untried.store(untried - 1, Ordering::Relaxed);
            return Look::No;
        }
        if self.pause.load(Ordering::Relaxed) == 0 {
            Look::All
        } else {
            Look::First
        }
    }

    /// What came of a look.
    fn found(&self, found: bool) {
        let pause = if found { 0 } else { (self.pause.load(Ordering::Relaxed) * 2).clamp(1, UNTRIED_MAX) };
        self.pause.store(pause, Ordering::Relaxed);
        self.untried.store(pause, Ordering::Relaxed);
    }
}

impl FileBacking {
    /// Opens the file at `path`. With `direct` all reads pass the page cache: offsets and buffers are then multiples of 4096.
    ///
    /// # Errors
    /// It cannot be opened so, or is no file and no block device.
    pub fn open(path: &Path, writable: bool, direct: bool) -> io::Result<Self> {
        let mut file = OpenOptions::new().read(true).write(writable).open(path)?;
        let kind = file.metadata()?.file_type();
        if !kind.is_file() && !kind.is_block_device() {
            let what = if kind.is_dir() { "is a directory" } else { "is neither a file nor a block device" };
            return Err(io::Error::other(what));
        }
        let size_bytes = file.seek(SeekFrom::End(0))?;
        // What is read ahead is decided here; the kernel's own would come on top of it.
        let _ = posix_fadvise(&file, 0, 0, PosixFadviseAdvice::POSIX_FADV_RANDOM);
        let unbuffered = || OpenOptions::new().read(true).custom_flags(OFlag::O_DIRECT.bits()).open(path);
        let (always_direct, direct) = match (direct, writable) {
            (true, _) => (true, Some(Arc::new(unbuffered()?))),
            (false, true) => (false, None),
            (false, false) => (false, unbuffered().ok().map(Arc::new)),
        };
        let device_read_ahead = Device::of(&Roots::of_machine(), path).and_then(|device| device.read_ahead_kb());
        Ok(Self {
            file: Arc::new(file),
            direct,
            always_direct,
            direct_refused: AtomicBool::new(false),
            page_cache: PageCache::default(),
            device_read_ahead_bytes: device_read_ahead.ok().map(|kib| kib << 10),
            size_bytes,
            sparse: kind.is_file(),
        })
    }

    /// The file that a read into `buffers` passes the page cache by, if it does.
    fn direct_for(&self, offset: u64, buffers: &[BytesMut]) -> Option<&Arc<File>> {
        let direct = self.direct.as_ref()?;
        if self.always_direct {
            return Some(direct);
        }
        let is_aligned =
            |buffer: &BytesMut| buffer.len() % ALIGNMENT == 0 && buffer.as_ptr().align_offset(ALIGNMENT) == 0;
        let fits = offset % ALIGNMENT as u64 == 0
            && length_of(buffers) >= DIRECT_BYTES_MIN
            && !self.direct_refused.load(Ordering::Relaxed)
            && buffers.iter().all(is_aligned);
        fits.then_some(direct)
    }

    /// Whether the page cache has had what fills `buffers`.
    fn read_cached(&self, offset: u64, buffers: &mut [BytesMut]) -> bool {
        let bytes = length_of(buffers);
        let mut slices: Vec<IoSliceMut<'_>> = buffers.iter_mut().map(|buffer| IoSliceMut::new(buffer)).collect();
        preadv2(&*self.file, &mut slices, offset, ReadWriteFlags::NOWAIT) == Ok(bytes)
    }

    /// Fills `buffers` from `file`; beyond the end there are zeroes.
    fn read_from(&self, file: &File, offset: u64, buffers: &mut [BytesMut]) -> io::Result<()> {
        let (mut at, mut next, mut within) = (offset, 0, 0);
        while next < buffers.len() && at < self.size_bytes {
            let mut slices: Vec<IoSliceMut<'_>> =
                buffers[next..].iter_mut().take(BUFFERS_MAX).map(|buffer| IoSliceMut::new(buffer)).collect();
            slices[0].advance(within);
            let read = match preadv(file, &mut slices, at as i64) {
                Err(Errno::EINTR) => continue,
                read => read?,
            };
            if read == 0 {
                // It has become shorter.
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            at += read as u64;
            within += read;
            while next < buffers.len() && within >= buffers[next].len() {
                within -= buffers[next].len();
                next += 1;
            }
        }
        if let Some((first, others)) = buffers[next..].split_first_mut() {
            first[within..].fill(0);
            others.iter_mut().for_each(|buffer| buffer.fill(0));
        }
        Ok(())
    }

    fn sync_if(&self, fua: bool) -> io::Result<()> {
        if fua {
            self.file.sync_data()
        } else {
            Ok(())
        }
    }

    fn allocate(&self, flags: FallocateFlags, offset: u64, length: u64) -> Result<(), Errno> {
        fallocate(self.file.as_fd(), flags, offset as i64, length as i64)
    }

    /// The extent at `offset`: where it ends, and whether it is a hole.
    fn extent_at(&self, offset: u64) -> Result<(u64, bool), Errno> {
        let seek = |whence| match lseek(self.file.as_fd(), offset as i64, whence) {
            // No more data: a hole up to the end.
            Err(Errno::ENXIO) => Ok(self.size_bytes),
            other => other.map(|at| at as u64),
        };
        let data = seek(Whence::SeekData)?;
        if data > offset {
            return Ok((data, true));
        }
        Ok((seek(Whence::SeekHole)?, false))
    }
}

impl Backing for FileBacking {
    fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    fn read(&self, offset: u64, buffers: &mut [BytesMut]) -> io::Result<()> {
        if let Some(direct) = self.direct_for(offset, buffers) {
            let (mut joined, joints) = join(buffers.iter_mut().map(std::mem::take).collect());
            let read = self.read_from(direct, offset, &mut joined);
            buffers.iter_mut().zip(joints.part(joined)).for_each(|(buffer, part)| *buffer = part);
            let is_refused = |error: &io::Error| error.raw_os_error() == Some(Errno::EINVAL as i32);
            if self.always_direct || !read.as_ref().is_err_and(is_refused) {
                return read;
            }
            self.direct_refused.store(true, Ordering::Relaxed);
        }
        self.read_from(&self.file, offset, buffers)
    }

    fn reads_at_once(&self) -> bool {
        !self.always_direct
    }

    /// What the page cache has: a thread's wake-up costs more than a short copy.
    fn read_at_once(&self, offset: u64, buffers: &mut [BytesMut]) -> bool {
        let bytes = length_of(buffers);
        if self.always_direct || bytes > AT_ONCE_BYTES_MAX || offset + bytes as u64 > self.size_bytes {
            return false;
        }
        // Not all of it, or a file system that cannot say: a thread reads it, and finds the fault if there is one.
        if self.direct_for(offset, buffers).is_none() {
            return self.read_cached(offset, buffers);
        }
        let look = self.page_cache.look();
        if look == Look::No {
            return false;
        }
        let found =
            (look == Look::All || self.read_cached(offset, &mut buffers[..1])) && self.read_cached(offset, buffers);
        self.page_cache.found(found);
        found
    }

    fn ring_read(&self, offset: u64, buffers: &[BytesMut]) -> Option<RingRead> {
        // What lies beyond the end is zeroed by a thread.
        if offset + length_of(buffers) as u64 > self.size_bytes || buffers.len() > BUFFERS_MAX {
            return None;
        }
        let direct = self.direct_for(offset, buffers);
        Some(RingRead { file: direct.unwrap_or(&self.file).clone(), is_direct: direct.is_some() })
    }

    fn device_read_ahead_bytes(&self) -> Option<u64> {
        self.device_read_ahead_bytes
    }

    fn write(&self, offset: u64, data: &[u8], fua: bool) -> io::Result<()> {
        self.file.write_all_at(data, offset)?;
        self.sync_if(fua)
    }

    fn trim(&self, offset: u64, length: u64, fua: bool) -> io::Result<()> {
        // A hint: where it cannot be followed the bytes stay.
        let hole = FallocateFlags::FALLOC_FL_PUNCH_HOLE | FallocateFlags::FALLOC_FL_KEEP_SIZE;
        match self.allocate(hole, offset, length) {
            Ok(()) => self.sync_if(fua),
            Err(Errno::EOPNOTSUPP | Errno::EINVAL | Errno::ENODEV) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }

    fn zero(&self, offset: u64, length: u64, no_hole: bool, fua: bool) -> io::Result<()> {
        let hole = FallocateFlags::FALLOC_FL_PUNCH_HOLE;
        let how = if no_hole { FallocateFlags::FALLOC_FL_ZERO_RANGE } else { hole };
        if self.allocate(how | FallocateFlags::FALLOC_FL_KEEP_SIZE, offset, length).is_err() {
            let zeroes = vec![0; ZEROES.min(length as usize)];
            let mut at = offset;
            while at < offset + length {
                let part = (offset + length - at).min(ZEROES as u64);
                self.file.write_all_at(&zeroes[..part as usize], at)?;
                at += part;
            }
        }
        self.sync_if(fua)
    }

    fn flush(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn identity(&self) -> Option<String> {
        file_identity(&self.file.metadata().ok()?)
    }

    fn extents(&self, offset: u64, length: u32) -> io::Result<Vec<Extent>> {
        let (mut at, end) = (offset, offset + u64::from(length));
        let mut extents = Vec::new();
        while at < end {
            let (until, hole) = if self.sparse { self.extent_at(at).unwrap_or((end, false)) } else { (end, false) };
            let until = until.clamp(at + 1, end);
            extents.push(Extent { length: (until - at) as u32, hole, zero: hole });
            at = until;
        }
        Ok(extents)
    }
}

fn length_of(buffers: &[BytesMut]) -> usize {
    buffers.iter().map(|buffer| buffer.len()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffers::Buffers;

    #[test]
    fn looks_into_the_page_cache_become_rare_where_it_has_nothing() {
        let cache = PageCache::default();
        let mut looks = Vec::new();
        for read in 0..200 {
            let look = cache.look();
            if look != Look::No {
                looks.push(read);
                assert_eq!(look == Look::All, read == 0);
                cache.found(false);
            }
        }
        assert_eq!(looks, [0, 2, 5, 10, 19, 36, 69, 134, 199]);
        let next = (0..).find(|_| cache.look() == Look::First);
        assert_eq!(next, Some(64));
        cache.found(true);
        assert_eq!((cache.look(), cache.look()), (Look::All, Look::All));
    }

    #[test]
    fn a_long_read_is_the_same_by_every_way() {
        let path = std::env::temp_dir().join(format!("headstart-serve-long-{}", std::process::id()));
        let bytes: Vec<u8> = (0..(1_u32 << 20) + 5000).map(|at| (at / 7 % 251) as u8).collect();
        std::fs::write(&path, &bytes).expect("a temporary file");
        let backing = FileBacking::open(&path, false, false).expect("it can be opened");
        std::fs::remove_file(&path).expect("it is there");
        let mut buffers = Buffers::new(4096).take_run(258);
        let is_right = |buffers: &[BytesMut]| {
            let read = buffers.concat();
            read[..bytes.len()] == bytes && read[bytes.len()..].iter().all(|byte| *byte == 0)
        };
        for refused in [false, true] {
            buffers.iter_mut().for_each(|buffer| buffer.fill(9));
            backing.direct_refused.fetch_or(refused, Ordering::Relaxed);
            assert!(!refused || backing.direct_for(0, &buffers).is_none());
            backing.read(0, &mut buffers).expect("it can be read");
            assert!(is_right(&buffers), "refused: {refused}");
        }
        assert!(backing.direct_for(0, &buffers[..8]).is_none(), "a short read");
    }

    #[test]
    fn a_sparse_file_of_odd_length() {
        let path = std::env::temp_dir().join(format!("headstart-serve-{}", std::process::id()));
        let file = File::create(&path).expect("a temporary file");
        file.set_len((1 << 20) + 100).expect("it can be made longer");
        file.write_all_at(b"head", 0).expect("it can be written");
        file.write_all_at(b"tail", (1 << 20) + 96).expect("it can be written");
        let backing = FileBacking::open(&path, true, false).expect("it can be opened");
        std::fs::remove_file(&path).expect("it is there");
        assert_eq!(backing.size_bytes(), (1 << 20) + 100);
        let read = |offset, count| {
            let mut buffers = vec![BytesMut::from(&[7; 4096][..]); count];
            backing.read(offset, &mut buffers).map(|()| buffers.concat())
        };
        let bytes = read((1 << 20) - 4096, 3).expect("it can be read");
        assert_eq!((&bytes[4096 + 96..][..4], bytes.iter().filter(|byte| **byte != 0).count()), (&b"tail"[..], 4));
        backing.write(4090, b"0123456789", true).expect("it can be written");
        assert_eq!(&read(0, 2).expect("it can be read")[4090..4100], b"0123456789");
        backing.zero(4092, 5, true, false).expect("it can be zeroed");
        assert_eq!(&read(0, 2).expect("it can be read")[4090..4100], b"01\x00\x00\x00\x00\x00789");
        let all = backing.extents(0, 1 << 20).expect("it is known");
        assert_eq!(all.iter().map(|extent| extent.length).sum::<u32>(), 1 << 20);
        backing.file.set_len(4096).expect("it can be made shorter");
        assert_eq!(read(8192, 1).expect_err("it is gone").kind(), io::ErrorKind::UnexpectedEof);
    }
}
