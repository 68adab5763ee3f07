//! Identifies the file of an inode: the kernel's events give the file system's device and the inode number.
//!
//! 1. The kernel: a file handle made from the inode number opens the file through the cache of names, which holds files
//!    in use (`open_by_handle_at(2)`). This costs the command nothing and reads nothing. ext2 to ext4 and f2fs accept a
//!    handle without the generation of the inode; other file systems do not.
//! 2. Files that the command's processes have open or mapped, while they run: `/proc/PID/{exe,fd,map_files}`.
//! 3. The rest is searched for by walking the file system after the command, for a limited time.
//!
//! On overlayfs, as in containers, events name the disk of the lower layer, which is not mounted visibly in the
//! container, and `stat(2)` returns a device that does not exist. The inode number is the same, except for a file that
//! was copied up.
//!
//! Files of in-memory file systems are omitted: no device holds them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use headstart_trace::hints::{FileKind, RecordedFile};
use headstart_types::open_regular;

use crate::page_trace::Inode;

/// File systems that keep their files in memory, or generate them.
const IN_MEMORY: [&str; 7] = ["tmpfs", "ramfs", "devtmpfs", "hugetlbfs", "proc", "sysfs", "tracefs"];

/// A mounted file system.
#[derive(Debug)]
struct Mount {
    path: PathBuf,
    kind: String,
    /// The root of this mount, for file handles.
    root: Option<File>,
}

/// The mounted file systems and block devices.
#[derive(Debug)]
pub(super) struct Places {
    mounts: BTreeMap<u32, Mount>,
    devices: BTreeSet<u64>,
    /// Devices mounted as overlayfs.
    overlays: Vec<u32>,
    page_bytes: u64,
}

/// The file of an inode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    /// In memory: not recorded.
    Nowhere,
    /// A file; its path is empty if it is not known yet.
    Found(RecordedFile),
}

impl Places {
    pub fn new(page_bytes: u64) -> Self {
        let text = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let mut mounts: BTreeMap<u32, Mount> = BTreeMap::new();
        for line in text.lines() {
            let Some((device, whole, mount)) = mount(line) else { continue };
            // Prefers the mount of the whole file system to bind mounts of a part of it.
            if whole || !mounts.contains_key(&device) {
                mounts.insert(device, mount);
            }
        }
        for mount in mounts.values_mut() {
            if !IN_MEMORY.contains(&mount.kind.as_str()) {
                mount.root = File::open(&mount.path).ok();
            }
        }
        let entries = fs::read_dir("/sys/dev/block").into_iter().flatten().flatten();
        let devices = entries.filter_map(|entry| packed(entry.file_name().to_str()?).map(u64::from)).collect();
        let overlays = mounts.iter().filter(|(_, mount)| mount.kind == "overlay").map(|(device, _)| *device).collect();
        Self { mounts, devices, overlays, page_bytes }
    }

    /// Identifies an inode.
    pub fn find(&self, inode: Inode) -> Place {
        let (device, number) = inode;
        let Some(mount) = self.mounts.get(&device) else {
            // The file system of block devices is not mounted anywhere; its inode numbers are the device numbers.
            if device >> 20 == 0 && self.devices.contains(&number) {
                return Place::Found(self.block_device(number as u32));
            }
            let is_below = !self.overlays.is_empty() && self.devices.contains(&u64::from(device));
            return if is_below { Place::Found(described(inode, PathBuf::new())) } else { Place::Nowhere };
        };
        if IN_MEMORY.contains(&mount.kind.as_str()) {
            return Place::Nowhere;
        }
        let path = mount.root.as_ref().and_then(|root| by_handle(root, number)).unwrap_or_default();
        Place::Found(described(inode, path))
    }

