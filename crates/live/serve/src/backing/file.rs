//! A regular file or a block device.
//!
//! Data in the kernel's page cache is copied from there. Other reads go from the device straight into this cache's
//! pages (`O_DIRECT`): going through the page cache takes as much processor time again and keeps a second copy. That
//! copy only helps if a page that was evicted here is read again. Therefore a short read, which is mostly at a random
//! place, uses the page cache from the second time that its first page is read. All reads of a writable file use it,
//! since written data stays in the page cache for a while.

use std::borrow::Cow;
use std::fs::{File, OpenOptions};
use std::io::{self, IoSliceMut, Seek, SeekFrom};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, FileTypeExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;

use bytes::BytesMut;
use headstart_host::page_cache::PageCache;
use headstart_host::Roots;
use headstart_nbd::{Extent, EXTENTS_MAX};
use headstart_tune::Device;
use headstart_types::system_says;
use nix::errno::Errno;
use nix::fcntl::{fallocate, posix_fadvise, FallocateFlags, OFlag, PosixFadviseAdvice};
use nix::sys::uio::preadv;
use nix::unistd::{lseek, Whence};

use rustix::io::{preadv2, ReadWriteFlags};

use super::joined::{join, BUFFERS_MAX};
use super::locks::Locked;
use super::looks::{Touched, Trust};
use super::{file_identity, forms, length_of, About, Backing, Kind, NonBlockingRead};
use crate::change::Change;
use crate::settings::Settings;

/// Maximum bytes of a read that is tried without a thread: most replies and read-aheads are no longer.
const AT_ONCE_BYTES_MAX: usize = 1 << 20;
/// Reads from this size on always bypass the page cache: they belong to a stream far longer than the cache.
const LONG_BYTES_MIN: usize = 128 << 10;
/// Offsets, lengths and buffers of direct reads are multiples of this, which suits every device.
const ALIGNMENT: usize = 4096;
/// Bytes of zeroes per write if the file system cannot zero a range.
const ZEROES: usize = 1 << 20;
const PUNCH: FallocateFlags = FallocateFlags::FALLOC_FL_PUNCH_HOLE;

pub(super) const KIND: Kind = Kind {
    schemes: &[],
    forms: &[
        ("a file", "a regular file, by its path"),
        ("a block device", "a disk, a partition or a volume, by its path"),
    ],
    can_write: true,
    can_bypass: true,
    open: |opening| {
        let Settings { writable, direct, no_lock, .. } = *opening.settings;
        let opened = FileBacking::open(opening.name.as_ref(), writable, direct, !no_lock);
        let wanted = || match (writable, direct) {
            (true, _) => "a file or a block device that can be written".into(),
            (false, true) => "a file or a block device that can be read without the page cache (O_DIRECT)".into(),
            (false, false) => Cow::Owned(forms()),
        };
        Ok(Box::new(opened.map_err(|error| match error.kind() {
            io::ErrorKind::ResourceBusy => opening.refused(error.to_string(), "a backing of its own, or --no-lock"),
            _ => opening.refused(system_says(&error), wanted()),
        })?))
    },
};

pub struct FileBacking {
    file: Arc<File>,
    _lock: Option<Locked>,
    /// The same file opened for direct reads. The kernel writes back dirty pages of a range before it reads the range
    /// directly.
    direct: Option<Arc<File>>,
    /// All reads are direct.
    always_direct: bool,
    page_cache: Option<PageCache>,
    trust: Trust,
    touched: Touched,
    /// The kernel's read-ahead of the device.
    device_read_ahead_bytes: Option<u64>,
    size_bytes: u64,
    /// The file system can tell holes from data.
    sparse: bool,
}

impl FileBacking {
    /// Opens the file at `path`. With `direct`, all reads bypass the page cache; offsets and buffers must then be
    /// multiples of 4096. With `locked`, the file is locked against other programs in the same way as QEMU does.
    ///
    /// # Errors
    /// It cannot be opened in this way, or is neither a file nor a block device.
    pub fn open(path: &Path, writable: bool, direct: bool, locked: bool) -> io::Result<Self> {
        let file = Arc::new(OpenOptions::new().read(true).write(writable).open(path)?);
        let kind = file.metadata()?.file_type();
        if !kind.is_file() && !kind.is_block_device() {
            let what = if kind.is_dir() { "is a directory" } else { "is neither a file nor a block device" };
            return Err(io::Error::other(what));
        }
        let lock = locked.then(|| Locked::try_new(&file, writable)).transpose()?;
        let size_bytes = (&*file).seek(SeekFrom::End(0))?;
        // This cache does the reading ahead; the kernel's would come on top of it.
        let _ = posix_fadvise(&file, 0, 0, PosixFadviseAdvice::POSIX_FADV_RANDOM);
        let unbuffered = || OpenOptions::new().read(true).custom_flags(OFlag::O_DIRECT.bits()).open(path);
        let (always_direct, direct) = match (direct, writable) {
            (true, _) => (true, Some(Arc::new(unbuffered()?))),
            (false, true) => (false, None),
            (false, false) => (false, unbuffered().ok().filter(takes_direct_reads).map(Arc::new)),
        };
        let page_cache = PageCache::of(&file, size_bytes).ok();
        let device_read_ahead = Device::of(&Roots::of_machine(), path).and_then(|device| device.read_ahead_kb());
        Ok(Self {
            file,
            _lock: lock,
            direct,
            always_direct,
            page_cache,
            trust: Trust::default(),
            touched: Touched::new(size_bytes.div_ceil(ALIGNMENT as u64)),
            device_read_ahead_bytes: device_read_ahead.ok().map(|kib| kib << 10),
            size_bytes,
            sparse: kind.is_file(),
        })
    }

