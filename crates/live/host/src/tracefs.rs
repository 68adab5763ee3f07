//! Instances of tracefs: traces with only our events.
//!
//! Their names identify the owner, `headstart-PID-START-WHAT`: a killed process leaves its instance, and the next
//! process that creates or changes one removes it. One instance, [`KEPT`], is permanent and serves the runs of
//! commands: each run locks it and leaves it clean. A run that finds it in use creates its own.
//!
//! The kernel takes some 50 ms to remove or clear an instance, and blocks creations and changes of others for that
//! time. Therefore a separate process does it a second later, under a lock (on the folder of all instances) that
//! processes starting a command share, so that they can limit their wait.
//!
//! If no tracefs is mounted, this process uses one that is mounted nowhere: neither other processes nor the command see
//! it.

use std::ffi::{CStr, CString};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::OnceLock;
use std::thread::sleep;
use std::time::Duration;

use crate::child::Switches;
use crate::{Process, Roots};

/// Name prefix of our instances; the owning process follows.
const PREFIX: &str = "headstart-";
/// The permanent instance. It is clean if `tracing_on` is 0.
const KEPT: &CStr = c"headstart-run";

/// How long a process that ends waits before it removes its instance: others may want to create theirs.
const PAUSE: libc::timespec = libc::timespec { tv_sec: 1, tv_nsec: 0 };
/// How often the removal of a busy instance is tried, and the time between.
const BUSY_TRIES: u32 = 50;
const BUSY_PAUSE: libc::timespec = libc::timespec { tv_sec: 0, tv_nsec: 200_000_000 };
/// How often a process checks whether an instance is still being removed.
const LOCK_PAUSE: Duration = Duration::from_millis(1);

/// Path of tracefs: where `roots` say, or this process's own.
pub fn root(roots: &Roots) -> PathBuf {
    static OWN: OnceLock<Option<File>> = OnceLock::new();
    let is_missing = roots.tracing == Path::new(Roots::TRACING) && !roots.tracing.join("instances").exists();
    let own = is_missing.then(|| OWN.get_or_init(|| detached().ok()).as_ref()).flatten();
    own.map_or_else(|| roots.tracing.clone(), |own| format!("/proc/self/fd/{}", own.as_raw_fd()).into())
}

/// Creates a tracefs that is mounted nowhere (fsmount(2)).
#[allow(unsafe_code)]
fn detached() -> io::Result<File> {
    const FSCONFIG_CMD_CREATE: libc::c_int = 6;
    const CLOEXEC: libc::c_int = 1;
    let made = |number: libc::c_long| {
        let fd = i32::try_from(number).ok().filter(|fd| *fd >= 0).ok_or_else(io::Error::last_os_error)?;
        // SAFETY: the call has created it, and nothing else owns it.
        Ok::<File, io::Error>(unsafe { File::from_raw_fd(fd) })
    };
    // SAFETY: the name outlives the call; the others take no memory.
    unsafe {
        let context = made(libc::syscall(libc::SYS_fsopen, c"tracefs".as_ptr(), CLOEXEC))?;
        let fd = context.as_raw_fd();
        let none = std::ptr::null::<libc::c_char>();
        if libc::syscall(libc::SYS_fsconfig, fd, FSCONFIG_CMD_CREATE, none, none, 0) != 0 {
            return Err(io::Error::last_os_error());
        }
        made(libc::syscall(libc::SYS_fsmount, fd, CLOEXEC, 0))
    }
}

/// An instance, removed on drop. Its open files must be closed before, so it is the last field of its owner.
#[derive(Debug)]
pub struct Tracefs {
    folder: PathBuf,
    /// Set for the permanent instance.
    lock: Option<File>,
}

impl Tracefs {
    /// Path of the instance `name`.
    pub fn folder_of(roots: &Roots, name: &str) -> PathBuf {
        root(roots).join("instances").join(name)
    }

    /// Creates the instance `name`.
    ///
    /// # Errors
    /// The system call fails.
    pub fn create(roots: &Roots, name: &str) -> io::Result<Self> {
        let folder = Self::folder_of(roots, name);
        fs::create_dir(&folder)?;
        Ok(Self { folder, lock: None })
    }

