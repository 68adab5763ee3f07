//! Instances of tracefs: traces of our own, which hold our events only.
//!
//! Their names say whose they are, `headstart-PID-START-WHAT`: a killed process leaves its instance, and the next one that makes or
//! changes anything removes it. One is kept, [`KEPT`], for the runs of commands: each takes it, locked, and leaves it as new. A run that
//! finds it in use makes one of its own.
//!
//! The kernel takes some 50 ms to remove one or to clear it, and who makes or changes another one meanwhile waits for that. So it is done by
//! a process of its own, a second later, and under a lock (of the folder of all instances) that a process which starts a command shares: it
//! need not wait for longer than it wants to.
//!
//! Where no tracefs is mounted this process has one that is mounted nowhere: no other process sees it, nor does the command.

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

/// Ours begin so; the process that it belongs to follows.
const PREFIX: &str = "headstart-";
/// The one that is kept. It is as new where `tracing_on` says 0.
const KEPT: &CStr = c"headstart-run";

/// How long a process that ends leaves its instance to itself: others may want to make theirs.
const PAUSE: libc::timespec = libc::timespec { tv_sec: 1, tv_nsec: 0 };
/// How often one that is in use is tried again, and after which time.
const BUSY_TRIES: u32 = 50;
const BUSY_PAUSE: libc::timespec = libc::timespec { tv_sec: 0, tv_nsec: 200_000_000 };
/// How often a process looks whether an instance is still being removed.
const LOCK_PAUSE: Duration = Duration::from_millis(1);

/// Where tracefs is: mounted where `roots` say, or by this process for itself.
pub fn root(roots: &Roots) -> PathBuf {
    static OWN: OnceLock<Option<File>> = OnceLock::new();
    let is_missing = roots.tracing == Path::new(Roots::TRACING) && !roots.tracing.join("instances").exists();
    let own = is_missing.then(|| OWN.get_or_init(|| detached().ok()).as_ref()).flatten();
    own.map_or_else(|| roots.tracing.clone(), |own| format!("/proc/self/fd/{}", own.as_raw_fd()).into())
}

/// A tracefs that is mounted nowhere (fsmount(2)).
#[allow(unsafe_code)]
fn detached() -> io::Result<File> {
    const FSCONFIG_CMD_CREATE: libc::c_int = 6;
    const CLOEXEC: libc::c_int = 1;
    let made = |number: libc::c_long| {
        let fd = i32::try_from(number).ok().filter(|fd| *fd >= 0).ok_or_else(io::Error::last_os_error)?;
        // SAFETY: the call has made it, and nothing else has it.
        Ok::<File, io::Error>(unsafe { File::from_raw_fd(fd) })
    };
    // SAFETY: the name lives until the call returns; the others take no memory.
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

/// An instance. Dropping it removes it: what is open in it has to be closed before, so it is the last field of its owner.
#[derive(Debug)]
pub struct Tracefs {
    folder: PathBuf,
    /// Of the one that is kept.
    lock: Option<File>,
}

impl Tracefs {
    /// Where the instance `name` is going to be.
    pub fn folder_of(roots: &Roots, name: &str) -> PathBuf {
        root(roots).join("instances").join(name)
    }

    /// Makes the instance `name`.
    ///
    /// # Errors
    /// As the system says.
    pub fn create(roots: &Roots, name: &str) -> io::Result<Self> {
        let folder = Self::folder_of(roots, name);
        fs::create_dir(&folder)?;
        Ok(Self { folder, lock: None })
    }

    /// The one that is kept, made if there is none; `None` if it is in use, or not as new.
    pub fn kept(roots: &Roots) -> Option<Self> {
        let folder = Self::folder_of(roots, KEPT.to_str().ok()?);
        let is_made = fs::create_dir(&folder).is_ok();
        let lock = File::open(&folder).ok().filter(|lock| flock(lock.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB))?;
        let is_new = || fs::read_to_string(folder.join("tracing_on")).is_ok_and(|on| on.trim() == "0");
        (is_made || is_new()).then(|| Self { folder, lock: Some(lock) })
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
    /// empty list the kernel follows every process. `starting` is what [`begin`] has returned.
    ///
    /// # Errors
    /// As the system says.
    pub fn follow(&self, starting: File) -> io::Result<Switches> {
        self.set("options/event-fork", "1")?;
        self.set("tracing_on", "0")?;
        Ok([self.open_to_write("set_event_pid")?, self.open_to_write("tracing_on")?, starting])
    }

    /// Removes it, or clears the one that is kept, in a process of its own. Where that process is killed, or cannot be made, the next command
    /// that is traced does. `is_last`: this process ends now, and need not wait until the other one is of no parent.
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

/// Opens a pipe of events, whose reads do not wait.
///
/// # Errors
/// As the system says.
pub fn open_pipe(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)
}

impl Drop for Tracefs {
    fn drop(&mut self) {
        let busy = |error: io::Error| error.kind() == io::ErrorKind::ResourceBusy;
        // A thread of this process that starts another one at this moment has lent it what was open here.
        if self.lock.is_some() || fs::remove_dir(&self.folder).is_err_and(busy) {
            self.tidy(None, false);
        }
    }
}

/// Waits until no instance is being removed, for so long at most; none is while the answer is kept.
///
/// # Errors
/// As the system says; [`io::ErrorKind::ResourceBusy`] if one still is.
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

/// The same without waiting for it.
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

/// Removes `folders` of `instances` in a process that is nobody's child, after a pause, and clears the instance that is kept if no process uses
/// it. `is_last`: as [`Tracefs::leave`].
#[allow(unsafe_code)]
fn tidy_beside(instances: &Path, folders: &[PathBuf], pause: Option<libc::timespec>, is_last: bool) {
    let names = folders.iter().filter_map(|path| path.file_name());
    let names: Vec<CString> = names.flat_map(|name| CString::new(name.as_bytes())).collect();
    let Ok(instances) = File::open(instances) else { return };
    // SAFETY: behind both forks, only system calls that may follow a fork; `names` and `pause` live in the copies, too.
    unsafe {
        let child = libc::fork();
        if child == 0 {
            // The process that does it is of no parent: nothing has to wait for it.
            if is_last || libc::fork() == 0 {
                // A reader of our streams does not wait for it either.
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

/// Where the process that tidies up has the folder of all instances.
const FOLDER: i32 = 0;

/// Behind a fork: only system calls.
#[allow(unsafe_code)]
fn remove(name: &CStr) {
    // A process that has it open, if only between its fork and its exec, ends or lets go of it.
    for _ in 0..BUSY_TRIES {
        flock(FOLDER, libc::LOCK_EX);
        // SAFETY: the name, and the time below, live until the calls return.
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

/// Makes the instance that is kept as new, if it is not and no process uses it. Behind a fork: only system calls.
#[allow(unsafe_code)]
fn clear_kept() {
    // SAFETY: names and bytes are static, but for `on`, which lives until the read returns.
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

/// The instance of this process for `what`.
pub fn own_name(roots: &Roots, what: &str) -> String {
    named(Process::own(roots), what)
}

/// The same, where a process may have several.
pub fn next_name(roots: &Roots, what: &str) -> String {
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
