//! A FUSE mount: created, found again, and unmounted. No other mount is ever touched.
//!
//! By the time of unmounting, another mount may lie over ours or in its place. Therefore a mount is identified by its
//! id and its device number from `/proc/self/mountinfo`; reading them sends no request to the file system, which is
//! this process. Both numbers are reused as soon as they are free, so the type and the source are compared, too, and
//! the caller says whether the kernel still talks to the file system.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use fuser::{Config, MountOption, Session, SessionACL, SessionUnmounter};
use nix::errno::Errno;
use nix::mount::{mount, umount2, MntFlags, MsFlags};
use nix::unistd::{getgid, getuid};

use super::files::Files;

/// The device through which the kernel talks to a file system in user space.
pub(super) const DEVICE: &str = "/dev/fuse";
/// The source shown for the mount.
const SOURCE: &str = "headstart-emulate";

/// How a mount ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Undone {
    /// It is unmounted, possibly earlier.
    Gone,
    /// It is detached, since files of it were open.
    InUse,
    /// It stays, since something else is mounted over it.
    Covered,
}

/// A mount and what identifies it.
pub(super) struct Mounted {
    path: PathBuf,
    identity: Identity,
    /// Set if a set-user-id program mounted it, which then has to unmount it.
    helper: Option<SessionUnmounter>,
    over: bool,
}

/// Id of the mount and of its parent, its device number, and its type and source.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Identity {
    mount: String,
    above: String,
    device: String,
    kind: String,
}

impl Identity {
    /// Parses a line of `/proc/self/mountinfo` (proc_pid_mountinfo(5)).
    fn parse(line: &str) -> Option<Self> {
        let (before, after) = line.split_once(" - ")?;
        let mut before = before.split(' ').map(str::to_owned);
        let kind = after.split(' ').take(2).collect::<Vec<_>>().join(" ");
        Some(Self { mount: before.next()?, above: before.next()?, device: before.next()?, kind })
    }
}

impl Mounted {
    /// Mounts `files` at an absolute path, directly or, if that is not allowed, through `fusermount3`.
    ///
    /// # Errors
    /// The system refuses; then nothing is mounted.
    pub fn new(files: Files, path: &Path) -> io::Result<(Session<Files>, Self)> {
        let found = |helper, identity| Self { path: path.to_owned(), identity, helper, over: false };
        match direct(path) {
            Ok(device) => {
                let identity = lies_at(path).inspect_err(|_| {
                    let _ = umount2(path, MntFlags::UMOUNT_NOFOLLOW);
                })?;
                // From here on, dropping it unmounts, as an error does.
                let mounted = found(None, identity);
                Ok((Session::from_fd(files, device.into(), SessionACL::Owner, Config::default())?, mounted))
            }
            Err(error) if error.raw_os_error() == Some(Errno::EPERM as i32) => {
                let mut config = Config::default();
                config.mount_options = vec![MountOption::RO, MountOption::FSName(SOURCE.to_owned())];
                let mut session = Session::new(files, path, &config)?;
                let helper = session.unmount_callable();
                Ok((session, found(Some(helper), lies_at(path)?)))
            }
            Err(error) => Err(error),
        }
    }

    /// Unmounts it, if it is still there and nothing is mounted over it. `has_ended`: the kernel no longer talks to the
    /// file system, since it is unmounted. A second call does nothing.
    pub fn undo(&mut self, has_ended: bool) -> Undone {
        if std::mem::replace(&mut self.over, true) {
            return Undone::Gone;
        }
        let found = if has_ended { Found::Gone } else { self.find() };
        if found != Found::OnTop {
            // Dropping it would unmount whatever is there.
            std::mem::forget(self.helper.take());
            return if found == Found::Covered { Undone::Covered } else { Undone::Gone };
        }
        if let Some(helper) = &mut self.helper {
            // It detaches a mount in use and does not report it.
            let _ = helper.unmount();
            return Undone::Gone;
        }
        match umount2(&self.path, MntFlags::UMOUNT_NOFOLLOW) {
            Err(Errno::EBUSY) => {
                let flags = MntFlags::UMOUNT_NOFOLLOW | MntFlags::MNT_FORCE | MntFlags::MNT_DETACH;
                let _ = umount2(&self.path, flags);
                Undone::InUse
            }
            // Any other error means that it is no longer there.
            _ => Undone::Gone,
        }
    }

    fn find(&self) -> Found {
        let mounts = mounts().unwrap_or_default();
        if !mounts.contains(&self.identity) {
            return Found::Gone;
        }
        let covered = mounts.iter().any(|each| each.above == self.identity.mount && each.mount != each.above);
        match !covered && lies_at(&self.path).is_ok_and(|found| found == self.identity) {
            true => Found::OnTop,
            false => Found::Covered,
        }
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        self.undo(false);
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Found {
    OnTop,
    Covered,
    Gone,
}

/// Mounts by the system call, which root may use.
fn direct(path: &Path) -> io::Result<File> {
    let device = OpenOptions::new().read(true).write(true).open(DEVICE)?;
    // A folder, S_IFDIR: the kernel only uses the file type of the mode.
    let (descriptor, user, group) = (device.as_raw_fd(), getuid(), getgid());
    let options = format!("fd={descriptor},rootmode=40000,user_id={user},group_id={group}");
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_RDONLY;
    mount(Some(SOURCE), path, Some("fuse"), flags, Some(options.as_str()))?;
    Ok(device)
}

/// The mount that contains a path.
fn lies_at(path: &Path) -> io::Result<Identity> {
    let flags = libc::O_PATH | libc::O_NOFOLLOW | libc::O_DIRECTORY;
    // Neither sends a request to the file system nor keeps it busy afterwards.
    let place = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let text = fs::read_to_string(format!("/proc/self/fdinfo/{}", place.as_raw_fd()))?;
    let missing = || io::Error::other("no number of the mount in /proc/self/fdinfo");
    let mount = text.lines().find_map(|line| line.strip_prefix("mnt_id:")).ok_or_else(missing)?.trim().to_owned();
    mounts()?.into_iter().find(|each| each.mount == mount).ok_or_else(missing)
}

fn mounts() -> io::Result<Vec<Identity>> {
    let text = fs::read_to_string("/proc/self/mountinfo")?;
    Ok(text.lines().filter_map(Identity::parse).collect())
}
