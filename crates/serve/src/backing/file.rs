//! A regular file or a block device.

use std::fs::{File, OpenOptions};
use std::io::{self, IoSliceMut, Seek, SeekFrom};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, FileTypeExt, OpenOptionsExt};
use std::path::Path;

use bytes::BytesMut;
use headstart_nbd::Extent;
use nix::errno::Errno;
use nix::fcntl::{fallocate, posix_fadvise, FallocateFlags, OFlag, PosixFadviseAdvice};
use nix::sys::uio::preadv;
use nix::unistd::{lseek, Whence};

use rustix::io::{preadv2, ReadWriteFlags};

use super::{file_identity, Backing};

/// Buffers of one system call at most, as the system has it.
const BUFFERS_MAX: usize = 1024;
/// Bytes of a read that is tried without a thread: what one reply, or one read ahead, mostly has.
const AT_ONCE_BYTES_MAX: usize = 1 << 20;
/// Bytes of zeroes written at a time where the file system cannot make them.
const ZEROES: usize = 1 << 20;

/// A file or device.
pub struct FileBacking {
    file: File,
    /// The same file, for reads that pass the page cache. The kernel writes back what it covers before it reads.
    direct: Option<File>,
    size_bytes: u64,
    /// Holes can be told from data.
    sparse: bool,
}

impl FileBacking {
    /// Opens the file at `path`. With `direct` reads pass the page cache: offsets and buffers are then multiples of 4096.
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
        let direct = direct.then(unbuffered).transpose()?;
        Ok(Self { file, direct, size_bytes, sparse: kind.is_file() })
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
        let file = self.direct.as_ref().unwrap_or(&self.file);
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

    fn reads_at_once(&self) -> bool {
        self.direct.is_none()
    }

    /// What the page cache has: a thread's wake-up costs more than a short copy.
    fn read_at_once(&self, offset: u64, buffers: &mut [BytesMut]) -> bool {
        let bytes: usize = buffers.iter().map(|buffer| buffer.len()).sum();
        if self.direct.is_some() || bytes > AT_ONCE_BYTES_MAX || offset + bytes as u64 > self.size_bytes {
            return false;
        }
        let mut slices: Vec<IoSliceMut<'_>> = buffers.iter_mut().map(|buffer| IoSliceMut::new(buffer)).collect();
        // Not all of it, or a file system that cannot say: a thread reads it, and finds the fault if there is one.
        preadv2(&self.file, &mut slices, offset, ReadWriteFlags::NOWAIT) == Ok(bytes)
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

#[cfg(test)]
mod tests {
    use super::*;

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
