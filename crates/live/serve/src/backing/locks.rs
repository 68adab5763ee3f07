//! Locks files and devices as QEMU does: two programs that change one image would overwrite each other's data.
//!
//! A lock covers one byte of the file, far beyond its content, and belongs to the open file description (fcntl(2),
//! `F_OFD_SETLK`). QEMU (block/file-posix.c) has two bytes for each permission of an image: a program that holds the
//! permission locks the first, and one that does not share it locks the second; all locks are shared. To acquire a
//! permission, a program tests its second byte; to deny one to others, it tests the first. Here a reader shares only
//! reading, and a writer shares nothing.

use std::fs::File;
use std::io;
use std::sync::Arc;

use nix::errno::Errno;
use nix::fcntl::{fcntl, FcntlArg};
use nix::libc;

/// Offsets of the bytes of held permissions, and of permissions that are not shared.
const HAD: i64 = 100;
const NOT_SHARED: i64 = 200;
/// Permissions: consistent read, write and resize. QEMU has one more, to write unchanged data, which only its own jobs
/// use.
const READ: i64 = 0;
const WRITE: i64 = 1;
const RESIZE: i64 = 3;

/// A locked file. Dropping it releases the lock, even while something else still holds the open file, such as a request
/// of io_uring.
pub(super) struct Locked(Arc<File>);

impl Locked {
    /// Locks `file`. Locks of other kinds are not noticed.
    ///
    /// # Errors
    /// Another program uses it in a conflicting way, or it cannot be locked.
    pub(super) fn try_new(file: &Arc<File>, writable: bool) -> io::Result<Self> {
        // Created first, so that a refusal releases the bytes locked so far.
        let locked = Self(Arc::clone(file));
        lock(file, writable)?;
        Ok(locked)
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        let all = libc::flock { l_start: 0, l_len: 0, ..range(0, libc::F_UNLCK) };
        // If this fails, closing the file releases the lock.
        let _ = fcntl(&*self.0, FcntlArg::F_OFD_SETLK(&all));
    }
}

fn lock(file: &File, writable: bool) -> io::Result<()> {
    let (had, not_shared): (&[i64], &[i64]) =
        if writable { (&[READ, WRITE], &[READ, WRITE, RESIZE]) } else { (&[READ], &[WRITE, RESIZE]) };
    // Lock first, then test: if two programs start at the same time, at least one of them sees the other.
    for byte in had.iter().map(|each| HAD + each).chain(not_shared.iter().map(|each| NOT_SHARED + each)) {
        fcntl(file, FcntlArg::F_OFD_SETLK(&range(byte, libc::F_RDLCK)))?;
    }
    for each in not_shared {
        if is_taken(file, HAD + each)? {
            return Err(in_use(if *each == READ { "reads" } else { "writes" }));
        }
    }
    for each in had {
        if is_taken(file, NOT_SHARED + each)? {
            return Err(in_use("does not share"));
        }
    }
    Ok(())
}

fn in_use(how: &str) -> io::Error {
    io::Error::new(io::ErrorKind::ResourceBusy, format!("is in use by another program or export, which {how} it"))
}

/// Whether another open file holds a lock of `byte`.
fn is_taken(file: &File, byte: i64) -> Result<bool, Errno> {
    let mut found = range(byte, libc::F_WRLCK);
    fcntl(file, FcntlArg::F_OFD_GETLK(&mut found))?;
    Ok(i32::from(found.l_type) != libc::F_UNLCK)
}

fn range(byte: i64, kind: libc::c_int) -> libc::flock {
    libc::flock { l_type: kind as _, l_whence: libc::SEEK_SET as _, l_start: byte, l_len: 1, l_pid: 0 }
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;
    use std::path::Path;

    use super::*;

    fn locked(path: &Path, writable: bool) -> Result<Locked, String> {
        let file = Arc::new(OpenOptions::new().read(true).write(writable).open(path).expect("it is there"));
        // Keeps the file open, like a request that still holds it.
        std::mem::forget(file.try_clone().expect("a descriptor is free"));
        Locked::try_new(&file, writable).map_err(|error| error.to_string())
    }

    #[test]
    fn readers_share_and_a_writer_is_alone() {
        let path = std::env::temp_dir().join(format!("headstart-serve-locks-{}", std::process::id()));
        std::fs::write(&path, "short").expect("there is room");
        let said = |how: &str| Err(format!("is in use by another program or export, which {how} it"));
        let [first, second] = [(); 2].map(|()| locked(&path, false).expect("readers share"));
        assert_eq!(locked(&path, true).map(drop), said("reads"));
        drop(first);
        assert_eq!(locked(&path, true).map(drop), said("reads"), "one is left");
        drop(second);
        let writer = locked(&path, true).expect("it is free");
        for writable in [false, true] {
            assert_eq!(locked(&path, writable).map(drop), said(if writable { "reads" } else { "writes" }));
        }
        // A refused attempt leaves no locks.
        drop(writer);
        drop(locked(&path, true).expect("it is free"));
        std::fs::remove_file(&path).expect("it is there");
    }
}
