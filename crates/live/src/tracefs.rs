//! Instances of tracefs: traces of our own, which hold our events only and go with the process that made them.
//!
//! Their names say whose they are, `headstart-PID-START-WHAT`: a killed process leaves its instance, and the next one that makes or
//! changes anything removes it.
//!
//! The kernel takes 0.1 s to remove one, and who makes another one meanwhile waits for that: what need not be removed at once is
//! removed by a process of its own, a second later. So commands that follow one another start without a wait.

use std::ffi::CString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::child::Switches;
use crate::tune::{Process, Roots};

/// Ours begin so; the process that it belongs to follows.
const PREFIX: &str = "headstart-";

/// How long a process that ends leaves its instance to itself: others may want to make theirs.
const PAUSE: libc::timespec = libc::timespec { tv_sec: 1, tv_nsec: 0 };
/// How often one that is in use is tried again, and after which time.
const BUSY_TRIES: u32 = 50;
const BUSY_PAUSE: libc::timespec = libc::timespec { tv_sec: 0, tv_nsec: 200_000_000 };

/// An instance. Dropping it removes it: what is open in it has to be closed before, so it is the last field of its owner.
#[derive(Debug)]
pub(crate) struct Tracefs {
    folder: PathBuf,
}

impl Tracefs {
    /// Where the instance `name` is going to be.
    pub fn folder_of(roots: &Roots, name: &str) -> PathBuf {
        roots.tracing.join("instances").join(name)
    }

    /// Makes the instance `name`.
    ///
    /// # Errors
    /// As the system says.
    pub fn create(roots: &Roots, name: &str) -> io::Result<Self> {
        let folder = Self::folder_of(roots, name);
        fs::create_dir(&folder)?;
        Ok(Self { folder })
    }

    /// Where it is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Writes `value` into one of its files.
    ///
    /// # Errors
    /// As the system says.
    pub fn set(&self, file: &str, value: &str) -> io::Result<()> {
        self.open_to_write(file)?.write_all(value.as_bytes())
    }

    /// Begins to trace what a command does that starts with these switches, and its children. Until then nothing is traced: of an
    /// empty list the kernel follows every process.
    ///
    /// # Errors
    /// As the system says.
    pub fn follow(&self) -> io::Result<Switches> {
        self.set("options/event-fork", "1")?;
        self.set("tracing_on", "0")?;
        Ok([self.open_to_write("set_event_pid")?, self.open_to_write("tracing_on")?])
    }

    /// Removes it in a process of its own. Where that process is killed, or cannot be made, the next command that
    /// is traced removes it. `is_last`: this process ends now, and need not wait until the other one is nobody's.
    pub fn leave(self, is_last: bool) {
        remove_beside(std::slice::from_ref(&self.folder), Some(PAUSE), is_last);
        std::mem::forget(self);
    }

    fn open_to_write(&self, file: &str) -> io::Result<File> {
        OpenOptions::new().write(true).open(self.folder.join(file))
    }
}

/// Opens a pipe of events, whose reads do not wait.
///
/// # Errors
/// As the system says.
pub(crate) fn open_pipe(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)
}

impl Drop for Tracefs {
    fn drop(&mut self) {
        // A thread of this process that starts another one at this moment has lent it what was open here.
        if fs::remove_dir(&self.folder).is_err_and(|error| error.kind() == io::ErrorKind::ResourceBusy) {
            remove_beside(std::slice::from_ref(&self.folder), None, false);
        }
    }
}

/// Removes the instances of processes that have ended. The kernel refuses to remove one in use.
pub(crate) fn sweep(roots: &Roots) {
    left(roots).for_each(|folder| {
        let _ = fs::remove_dir(folder);
    });
}

/// The same without waiting for it.
pub(crate) fn sweep_beside(roots: &Roots) {
    let left: Vec<PathBuf> = left(roots).collect();
    if !left.is_empty() {
        remove_beside(&left, None, false);
    }
}

/// The instances of processes that have ended.
fn left(roots: &Roots) -> impl Iterator<Item = PathBuf> + use<'_> {
    let all = fs::read_dir(roots.tracing.join("instances")).into_iter().flatten().flatten();
    let is_left = |name: &str| owner(name).is_some_and(|owner| !owner.lives(roots));
    all.filter(move |entry| is_left(&entry.file_name().to_string_lossy())).map(|entry| entry.path())
}