    /// The permanent instance, created if necessary; `None` if it is in use or not clean.
    pub fn kept(roots: &Roots) -> Option<Self> {
        let folder = Self::folder_of(roots, KEPT.to_str().ok()?);
        let is_made = fs::create_dir(&folder).is_ok();
        let lock = File::open(&folder).ok().filter(|lock| flock(lock.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB))?;
        let is_new = || fs::read_to_string(folder.join("tracing_on")).is_ok_and(|on| on.trim() == "0");
        (is_made || is_new()).then(|| Self { folder, lock: Some(lock) })
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Writes `value` into one of its files.
    ///
    /// # Errors
    /// The system call fails.
    pub fn set(&self, file: &str, value: &str) -> io::Result<()> {
        self.open_to_write(file)?.write_all(value.as_bytes())
    }

    /// Prepares tracing of a command that starts with these switches, and of its children. Until then nothing is
    /// traced, since with an empty list the kernel would trace every process. `starting` was returned by [`begin`].
    ///
    /// # Errors
    /// The system call fails.
    pub fn follow(&self, starting: File) -> io::Result<Switches> {
        self.set("options/event-fork", "1")?;
        self.set("tracing_on", "0")?;
        Ok([self.open_to_write("set_event_pid")?, self.open_to_write("tracing_on")?, starting])
    }

    /// Removes the instance, or clears the permanent one, in a separate process. If that process is killed or cannot be
    /// created, the next traced command does it. `is_last`: this process ends now, and need not detach the other one.
    pub fn leave(mut self, is_last: bool) {
        self.tidy(Some(PAUSE), is_last);
        drop(self.lock.take());
        std::mem::forget(self);
    }

    fn tidy(&self, pause: Option<libc::timespec>, is_last: bool) {
        let own = if self.lock.is_some() { &[][..] } else { std::slice::from_ref(&self.folder) };
        tidy_beside(self.folder.parent().unwrap_or(&self.folder), own, pause, is_last);
    }

    fn open_to_write(&self, file: &str) -> io::Result<File> {
        OpenOptions::new().write(true).open(self.folder.join(file))
    }
}

/// Opens a pipe of events for non-blocking reads.
///
/// # Errors
/// The system call fails.
pub fn open_pipe(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)
}

impl Drop for Tracefs {
    fn drop(&mut self) {
        let busy = |error: io::Error| error.kind() == io::ErrorKind::ResourceBusy;
        // A thread of this process that is just starting another process shares our open files with it.
        if self.lock.is_some() || fs::remove_dir(&self.folder).is_err_and(busy) {
            self.tidy(None, false);
        }
    }
}

/// Waits at most `patience` until no instance is being removed; none will be while the returned file is open.
///
/// # Errors
/// A system call fails, with [`io::ErrorKind::ResourceBusy`] if an instance is still being removed.
pub fn begin(roots: &Roots, patience: Duration) -> io::Result<File> {
    let instances = File::open(root(roots).join("instances"))?;
    let tries = patience.as_millis() / LOCK_PAUSE.as_millis();
    for attempt in 0..=tries {
        if flock(instances.as_raw_fd(), libc::LOCK_SH | libc::LOCK_NB) {
            return Ok(instances);
        }
        if attempt < tries {
            sleep(LOCK_PAUSE);
        }
    }
    Err(io::ErrorKind::ResourceBusy.into())
}

#[allow(unsafe_code)]
fn flock(fd: i32, how: libc::c_int) -> bool {
    // SAFETY: no memory is involved.
    unsafe { libc::flock(fd, how) == 0 }
}

/// Removes the instances of processes that have ended. The kernel refuses to remove one in use.
pub fn sweep(roots: &Roots) {
    left(roots).for_each(|folder| {
        let _ = fs::remove_dir(folder);
    });
}

/// Like [`sweep`], in the background.
pub fn sweep_beside(roots: &Roots) {
    let left: Vec<PathBuf> = left(roots).collect();
    if !left.is_empty() {
        tidy_beside(&root(roots).join("instances"), &left, None, false);
    }
}

/// The instances of processes that have ended.
fn left(roots: &Roots) -> impl Iterator<Item = PathBuf> + use<'_> {
    let all = fs::read_dir(root(roots).join("instances")).into_iter().flatten().flatten();
    let is_left = |name: &str| owner(name).is_some_and(|owner| !owner.lives(roots));
    all.filter(move |entry| is_left(&entry.file_name().to_string_lossy())).map(|entry| entry.path())
}