    fn block_device(&self, device: u32) -> RecordedFile {
        let (major, minor) = (device >> 20, device & 0xf_ffff);
        let sys = PathBuf::from(format!("/sys/dev/block/{major}:{minor}"));
        let name = fs::read_link(&sys).ok().and_then(|link| Some(link.file_name()?.to_owned()));
        let sectors =
            fs::read_to_string(sys.join("size")).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0u64);
        RecordedFile {
            kind: FileKind::Device,
            path: name.map(|name| Path::new("/dev").join(name)).unwrap_or_default(),
            major,
            minor,
            inode: 0,
            size_bytes: sectors * 512 / self.page_bytes * self.page_bytes,
            mtime_ns: 0,
        }
    }

    /// Searches the open files of `pids` for files without a path.
    pub fn look_at_processes(&self, pids: &[u32], files: &mut [RecordedFile]) {
        let mut wanted = wanted(files);
        for pid in pids {
            if wanted.is_empty() {
                return;
            }
            let process = PathBuf::from(format!("/proc/{pid}"));
            let folders = ["fd", "map_files"].map(|folder| fs::read_dir(process.join(folder)));
            let links = folders.into_iter().flatten().flatten().flatten().map(|entry| entry.path());
            for link in links.chain([process.join("exe"), process.join("cwd")]) {
                let Some(at) = fs::metadata(&link).ok().and_then(|found| take(&mut wanted, &found)) else { continue };
                if let Ok(path) = fs::read_link(&link) {
                    files[at] = described((files[at].major << 20 | files[at].minor, files[at].inode), path);
                }
            }
        }
    }

    /// Walks the file systems of files without a path, for at most `at_most`.
    #[allow(clippy::disallowed_methods)] // A limit on work that decides nothing.
    pub fn walk(&self, files: &mut [RecordedFile], at_most: Duration) {
        let begun = Instant::now();
        let mut wanted = wanted(files);
        let devices: BTreeSet<u32> = wanted.keys().map(|(_, device)| *device).collect();
        for device in devices {
            let mounted = if self.mounts.contains_key(&device) { vec![device] } else { self.overlays.clone() };
            let mut folders = mounted.iter().map(|each| (*each, self.mounts[each].path.clone())).collect::<Vec<_>>();
            while let Some((mounted, folder)) = folders.pop() {
                if begun.elapsed() > at_most || !wanted.keys().any(|(_, of)| *of == device) {
                    break;
                }
                for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
                    let Ok(found) = entry.metadata() else { continue };
                    if found.is_dir() && identity(&found).0 == mounted {
                        folders.push((mounted, entry.path()));
                    }
                    if let Some(at) = take(&mut wanted, &found) {
                        files[at] = described((files[at].major << 20 | files[at].minor, files[at].inode), entry.path());
                    }
                }
            }
        }
    }
}

/// Files without a path, by inode and device.
fn wanted(files: &[RecordedFile]) -> BTreeMap<(u64, u32), usize> {
    let without = files.iter().enumerate().filter(|(_, file)| file.path.as_os_str().is_empty());
    without.map(|(at, file)| ((file.inode, file.major << 20 | file.minor), at)).collect()
}

/// The index of the file in `wanted`, which is removed from it.
fn take(wanted: &mut BTreeMap<(u64, u32), usize>, found: &fs::Metadata) -> Option<usize> {
    let mut alike = wanted.range((found.ino(), 0)..=(found.ino(), u32::MAX)).map(|(key, _)| *key);
    let key = alike.find(|(number, device)| is(found, (*device, *number)))?;
    wanted.remove(&key)
}

/// Whether events name `found` by this inode: on overlayfs the device is that of a lower disk.
fn is(found: &fs::Metadata, inode: Inode) -> bool {
    let (device, number) = identity(found);
    let is_disk = |device: u32| device >> 20 != 0;
    number == inode.1 && (device == inode.0 || (!is_disk(device) && is_disk(inode.0)))
}

/// The name of the inode in events.
fn identity(found: &fs::Metadata) -> Inode {
    let device = found.dev();
    (libc::major(device) << 20 | libc::minor(device), found.ino())
}

