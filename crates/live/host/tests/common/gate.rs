//! What tests of real commands need: programs of their own, and in place of sleeping a gate at which a command waits for its test, and
//! the page cache.
#![allow(dead_code)] // Each test file uses its part.

use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

/// A test waits for something that happens in a moment for so long at most: other programs may have disk and processors.
const PATIENCE: Duration = Duration::from_secs(120);
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Waits until it is so. Returns whether it has come to that.
pub fn soon(mut is: impl FnMut() -> bool) -> bool {
    (0..PATIENCE.as_millis() / LOOK_EVERY.as_millis()).any(|_| {
        is() || {
            sleep(LOOK_EVERY);
            false
        }
    })
}

/// Copies a program that is going to be run. Another process does: what another test starts at that moment would have a file open that
/// this one writes, and it could not be run.
pub fn copy_program(from: impl AsRef<OsStr>, to: &Path) {
    let copied = Command::new("cp").arg(from).arg(to).status();
    assert!(copied.is_ok_and(|status| status.success()), "{}", to.display());
}

/// A pipe with a name: who opens it for reading waits until it is opened for writing. A shell that waits reads nothing and starts nothing.
pub struct Gate(PathBuf);

impl Gate {
    pub fn new(path: PathBuf) -> Self {
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).expect("there is room");
        Self(path)
    }

    /// What waits in a script.
    pub fn pass(&self) -> String {
        format!(": < '{}'", self.0.display())
    }

    /// Waits for a command that waits, and opens: for those that come later, too, as long as the file is kept.
    pub fn open(&self) -> File {
        let mut opened = None;
        let open = || File::options().write(true).custom_flags(libc::O_NONBLOCK).open(&self.0).ok();
        soon(|| {
            opened = open();
            opened.is_some()
        });
        opened.expect("a command waits at the gate")
    }
}

/// How many pages of a file are in the page cache.
#[allow(unsafe_code)]
pub fn cached_pages(path: &Path) -> usize {
    let file = File::open(path).expect("it is there");
    let bytes = file.metadata().expect("it is open").len() as usize;
    let mut pages = vec![0u8; bytes.div_ceil(4096)];
    // SAFETY: the mapping is of `bytes` bytes, is not touched and goes at once; `pages` has a byte for each of its pages.
    unsafe {
        let place = libc::mmap(std::ptr::null_mut(), bytes, libc::PROT_READ, libc::MAP_SHARED, file.as_raw_fd(), 0);
        assert_ne!(place, libc::MAP_FAILED, "{}", path.display());
        assert_eq!(libc::mincore(place, bytes, pages.as_mut_ptr().cast()), 0, "{}", path.display());
        libc::munmap(place, bytes);
    }
    pages.iter().filter(|page| **page & 1 == 1).count()
}
