//! System calls for the place of a file, its cached pages, I/O priorities, and processes as files.

#![allow(unsafe_code)]

use std::ffi::CStr;
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Instant;

/// Pages of a file that are contiguous on the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// First byte in the file.
    pub logical: u64,
    /// First byte on the device.
    pub physical: u64,
    /// Bytes.
    pub length: u64,
    /// Reads of it need the device.
    pub stored: bool,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct FiemapExtent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved64: [u64; 2],
    flags: u32,
    reserved: [u32; 3],
}

const EXTENTS: usize = 256;

#[repr(C)]
struct Fiemap {
    start: u64,
    length: u64,
    flags: u32,
    mapped_extents: u32,
    extent_count: u32,
    reserved: u32,
    extents: [FiemapExtent; EXTENTS],
}

/// `_IOWR('f', 11, struct fiemap)`, whose size is that of the header.
const FS_IOC_FIEMAP: u64 = 0xC020_660B;
const LAST: u32 = 0x1;
/// Unknown place, not yet allocated, or unwritten (zeros): reads need no device, or an unknown one.
const NOT_STORED: u32 = 0x2 | 0x4 | 0x800;
/// Within metadata, not aligned, or compressed: the place is meaningless.
const INLINE: u32 = 0x200 | 0x400;

/// Reads `length` bytes in one request, at most 1024 times the size of `room`, each part overwriting the previous one:
/// the data is only wanted in the page cache. Returns the bytes read.
pub fn read_over(file: &File, room: &mut [u8], offset: u64, length: u64) -> io::Result<u64> {
    const PARTS_MAX: usize = 1024;
    let (start, bytes) = (room.as_mut_ptr(), room.len());
    let count = (length as usize).div_ceil(bytes).min(PARTS_MAX);
    let part = |at: usize| libc::iovec { iov_base: start.cast(), iov_len: bytes.min(length as usize - at * bytes) };
    let parts: Vec<libc::iovec> = (0..count).map(part).collect();
    // SAFETY: each part is within `room`, which is borrowed exclusively; the kernel only writes to it.
    let read =
        unsafe { libc::preadv(file.as_raw_fd(), parts.as_ptr(), parts.len() as libc::c_int, offset as libc::off_t) };
    u64::try_from(read).map_err(|_| io::Error::last_os_error())
}

/// The extents of `file` that start before byte `end`; `None` if the file system does not report them.
#[must_use]
pub fn extents(file: &File, end: u64) -> Option<Vec<Extent>> {
    let mut all = Vec::new();
    let mut start = 0;
    while start < end {
        let mut map = Fiemap {
            start,
            length: end - start,
            flags: 0,
            mapped_extents: 0,
            extent_count: EXTENTS as u32,
            reserved: 0,
            extents: [FiemapExtent::default(); EXTENTS],
        };
        // SAFETY: `map` is a `struct fiemap` with room for `extent_count` extents, and outlives the call.
        let done = unsafe { libc::ioctl(file.as_raw_fd(), FS_IOC_FIEMAP as _, &raw mut map) };
        if done != 0 {
            return None;
        }
        let found = &map.extents[..(map.mapped_extents as usize).min(EXTENTS)];
        for extent in found {
            let stored = extent.flags & (NOT_STORED | INLINE) == 0;
            let FiemapExtent { logical, physical, length, .. } = *extent;
            all.push(Extent { logical, physical, length, stored });
        }
        match found.last() {
            Some(last) if last.flags & LAST == 0 => start = last.logical.saturating_add(last.length),
            _ => break,
        }
    }
    Some(all)
}

#[repr(C)]
struct CachestatRange {
    offset: u64,
    length: u64,
}

#[repr(C)]
#[derive(Default)]
struct Cachestat {
    cached: u64,
    dirty: u64,
    writeback: u64,
    evicted: u64,
    recently_evicted: u64,
}

const SYS_CACHESTAT: libc::c_long = 451;

/// Pages of a range of bytes that are in the page cache or on their way; `None` if the kernel does not tell (before
/// Linux 6.5, or for a file of another user).
#[must_use]
pub fn cached_pages(file: &File, offset: u64, length: u64) -> Option<u64> {
    let range = CachestatRange { offset, length };
    let mut stat = Cachestat::default();
    // SAFETY: both structures are laid out as the call requires, and outlive it.
    let done = unsafe { libc::syscall(SYS_CACHESTAT, file.as_raw_fd(), &raw const range, &raw mut stat, 0u32) };
    (done == 0).then_some(stat.cached)
}