/// The file at `path`, if it has this inode; otherwise a file without a path.
fn described(inode: Inode, path: PathBuf) -> RecordedFile {
    let found = fs::symlink_metadata(&path).ok().filter(|found| is(found, inode));
    let mut file = RecordedFile {
        kind: FileKind::Regular,
        path: PathBuf::new(),
        major: inode.0 >> 20,
        minor: inode.0 & 0xf_ffff,
        inode: inode.1,
        size_bytes: 0,
        mtime_ns: 0,
    };
    if let Some(found) = found {
        file.path = path;
        refresh(&mut file, &found);
    }
    file
}

fn refresh(file: &mut RecordedFile, found: &fs::Metadata) {
    file.kind = if found.is_file() { FileKind::Regular } else { FileKind::Other };
    file.size_bytes = found.len();
    file.mtime_ns = found.mtime().saturating_mul(1_000_000_000).saturating_add(found.mtime_nsec());
}

/// Updates sizes and times. A file that is gone or was replaced keeps its old ones.
pub(super) fn refresh_all(files: &mut [RecordedFile]) {
    for file in files.iter_mut().filter(|file| file.kind != FileKind::Device && !file.path.as_os_str().is_empty()) {
        let inode = (file.major << 20 | file.minor, file.inode);
        if let Some(found) = fs::symlink_metadata(&file.path).ok().filter(|found| is(found, inode)) {
            refresh(file, &found);
        }
    }
}

/// Opens a file whose path is known and that still has the same inode.
pub(super) fn open(file: &RecordedFile) -> Option<File> {
    let opened = open_regular(&file.path).ok()?;
    let found = opened.metadata().ok()?;
    is(&found, (file.major << 20 | file.minor, file.inode)).then_some(opened)
}

/// Parses a line of mountinfo (proc(5)): the device, whether its root is mounted, and the mount.
fn mount(line: &str) -> Option<(u32, bool, Mount)> {
    let (before, after) = line.split_once(" - ")?;
    let mut fields = before.split(' ').skip(2);
    let (device, root, path) = (packed(fields.next()?)?, fields.next()?, fields.next()?);
    let kind = after.split(' ').next()?.to_owned();
    Some((device, root == "/", Mount { path: unescaped(path).into(), kind, root: None }))
}

/// Replaces the octal escapes of spaces and the like.
fn unescaped(path: &str) -> String {
    [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")]
        .iter()
        .fold(path.to_owned(), |path, (octal, text)| path.replace(octal, text))
}

/// A device number "8:1", packed as by the kernel.
fn packed(text: &str) -> Option<u32> {
    let (major, minor) = text.split_once(':')?;
    Some(major.parse::<u32>().ok()? << 20 | minor.parse::<u32>().ok()?)
}

/// The path of an inode in use.
#[allow(unsafe_code)]
fn by_handle(mount: &File, inode: u64) -> Option<PathBuf> {
    /// `struct file_handle` of open_by_handle_at(2), with a handle of the kind FILEID_INO32_GEN (include/linux/exportfs.h).
    #[repr(C)]
    struct Handle {
        bytes: u32,
        kind: i32,
        inode: u32,
        generation: u32,
    }
    let handle = Handle { bytes: 8, kind: 1, inode: u32::try_from(inode).ok()?, generation: 0 };
    // SAFETY: the handle has as many bytes after its header as it states, and outlives the call.
    let opened = unsafe {
        libc::syscall(libc::SYS_open_by_handle_at, mount.as_raw_fd(), &handle, libc::O_PATH | libc::O_CLOEXEC)
    };
    let opened = i32::try_from(opened).ok().filter(|opened| *opened >= 0)?;
    // SAFETY: it was just opened, and nothing else owns it.
    let opened = unsafe { File::from_raw_fd(opened) };
    let path = fs::read_link(format!("/proc/self/fd/{}", opened.as_raw_fd())).ok()?;
    path.is_absolute().then_some(path)
}
