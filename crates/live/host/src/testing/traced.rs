//! Traces a thread of another process with ptrace(2), to count its calls on a folder and make them fail.

use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::sys::ptrace::{self, Options};
use nix::sys::signal::{kill, Signal};
use nix::sys::wait::{waitpid, WaitPidFlag, WaitStatus};
use nix::unistd::Pid;

use super::calls::Fault;

/// Which argument of a call names a file.
#[derive(Clone, Copy)]
enum By {
    Path,
    /// A folder's descriptor and a path relative to it.
    FolderAndPath,
    Descriptor(usize),
}

macro_rules! calls {
    ($($by:expr => $($name:ident)+;)+) => { [$($((libc::$name, stringify!($name), $by),)+)+] };
}

#[rustfmt::skip]
const CALLS: [(i64, &str, By); 54] = calls! {
    By::Path => SYS_open SYS_creat SYS_stat SYS_lstat SYS_access SYS_mkdir SYS_rmdir SYS_unlink SYS_rename SYS_link SYS_symlink
        SYS_readlink SYS_chmod SYS_chown SYS_truncate SYS_statfs SYS_getxattr;
    By::FolderAndPath => SYS_openat SYS_openat2 SYS_mkdirat SYS_unlinkat SYS_renameat SYS_renameat2 SYS_linkat SYS_newfstatat
        SYS_statx SYS_fchmodat SYS_faccessat SYS_faccessat2 SYS_readlinkat SYS_utimensat;
    By::Descriptor(0) => SYS_read SYS_write SYS_pread64 SYS_pwrite64 SYS_readv SYS_writev SYS_fsync SYS_fdatasync SYS_ftruncate
        SYS_fallocate SYS_fstat SYS_fstatfs SYS_getdents64 SYS_flock SYS_fcntl SYS_lseek SYS_fchmod SYS_fchown SYS_close SYS_dup
        SYS_ioctl SYS_copy_file_range;
    By::Descriptor(4) => SYS_mmap;
};

struct Traced<'a> {
    thread: Pid,
    folder: &'a Path,
}

impl Traced<'_> {
    fn link(&self, name: &str) -> PathBuf {
        fs::read_link(format!("/proc/{}/{name}", self.thread)).unwrap_or_default()
    }

    fn of_descriptor(&self, descriptor: u64) -> PathBuf {
        match descriptor as i32 {
            libc::AT_FDCWD => self.link("cwd"),
            descriptor => self.link(&format!("fd/{descriptor}")),
        }
    }

    /// The path at an address of its memory; empty if there is none.
    fn path_at(&self, address: u64) -> PathBuf {
        const PAGE: u64 = 4096;
        let mut bytes = Vec::new();
        let Ok(memory) = File::open(format!("/proc/{}/mem", self.thread)) else { return PathBuf::new() };
        for at in [address, (address / PAGE + 1) * PAGE] {
            let mut part = vec![0; (PAGE - at % PAGE) as usize];
            let read = memory.read_at(&mut part, at).unwrap_or(0);
            let end = part[..read].iter().position(|byte| *byte == 0);
            bytes.extend(&part[..end.unwrap_or(read)]);
            if end.is_some() || read == 0 {
                break;
            }
        }
        OsString::from_vec(bytes).into()
    }

    /// The file that a call names, even if folders above it were renamed.
    fn resolved(&self, from: PathBuf, path: &Path) -> PathBuf {
        let Ok(below) = path.strip_prefix("/proc/self/fd") else { return from.join(path) };
        let mut parts = below.components();
        let descriptor = parts.next().and_then(|part| part.as_os_str().to_str()?.parse().ok());
        descriptor.map_or_else(PathBuf::new, |descriptor| self.of_descriptor(descriptor).join(parts.as_path()))
    }

    /// The call and the file, if it concerns the folder.
    fn concerned(&self, number: u64, arguments: [u64; 6]) -> Option<String> {
        let (_, name, by) = CALLS.into_iter().find(|(each, ..)| *each == number as i64)?;
        let path = match by {
            By::Path => self.resolved(self.link("cwd"), &self.path_at(arguments[0])),
            By::FolderAndPath => self.resolved(self.of_descriptor(arguments[0]), &self.path_at(arguments[1])),
            By::Descriptor(at) => self.of_descriptor(arguments[at]),
        };
        // Closing a folder writes nothing, and the standard library treats an error as a bug of the program.
        let is_concerned = path.starts_with(self.folder) && !(number as i64 == libc::SYS_close && path.is_dir());
        is_concerned.then(|| format!("{} of {}", &name[4..], path.display()))
    }
}

/// Continues a thread of another process after calling `ready`, with `fault` at call `number`, from 1 on, of those that
/// concern `folder`. Returns that call.
///
/// # Errors
/// The system does not permit tracing.
pub fn drive(
    thread: i32,
    folder: &Path,
    number: usize,
    fault: Fault,
    ready: impl FnOnce(),
) -> nix::Result<Option<String>> {
    let traced = Traced { thread: Pid::from_raw(thread), folder };
    let thread = traced.thread;
    ptrace::seize(thread, Options::PTRACE_O_TRACESYSGOOD | Options::PTRACE_O_TRACEEXIT)?;
    ptrace::interrupt(thread)?;
    let (mut ready, mut seen, mut failing, mut hit) = (Some(ready), 0, None, None);
    loop {
        let mut signal = None;
        match waitpid(thread, Some(WaitPidFlag::__WALL))? {
            WaitStatus::Exited(..) | WaitStatus::Signaled(..) => return Ok(hit),
            WaitStatus::PtraceEvent(_, _, libc::PTRACE_EVENT_EXIT) => {
                ptrace::detach(thread, None)?;
                return Ok(hit);
            }
            WaitStatus::PtraceSyscall(_) => {
                let mut registers = ptrace::getregs(thread)?;
                if ptrace::syscall_info(thread)?.op != libc::PTRACE_SYSCALL_INFO_ENTRY {
                    if let Some(errno) = failing.take() {
                        registers.rax = -(errno as i64) as u64;
                        ptrace::setregs(thread, registers)?;
                    }
                } else if let Some(call) = traced.concerned(
                    registers.orig_rax,
                    [registers.rdi, registers.rsi, registers.rdx, registers.r10, registers.r8, registers.r9],
                ) {
                    seen += 1;
                    failing = match fault {
                        Fault::Once(errno) => (seen == number).then_some(errno),
                        Fault::ForGood(errno) => (seen >= number).then_some(errno),
                        Fault::Kill => None,
                    };
                    // A descriptor is closed whatever close returns.
                    if failing.is_some() && registers.orig_rax != libc::SYS_close as u64 {
                        registers.orig_rax = u64::MAX;
                        ptrace::setregs(thread, registers)?;
                    }
                    if seen == number {
                        hit = Some(format!("call {seen}, {call}"));
                        if fault == Fault::Kill {
                            kill(thread, Signal::SIGKILL)?;
                        }
                    }
                }
            }
            WaitStatus::Stopped(_, stopped) => signal = Some(stopped),
            _ => ready.take().into_iter().for_each(|ready| ready()),
        }
        match ptrace::syscall(thread, signal) {
            // It was killed.
            Err(Errno::ESRCH) => {}
            other => other?,
        }
    }
}