/// Removes instances in a process that is nobody's child, after a pause. `is_last`: as [`Tracefs::leave`].
#[allow(unsafe_code)]
fn remove_beside(folders: &[PathBuf], pause: Option<libc::timespec>, is_last: bool) {
    let folders: Vec<CString> = folders.iter().flat_map(|path| CString::new(path.as_os_str().as_bytes())).collect();
    // SAFETY: behind both forks, only system calls that may follow a fork; `folders` and `pause` live in the copies, too.
    unsafe {
        let child = libc::fork();
        if child == 0 {
            // The removing process is of no parent: nothing has to wait for it.
            if is_last || libc::fork() == 0 {
                // A reader of our streams does not wait for it either.
                libc::syscall(libc::SYS_close_range, 0u32, u32::MAX, 0u32);
                libc::setsid();
                if let Some(pause) = &pause {
                    libc::nanosleep(pause, std::ptr::null_mut());
                }
                for folder in &folders {
                    // A process that has it open, if only between its fork and its exec, ends or lets go of it.
                    for _ in 0..BUSY_TRIES {
                        if libc::rmdir(folder.as_ptr()) == 0 || *libc::__errno_location() != libc::EBUSY {
                            break;
                        }
                        libc::nanosleep(&BUSY_PAUSE, std::ptr::null_mut());
                    }
                }
            }
            libc::_exit(0);
        }
        if child > 0 && !is_last {
            libc::waitpid(child, std::ptr::null_mut(), 0);
        }
    }
}

/// The instance of this process for `what`.
pub(crate) fn own_name(roots: &Roots, what: &str) -> String {
    named(Process::own(roots), what)
}

/// The same, where a process may have several.
pub(crate) fn next_name(roots: &Roots, what: &str) -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    own_name(roots, &format!("{what}.{}", COUNT.fetch_add(1, Ordering::Relaxed)))
}

fn named(owner: Process, what: &str) -> String {
    format!("{PREFIX}{}-{}-{what}", owner.pid, owner.start_ticks)
}

/// Whose instance it is; `None` if it is none of ours.
fn owner(name: &str) -> Option<Process> {
    let mut parts = name.strip_prefix(PREFIX)?.splitn(3, '-');
    let (pid, start_ticks) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    Some(Process { pid, start_ticks })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::tune::testing::Machine;

    #[test]
    fn one_that_is_in_use_goes_later() {
        let roots = Roots::of_machine();
        let Ok(instance) = Tracefs::create(&roots, &next_name(&roots, "test")) else {
            return eprintln!("SKIPPED: an instance of tracefs needs root and a tracefs");
        };
        let folder = instance.folder().to_owned();
        let open = open_pipe(&folder.join("trace_pipe")).expect("it is ours");
        drop(instance);
        assert!(folder.exists(), "the kernel removes none that is in use");
        drop(open);
        // Far longer than it is tried.
        let is_gone = (0..6000).any(|_| {
            std::thread::sleep(Duration::from_millis(10));
            !folder.exists()
        });
        assert!(is_gone);
    }

    #[test]
    fn what_the_dead_have_left_goes() {
        let machine = Machine::new();
        let instances = machine.path("tracing/instances");
        machine.write("proc/77/stat", &format!("77 (a) b) S {} 4242 0", "1 ".repeat(18).trim()));
        // Two devices of one process.
        let live = Process { pid: 77, start_ticks: 4242 };
        assert_eq!(owner(&named(live, "8.0-faults")), Some(live));
        let [one, other] = ["8.0", "8.16"].map(|what| named(live, what));
        assert_eq!([&one, &other].map(|name| owner(name)), [Some(live), Some(live)]);
        for name in [&one, &other, "headstart-77-4241-8.0", "headstart-78-1-8.0", "headstart-mine", "others"] {
            fs::create_dir_all(instances.join(name)).expect("there is room");
        }
        sweep(&machine.roots());
        let mut left: Vec<_> =
            fs::read_dir(&instances).expect("a folder").map(|each| each.expect("a name").file_name()).collect();
        left.sort();
        assert_eq!(left, ["headstart-77-4242-8.0", "headstart-77-4242-8.16", "headstart-mine", "others"]);
    }
}
