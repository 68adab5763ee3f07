//! Helpers for tests of real commands: programs, a gate at which a command waits for its test instead of sleeping, and
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

/// How long a test waits for something imminent: other programs may be using the disk and the processors.
const PATIENCE: Duration = Duration::from_secs(120);
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Waits for a condition; returns whether it came true.
pub fn soon(mut is: impl FnMut() -> bool) -> bool {
    (0..PATIENCE.as_millis() / LOOK_EVERY.as_millis()).any(|_| {
        is() || {
            sleep(LOOK_EVERY);
            false
        }
    })
}

/// Copies a program to be run. Another process does that: if this one had the file open for writing, a process started
/// by another test at that moment would inherit it, and the program could not be run.
pub fn copy_program(from: impl AsRef<OsStr>, to: &Path) {
    let copied = Command::new("cp").arg(from).arg(to).status();
    assert!(copied.is_ok_and(|status| status.success()), "{}", to.display());
}

/// A named pipe: opening it for reading blocks until it is opened for writing. A waiting shell reads nothing and starts
/// nothing.
pub struct Gate(PathBuf);

impl Gate {
    pub fn new(path: PathBuf) -> Self {
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).expect("there is room");
        Self(path)
    }

    /// The command for a script that waits.
    pub fn pass(&self) -> String {
        format!(": < '{}'", self.0.display())
    }

    /// Waits for a waiting command and opens the gate, also for later ones as long as the file is kept open.
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

/// Number of cached pages of a file.
#[allow(unsafe_code)]
pub fn cached_pages(path: &Path) -> usize {
    let file = File::open(path).expect("it is there");
    let bytes = file.metadata().expect("it is open").len() as usize;
    let mut pages = vec![0u8; bytes.div_ceil(4096)];
    // SAFETY: the mapping has `bytes` bytes, is not touched and is removed at once; `pages` has a byte for each of its
    // pages.
    unsafe {
        let place = libc::mmap(std::ptr::null_mut(), bytes, libc::PROT_READ, libc::MAP_SHARED, file.as_raw_fd(), 0);
        assert_ne!(place, libc::MAP_FAILED, "{}", path.display());
        assert_eq!(libc::mincore(place, bytes, pages.as_mut_ptr().cast()), 0, "{}", path.display());
        libc::munmap(place, bytes);
    }
    pages.iter().filter(|page| **page & 1 == 1).count()
}
