//! Locks of files and devices, as QEMU takes them: two programs that change one image would each lose what the other one has written.
//!
//! A lock is of one byte of the file, far from what is in it, and of the open file description (fcntl(2), `F_OFD_SETLK`). QEMU
//! (block/file-posix.c) has two bytes for each permission of an image: one that who has the permission takes, and one that who does not
//! share it takes; all of them shared. So who wants a permission looks whether its second byte is taken, and who does not share one at the
//! first. Here a reader shares reading, and a writer nothing.

use std::fs::File;
use std::io;
use std::sync::Arc;

use nix::errno::Errno;
use nix::fcntl::{fcntl, FcntlArg};
use nix::libc;

/// The bytes of permissions that are had, and of those that are not shared, from these on.
const HAD: i64 = 100;
const NOT_SHARED: i64 = 200;
/// Permissions: to read what does not change, to write, and to change the size. One more, to write what is there already, is for jobs
/// within QEMU.
const READ: i64 = 0;
const WRITE: i64 = 1;
const RESIZE: i64 = 3;

/// A locked file. Dropping this unlocks it, even where a request that has ended still holds the file for an instant: io_uring lets go of
/// a file some time after it has said that its read is done.
pub(super) struct Locked(Arc<File>);

impl Locked {
    /// Locks `file`. A process that locks it in another way is not noticed.
    ///
    /// # Errors
    /// It is in use in a way that does not go with this, or cannot be locked.
    pub(super) fn try_new(file: &Arc<File>, writable: bool) -> io::Result<Self> {
        // What is taken before a refusal is given back as well.
        let locked = Self(Arc::clone(file));
        lock(file, writable)?;
        Ok(locked)
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        let all = libc::flock { l_start: 0, l_len: 0, ..range(0, libc::F_UNLCK) };
        // If it fails, the lock ends with the file.
        let _ = fcntl(&*self.0, FcntlArg::F_OFD_SETLK(&all));
    }
}

fn lock(file: &File, writable: bool) -> io::Result<()> {
    let (had, not_shared): (&[i64], &[i64]) =
        if writable { (&[READ, WRITE], &[READ, WRITE, RESIZE]) } else { (&[READ], &[WRITE, RESIZE]) };
    // First taken, then looked: of two that begin at the same time one at least sees the other.
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

/// Whether another open file has a lock of that byte.
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
        // The file stays open, as if a request still held it.
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
        // What was refused has left nothing.
        drop(writer);
        drop(locked(&path, true).expect("it is free"));
        std::fs::remove_file(&path).expect("it is there");
    }
}