    /// The file for a direct read into `buffers`, if that is possible.
    fn direct_for(&self, offset: u64, buffers: &[BytesMut]) -> Option<&Arc<File>> {
        let is_aligned =
            |buffer: &BytesMut| buffer.len().is_multiple_of(ALIGNMENT) && buffer.as_ptr().align_offset(ALIGNMENT) == 0;
        let fits = || offset.is_multiple_of(ALIGNMENT as u64) && buffers.iter().all(is_aligned);
        self.direct.as_ref().filter(|_| self.always_direct || fits())
    }

    /// Whether a short read uses the page cache: its first page is there, or was read before.
    fn is_for_page_cache(&self, offset: u64) -> bool {
        let Some(page_cache) = &self.page_cache else { return true };
        page_cache.has(offset) || !self.touched.is_first(offset / ALIGNMENT as u64)
    }

    /// The file that io_uring can fill `buffers` from, and whether to try the page cache first, as the read bypasses
    /// it.
    fn ring_file(&self, offset: u64, buffers: &[BytesMut]) -> Option<(Arc<File>, bool)> {
        if buffers.len() > BUFFERS_MAX {
            return None;
        }
        let passes =
            || self.always_direct || is_long(buffers) || !buffers.is_empty() && !self.is_for_page_cache(offset);
        let direct = self.direct_for(offset, buffers).filter(|_| passes());
        let tries_page_cache = direct.is_some() && is_long(buffers) && !self.always_direct;
        Some((direct.unwrap_or(&self.file).clone(), tries_page_cache))
    }

    /// Fills `buffers` from the page cache if it holds all of them: waking a thread costs more than a short copy.
    fn copies_cached(&self, offset: u64, buffers: &mut [BytesMut]) -> bool {
        if self.always_direct || length_of(buffers) > AT_ONCE_BYTES_MAX {
            return false;
        }
        // On a partial hit, an error, or a file system without support, a thread reads it and reports any error.
        if !is_long(buffers) || self.direct_for(offset, buffers).is_none() {
            return self.read_cached(offset, buffers);
        }
        if !self.page_cache.as_ref().is_some_and(|cache| cache.has(offset)) || !self.trust.tries() {
            return false;
        }
        let found = self.read_cached(offset, buffers);
        self.trust.tried(found);
        found
    }

    /// Whether `buffers` could be filled from the page cache.
    fn read_cached(&self, offset: u64, buffers: &mut [BytesMut]) -> bool {
        let bytes = length_of(buffers);
        let mut slices: Vec<IoSliceMut<'_>> = buffers.iter_mut().map(|buffer| IoSliceMut::new(buffer)).collect();
        preadv2(&*self.file, &mut slices, offset, ReadWriteFlags::NOWAIT) == Ok(bytes)
    }

    /// Fills `buffers` from `file`, with zeroes beyond the end.
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
                // The file was truncated.
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

    fn zero(&self, offset: u64, length: u64, no_hole: bool) -> io::Result<()> {
        let how = if no_hole { FallocateFlags::FALLOC_FL_ZERO_RANGE } else { PUNCH };
        if self.allocate(how, offset, length).is_err() {
            let zeroes = vec![0; ZEROES.min(length as usize)];
            let mut at = offset;
            while at < offset + length {
                let part = (offset + length - at).min(ZEROES as u64);
                self.file.write_all_at(&zeroes[..part as usize], at)?;
                at += part;
            }
        }
        Ok(())
    }

    /// Changes the allocation of a range but not the size of the file.
    fn allocate(&self, how: FallocateFlags, offset: u64, length: u64) -> Result<(), Errno> {
        let flags = how | FallocateFlags::FALLOC_FL_KEEP_SIZE;
        fallocate(self.file.as_fd(), flags, offset as i64, length as i64)
    }

