//! The files of the mount: the disk, and its statistics.
//!
//! | file | |
//! | --- | --- |
//! | `disk.img` | the image; reads go to the arm |
//! | `stats` | the statistics as JSON, of the instant at which it is opened |
//! | `stats.openmetrics` | the same as OpenMetrics |
//!
//! The kernel caches pages of the disk as of any file; reads with `O_DIRECT`, such as those of a loop device with
//! direct I/O, arrive here each time. The statistics are never cached (`FOPEN_DIRECT_IO`) and have size zero, like
//! files in /proc.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, UNIX_EPOCH};

use fuser::{
    Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, InitFlags, KernelConfig,
    LockOwner, OpenFlags, ReplyAttr, ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyOpen, Request,
};
use headstart_device::SECTOR_BYTES;

use super::arm::{Answer, Arm};
use headstart_host::RealClock;

/// Names and attributes never change.
const FOR_EVER: Duration = Duration::from_secs(1 << 30);

/// Maximum number of concurrent reads from the kernel: as many as a loop device has outstanding.
const BACKGROUND: u16 = 128;

/// The mount's folder.
const ROOT: INodeNo = INodeNo::ROOT;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Content {
    Disk,
    Json,
    OpenMetrics,
}

/// The files; their inodes are numbered from 2.
const FILES: [(&str, Content); 3] =
    [("disk.img", Content::Disk), ("stats", Content::Json), ("stats.openmetrics", Content::OpenMetrics)];

pub(super) const DISK: &str = FILES[0].0;
pub(super) const STATISTICS: &str = FILES[1].0;

/// Inode of the file at `index` of the table.
fn inode(index: usize) -> INodeNo {
    INodeNo(index as u64 + 2)
}

/// The file with that inode; `None` for any other inode.
fn content(inode: INodeNo) -> Option<Content> {
    let index = usize::try_from(u64::from(inode).checked_sub(2)?).ok()?;
    FILES.get(index).map(|(_, content)| *content)
}

impl Answer for ReplyData {
    fn data(self, data: &[u8]) {
        Self::data(self, data);
    }

    fn failed(self) {
        self.error(Errno::EIO);
    }
}

/// The arm of a mount, on the machine's clock.
pub(super) type MountedArm = Arm<RealClock, ReplyData>;

pub(super) struct Files {
    arm: Arc<MountedArm>,
    /// Measured once the files are accessible.
    fuse_round_trip_ns: Arc<OnceLock<u64>>,
    /// Statistics at the time at which their file was opened, by handle.
    opened: Mutex<BTreeMap<u64, Arc<str>>>,
    handles: AtomicU64,
    owner: (u32, u32),
}

impl Files {
    pub fn new(arm: Arc<MountedArm>, fuse_round_trip_ns: Arc<OnceLock<u64>>, owner: (u32, u32)) -> Self {
        Self { arm, fuse_round_trip_ns, opened: Mutex::new(BTreeMap::new()), handles: AtomicU64::new(0), owner }
    }

    fn opened(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<str>>> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Attributes of an inode; `None` if it does not exist.
    fn attributes(&self, inode: INodeNo) -> Option<FileAttr> {
        let (kind, perm, size) = match (inode, content(inode)) {
            (ROOT, _) => (FileType::Directory, 0o555, 0),
            (_, Some(Content::Disk)) => (FileType::RegularFile, 0o444, self.arm.image_bytes()),
            (_, Some(_)) => (FileType::RegularFile, 0o444, 0),
            (_, None) => return None,
        };
        Some(FileAttr {
            ino: inode,
            size,
            blocks: size.div_ceil(SECTOR_BYTES),
            atime: UNIX_EPOCH,
            mtime: UNIX_EPOCH,
            ctime: UNIX_EPOCH,
            crtime: UNIX_EPOCH,
            kind,
            perm,
            nlink: 1,
            uid: self.owner.0,
            gid: self.owner.1,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        })
    }

    /// Stores the current statistics under a new handle.
    fn keep(&self, content: Content) -> FileHandle {
        let statistics = self.arm.statistics(self.fuse_round_trip_ns.get().copied());
        let text = match content {
            Content::OpenMetrics => statistics.to_openmetrics(),
            _ => statistics.to_json() + "\n",
        };
        let handle = self.handles.fetch_add(1, Ordering::Relaxed);
        self.opened().insert(handle, text.into());
        FileHandle(handle)
    }
}

impl Filesystem for Files {
    fn init(&mut self, _request: &Request, config: &mut KernelConfig) -> std::io::Result<()> {
        // A kernel without this serves direct reads of a file one after the other.
        let _ = config.add_capabilities(InitFlags::FUSE_ASYNC_DIO);
        let _ = config.set_max_background(BACKGROUND);
        Ok(())
    }

    fn lookup(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let index = FILES.iter().position(|(file, _)| parent == ROOT && name == *file);
        match index.and_then(|index| self.attributes(inode(index))) {
            Some(attributes) => reply.entry(&FOR_EVER, &attributes, Generation(0)),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _request: &Request, inode: INodeNo, _handle: Option<FileHandle>, reply: ReplyAttr) {
        match self.attributes(inode) {
            Some(attributes) => reply.attr(&FOR_EVER, &attributes),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn readdir(
        &self,
        _request: &Request,
        inode_: INodeNo,
        _handle: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        if inode_ != ROOT {
            return reply.error(Errno::ENOTDIR);
        }
        let files = FILES.iter().enumerate().map(|(index, (name, _))| (inode(index), FileType::RegularFile, *name));
        let folders = [(ROOT, FileType::Directory, "."), (ROOT, FileType::Directory, "..")];
        for (at, (inode, kind, name)) in (1..).zip(folders.into_iter().chain(files)).skip(offset as usize) {
            if reply.add(inode, at, kind, name) {
                break;
            }
        }
        reply.ok();
    }

    fn open(&self, _request: &Request, inode: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        match content(inode) {
            Some(Content::Disk) => reply.opened(FileHandle(0), FopenFlags::empty()),
            Some(content) => reply.opened(self.keep(content), FopenFlags::FOPEN_DIRECT_IO),
            None => reply.error(Errno::EISDIR),
        }
    }

    fn read(
        &self,
        request: &Request,
        inode: INodeNo,
        handle: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        if content(inode) == Some(Content::Disk) {
            // Pid 0: threads of the kernel that belong to no process.
            let process = Some(request.pid()).filter(|pid| *pid != 0);
            return self.arm.submit(offset, size, process, reply);
        }
        let text = self.opened().get(&u64::from(handle)).cloned();
        match text {
            Some(text) => {
                let from = text.len().min(offset as usize);
                let to = text.len().min(from + size as usize);
                reply.data(&text.as_bytes()[from..to]);
            }
            None => reply.error(Errno::EBADF),
        }
    }

    fn release(
        &self,
        _request: &Request,
        inode: INodeNo,
        handle: FileHandle,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        _flush: bool,
        reply: ReplyEmpty,
    ) {
        if content(inode) != Some(Content::Disk) {
            self.opened().remove(&u64::from(handle));
        }
        reply.ok();
    }
}