/// The cache state of a file, found without a read.
#[derive(Debug)]
pub enum Cached {
    /// The kernel would have to read its inode: none of its pages can be cached.
    No,
    /// It cannot be opened at all.
    Gone,
    /// The open file.
    Maybe(File),
}

/// Opens a file that satisfies `is_wanted`, if that needs no read (`RESOLVE_CACHED` of openat2(2), since Linux 5.12;
/// before, nothing is known to be cached). Other files are only examined.
#[must_use]
pub fn open_cached(path: &CStr, is_wanted: impl Fn(&Metadata) -> bool) -> Cached {
    #[repr(C)]
    struct OpenHow {
        flags: u64,
        mode: u64,
        resolve: u64,
    }
    const RESOLVE_CACHED: u64 = 0x20;
    let flags = libc::O_PATH | libc::O_CLOEXEC;
    let how = OpenHow { flags: flags as u64, mode: 0, resolve: RESOLVE_CACHED };
    // SAFETY: both structures outlive the call, and the size is that of the second.
    let fd = unsafe {
        libc::syscall(libc::SYS_openat2, libc::AT_FDCWD, path.as_ptr(), &raw const how, std::mem::size_of::<OpenHow>())
    };
    if fd >= 0 {
        // SAFETY: the call has created it, and nothing else owns it.
        let looked = unsafe { File::from_raw_fd(fd as i32) };
        let open = || File::open(format!("/proc/self/fd/{}", looked.as_raw_fd()));
        let is_wanted = looked.metadata().is_ok_and(|found| is_wanted(&found));
        return if is_wanted { open().map_or(Cached::Gone, Cached::Maybe) } else { Cached::Gone };
    }
    match io::Error::last_os_error().raw_os_error() {
        Some(libc::ENOENT | libc::EACCES | libc::ENOTDIR | libc::ELOOP) => Cached::Gone,
        _ => Cached::No,
    }
}

/// Turns off the kernel's read-ahead for `file`.
pub fn advise_random(file: &File) {
    // SAFETY: no memory is involved.
    unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_RANDOM) };
}

/// The classes of ioprio_set(2).
const BEST_EFFORT: libc::c_int = 2;
const IDLE: libc::c_int = 3;

/// Puts reads of this thread behind those of others: in the idle class, or last in the best-effort class.
pub fn lower_io_priority(idle: bool) {
    const OF_PROCESS: libc::c_int = 1;
    let priority = if idle { IDLE << 13 } else { (BEST_EFFORT << 13) | 7 };
    // SAFETY: no memory is involved.
    unsafe { libc::syscall(libc::SYS_ioprio_set, OF_PROCESS, 0, priority) };
}

/// A file that becomes readable when the process ends.
///
/// # Errors
/// There is no such process.
pub fn process_file(pid: u32) -> io::Result<OwnedFd> {
    // SAFETY: no memory is involved.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid as libc::pid_t, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call has created it, and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
}

/// A file that becomes readable when another thread signals it.
///
/// # Errors
/// There are no more file descriptors.
pub fn wake_file() -> io::Result<OwnedFd> {
    // SAFETY: no memory is involved.
    let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call has created it, and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Waits until one of `files` is readable, at most `milliseconds`. Returns which ones are.
pub fn wait_readable(files: &[Option<i32>], milliseconds: i32) -> Vec<bool> {
    let poll = |fd: &Option<i32>| libc::pollfd { fd: fd.unwrap_or(-1), events: libc::POLLIN, revents: 0 };
    let mut polled: Vec<libc::pollfd> = files.iter().map(poll).collect();
    // SAFETY: `polled` has the stated length, and outlives the call.
    unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, milliseconds) };
    polled.iter().map(|each| each.revents != 0).collect()
}

/// The start of a measured time: the machine's clock, which hosts of real commands follow.
#[allow(clippy::disallowed_methods)]
#[must_use]
pub fn begin() -> Instant {
    Instant::now()
}