    /// The end of the extent at `offset`, and whether it is a hole.
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
    fn about(&self) -> About {
        About {
            reads_at_once: !self.always_direct,
            device_read_ahead_bytes: self.device_read_ahead_bytes,
            identity: self.file.metadata().ok().and_then(|file| file_identity(&file)),
            ..About::of(self.size_bytes)
        }
    }

    fn read(&self, offset: u64, buffers: &mut [BytesMut]) -> io::Result<()> {
        if let Some(direct) = self.direct_for(offset, buffers).filter(|_| self.always_direct || is_long(buffers)) {
            let (mut joined, joints) = join(buffers.iter_mut().map(std::mem::take).collect());
            let read = self.read_from(direct, offset, &mut joined);
            buffers.iter_mut().zip(joints.part(joined)).for_each(|(buffer, part)| *buffer = part);
            // If the device refuses this read although the trial succeeded, read through the page cache.
            if self.always_direct || !read.as_ref().is_err_and(is_refused) {
                return read;
            }
        }
        self.read_from(&self.file, offset, buffers)
    }

    fn try_read(&self, offset: u64, buffers: &mut [BytesMut], has_ring: bool) -> NonBlockingRead {
        // A thread handles reads beyond the end, which have to be zero-filled.
        if offset + length_of(buffers) as u64 > self.size_bytes {
            return NonBlockingRead::Waits;
        }
        let file = if has_ring { self.ring_file(offset, buffers) } else { None };
        // A buffered io_uring read takes cached data by itself.
        let passes = file.as_ref().is_none_or(|(_, tries_page_cache)| *tries_page_cache);
        if passes && self.copies_cached(offset, buffers) {
            return NonBlockingRead::Done;
        }
        file.map_or(NonBlockingRead::Waits, |(file, _)| NonBlockingRead::Ring(file))
    }

    fn change(&self, change: &Change) -> io::Result<()> {
        match change {
            Change::Write { offset, data, .. } => self.file.write_all_at(data, *offset)?,
            Change::Trim { offset, length, .. } => match self.allocate(PUNCH, *offset, *length) {
                Ok(()) => {}
                // A trim is only a hint: if it is not supported, the bytes stay.
                Err(Errno::EOPNOTSUPP | Errno::EINVAL | Errno::ENODEV) => return Ok(()),
                Err(errno) => return Err(errno.into()),
            },
            Change::Zero { offset, length, no_hole, .. } => self.zero(*offset, *length, *no_hole)?,
            Change::Flush => return self.file.sync_data(),
            // After a failed write-back, the page cache holds the lost pages and considers them clean.
            Change::Renew => _ = posix_fadvise(&self.file, 0, 0, PosixFadviseAdvice::POSIX_FADV_DONTNEED),
        }
        if change.is_fua() {
            self.file.sync_data()?;
        }
        Ok(())
    }

    fn extents(&self, offset: u64, length: u32) -> io::Result<Vec<Extent>> {
        let (mut at, end) = (offset, offset + u64::from(length));
        let mut extents = Vec::new();
        while at < end && extents.len() < EXTENTS_MAX {
            let (until, hole) = if self.sparse { self.extent_at(at).unwrap_or((end, false)) } else { (end, false) };
            let until = until.clamp(at + 1, end);
            extents.push(Extent { length: (until - at) as u32, hole, zero: hole });
            at = until;
        }
        Ok(extents)
    }
}

/// Whether the file system and the device support direct reads.
fn takes_direct_reads(file: &File) -> bool {
    let mut room = [0; 2 * ALIGNMENT];
    let start = room.as_ptr().align_offset(ALIGNMENT);
    !file.read_at(&mut room[start..][..ALIGNMENT], 0).as_ref().is_err_and(is_refused)
}

/// Whether the error refuses this way of reading and says nothing about the file.
fn is_refused(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::EINVAL as i32)
}