/// Removes `folders` of `instances` in a detached process, after a pause, and clears the permanent instance if no
/// process uses it. `is_last`: as in [`Tracefs::leave`].
#[allow(unsafe_code)]
fn tidy_beside(instances: &Path, folders: &[PathBuf], pause: Option<libc::timespec>, is_last: bool) {
    let names = folders.iter().filter_map(|path| path.file_name());
    let names: Vec<CString> = names.flat_map(|name| CString::new(name.as_bytes())).collect();
    let Ok(instances) = File::open(instances) else { return };
    // SAFETY: after both forks, only calls that are safe after a fork; `names` and `pause` live in the copies, too.
    unsafe {
        let child = libc::fork();
        if child == 0 {
            // The second fork detaches the process, so that this one need not wait for it.
            if is_last || libc::fork() == 0 {
                // Closes our streams, so that their readers need not wait for it either.
                libc::dup2(instances.as_raw_fd(), FOLDER);
                libc::syscall(libc::SYS_close_range, FOLDER + 1, u32::MAX, 0u32);
                libc::setsid();
                if let Some(pause) = &pause {
                    libc::nanosleep(pause, std::ptr::null_mut());
                }
                names.iter().for_each(|name| remove(name));
                flock(FOLDER, libc::LOCK_EX);
                clear_kept();
            }
            libc::_exit(0);
        }
        if child > 0 && !is_last {
            libc::waitpid(child, std::ptr::null_mut(), 0);
        }
    }
}

/// Descriptor of the folder of all instances in the process that tidies up.
const FOLDER: i32 = 0;

/// Runs after a fork: only system calls.
#[allow(unsafe_code)]
fn remove(name: &CStr) {
    // A process that has it open, possibly only between fork and exec, ends or closes it.
    for _ in 0..BUSY_TRIES {
        flock(FOLDER, libc::LOCK_EX);
        // SAFETY: the name, and the time below, outlive the calls.
        let is_done = unsafe {
            libc::unlinkat(FOLDER, name.as_ptr(), libc::AT_REMOVEDIR) == 0 || *libc::__errno_location() != libc::EBUSY
        };
        flock(FOLDER, libc::LOCK_UN);
        if is_done {
            return;
        }
        // SAFETY: as above.
        unsafe { libc::nanosleep(&BUSY_PAUSE, std::ptr::null_mut()) };
    }
}

/// Clears the permanent instance if it is not clean and no process uses it. Runs after a fork: only system calls.
#[allow(unsafe_code)]
fn clear_kept() {
    // SAFETY: names and bytes are static, except `on`, which outlives the read.
    unsafe {
        let folder = libc::openat(FOLDER, KEPT.as_ptr(), libc::O_RDONLY);
        if folder < 0 || !flock(folder, libc::LOCK_EX | libc::LOCK_NB) {
            return;
        }
        let tracing = libc::openat(folder, c"tracing_on".as_ptr(), libc::O_RDWR);
        let mut on = [0u8];
        if libc::read(tracing, on.as_mut_ptr().cast(), 1) != 1 || on != *b"1" {
            return;
        }
        let all = libc::openat(folder, c"events/enable".as_ptr(), libc::O_WRONLY);
        libc::write(all, c"0".as_ptr().cast(), 1);
        for emptied in [c"set_event_pid", c"trace"] {
            libc::close(libc::openat(folder, emptied.as_ptr(), libc::O_WRONLY | libc::O_TRUNC));
        }
        libc::write(tracing, c"0".as_ptr().cast(), 1);
    }
}

/// Name of this process's instance for `what`.
pub fn own_name(roots: &Roots, what: &str) -> String {
    named(Process::own(roots), what)
}

/// Like [`own_name`], for a process that may have several.
pub fn next_name(roots: &Roots, what: &str) -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    own_name(roots, &format!("{what}.{}", COUNT.fetch_add(1, Ordering::Relaxed)))
}

fn named(owner: Process, what: &str) -> String {
    format!("{PREFIX}{}-{}-{what}", owner.pid, owner.start_ticks)
}

/// The owner of an instance; `None` if it is not ours.
fn owner(name: &str) -> Option<Process> {
    let mut parts = name.strip_prefix(PREFIX)?.splitn(3, '-');
    let (pid, start_ticks) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    Some(Process { pid, start_ticks })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Machine;

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
        // Far longer than the removal is retried.
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