fn is_long(buffers: &[BytesMut]) -> bool {
    length_of(buffers) >= LONG_BYTES_MIN
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffers::Buffers;

    #[test]
    fn a_long_read_is_the_same_by_every_way() {
        let path = std::env::temp_dir().join(format!("headstart-serve-long-{}", std::process::id()));
        let bytes: Vec<u8> = (0..(1_u32 << 20) + 5000).map(|at| (at / 7 % 251) as u8).collect();
        std::fs::write(&path, &bytes).expect("a temporary file");
        let [past, through] = [false, true].map(|writable| FileBacking::open(&path, writable, false, false));
        std::fs::remove_file(&path).expect("it is there");
        let mut buffers = Buffers::new(4096).take_run(258);
        let is_right = |buffers: &[BytesMut]| {
            let read = buffers.concat();
            read[..bytes.len()] == bytes && read[bytes.len()..].iter().all(|byte| *byte == 0)
        };
        for backing in [past, through] {
            let backing = backing.expect("it can be opened");
            buffers.iter_mut().for_each(|buffer| buffer.fill(9));
            backing.read(0, &mut buffers).expect("it can be read");
            assert!(is_right(&buffers));
        }
    }

    #[test]
    fn a_short_read_is_kept_by_the_page_cache_when_it_comes_again() {
        let path = std::env::temp_dir().join(format!("headstart-serve-short-{}", std::process::id()));
        std::fs::write(&path, vec![5; 1 << 20]).expect("a temporary file");
        let file = OpenOptions::new().write(true).open(&path).expect("it is there");
        let [read_only, writable] =
            [false, true].map(|writable| FileBacking::open(&path, writable, false, false).expect("it can be opened"));
        std::fs::remove_file(&path).expect("it is there");
        let pages = Buffers::new(4096).take_run(64);
        let is_direct = |backing: &FileBacking, page: u64, count: usize| {
            let (file, tries) = backing.ring_file(page * 4096, &pages[..count]).expect("io_uring can read it");
            (!Arc::ptr_eq(&file, &backing.file), tries)
        };
        assert_eq!(is_direct(&read_only, 3, 1), (false, false), "it is in the page cache");
        file.sync_all().expect("it can be written back");
        posix_fadvise(&file, 0, 0, PosixFadviseAdvice::POSIX_FADV_DONTNEED).expect("it can be forgotten");
        if read_only.direct.is_none() || read_only.page_cache.as_ref().is_none_or(|cache| cache.has(3 * 4096)) {
            eprintln!("SKIPPED: the file system keeps its files in memory");
            return;
        }
        assert_eq!([(); 3].map(|()| is_direct(&read_only, 3, 1).0), [true, false, false]);
        assert_eq!([(); 2].map(|()| is_direct(&read_only, 4, 2).0), [true, false]);
        // A long read is always direct, and tries the page cache first.
        assert_eq!([(); 2].map(|()| is_direct(&read_only, 64, 32)), [(true, true); 2]);
        assert_eq!(is_direct(&writable, 9, 1), (false, false));
    }

    #[test]
    fn a_sparse_file_of_odd_length() {
        let path = std::env::temp_dir().join(format!("headstart-serve-{}", std::process::id()));
        let file = File::create(&path).expect("a temporary file");
        file.set_len((1 << 20) + 100).expect("it can be made longer");
        file.write_all_at(b"head", 0).expect("it can be written");
        file.write_all_at(b"tail", (1 << 20) + 96).expect("it can be written");
        let backing = FileBacking::open(&path, true, false, true).expect("it can be opened");
        std::fs::remove_file(&path).expect("it is there");
        assert_eq!(backing.about().size_bytes, (1 << 20) + 100);
        let read = |offset, count| {
            let mut buffers = vec![BytesMut::from(&[7; 4096][..]); count];
            backing.read(offset, &mut buffers).map(|()| buffers.concat())
        };
        let bytes = read((1 << 20) - 4096, 3).expect("it can be read");
        assert_eq!((&bytes[4096 + 96..][..4], bytes.iter().filter(|byte| **byte != 0).count()), (&b"tail"[..], 4));
        let write = Change::Write { offset: 4090, data: b"0123456789".to_vec(), fua: true };
        backing.change(&write).expect("it can be written");
        assert_eq!(&read(0, 2).expect("it can be read")[4090..4100], b"0123456789");
        let zero = Change::Zero { offset: 4092, length: 5, no_hole: true, fua: false };
        backing.change(&zero).expect("it can be zeroed");
        assert_eq!(&read(0, 2).expect("it can be read")[4090..4100], b"01\x00\x00\x00\x00\x00789");
        let all = backing.extents(0, 1 << 20).expect("it is known");
        assert_eq!(all.iter().map(|extent| extent.length).sum::<u32>(), 1 << 20);
        backing.file.set_len(4096).expect("it can be made shorter");
        assert_eq!(read(8192, 1).expect_err("it is gone").kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn a_thousand_extents_are_told_at_once() {
        let path = std::env::temp_dir().join(format!("headstart-serve-extents-{}", std::process::id()));
        let file = File::create(&path).expect("a temporary file");
        file.set_len(2048 * 8192).expect("it can be made longer");
        for piece in 0..2048 {
            file.write_all_at(b"x", piece * 8192).expect("it can be written");
        }
        let backing = FileBacking::open(&path, true, false, true).expect("it can be opened");
        std::fs::remove_file(&path).expect("it is there");
        let told = backing.extents(0, 2048 * 8192).expect("it is known").len();
        assert!(told == 1024 || told == 1, "{told} extents; one where the file system has no holes");
    }
}
