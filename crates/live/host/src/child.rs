//! Starts a command so that the kernel traces it from its first instruction.
//!
//! The command is a child in the same process group, so that a terminal's signals reach it as usual; it is not killed
//! when this process is. Signals from other processes are forwarded.

#![allow(unsafe_code)]

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::OnceLock;

/// Signals forwarded if another process sent them. A terminal's signals reach the command directly.
const FORWARDED: [libc::c_int; 7] =
    [libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGHUP, libc::SIGUSR1, libc::SIGUSR2, libc::SIGALRM];

/// The command that receives signals; 0: none.
static CHILD: AtomicI32 = AtomicI32::new(0);
/// A signal that arrived before the command's pid was known; 0: none.
static EARLY: AtomicI32 = AtomicI32::new(0);
/// How the first command has ended.
static ENDED: OnceLock<Status> = OnceLock::new();

/// How the command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// It exited.
    Code(i32),
    /// It was killed by a signal.
    Signal(i32),
}

impl Status {
    /// The exit status as in a shell: the code, or 128 plus the signal number.
    #[must_use]
    pub fn shell_code(self) -> i32 {
        match self {
            Self::Code(code) => code,
            Self::Signal(signal) => 128 + signal,
        }
    }
}

impl From<ExitStatus> for Status {
    fn from(status: ExitStatus) -> Self {
        status.code().map_or_else(|| Self::Signal(status.signal().unwrap_or(libc::SIGKILL)), Self::Code)
    }
}

/// Waits for the command that [`start`] has started when this program itself fails, since the user still wants the
/// command to run. `None` if none was started.
#[must_use]
pub fn outlive() -> Option<Status> {
    let child = CHILD.load(Ordering::SeqCst);
    if child > 0 {
        let mut status = 0;
        let waited = loop {
            // SAFETY: `status` lives. Another thread may have waited for the command in the meantime.
            let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
            if waited >= 0 || io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
                break waited;
            }
        };
        if waited == child {
            return Some(ExitStatus::from_raw(status).into());
        }
    }
    ENDED.get().copied()
}

extern "C" fn forward_signal(signal: libc::c_int, info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    let child = CHILD.load(Ordering::SeqCst);
    // SAFETY: the kernel passes a valid `info` to such a handler. The kernel's own signals (a terminal's Ctrl-C) go to
    // the whole group.
    if unsafe { (*info).si_code } > 0 {
        return;
    }
    if child > 0 {
        send(child, signal);
    } else {
        EARLY.store(signal, Ordering::SeqCst);
    }
}

fn send(child: i32, signal: libc::c_int) {
    // SAFETY: no memory is involved, and the call is async-signal-safe.
    unsafe { libc::kill(child, signal) };
}

/// Forwards signals to the command from now on. Ignored signals stay ignored, also for the command. Returns the
/// previous handlers.
fn forward_signals() -> Vec<(libc::c_int, libc::sigaction)> {
    let mut before = Vec::new();
    for signal in FORWARDED {
        // SAFETY: both structures are zeroed, which is valid, or written by the call; the handler has the signature for
        // SA_SIGINFO.
        unsafe {
            let mut old: libc::sigaction = std::mem::zeroed();
            libc::sigaction(signal, std::ptr::null(), &raw mut old);
            if old.sa_sigaction == libc::SIG_IGN {
                continue;
            }
            let mut new: libc::sigaction = std::mem::zeroed();
            new.sa_sigaction = forward_signal as *const () as usize;
            new.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
            libc::sigaction(signal, &raw const new, std::ptr::null_mut());
            before.push((signal, old));
        }
    }
    before
}

/// Decimal digits without allocation, for use between fork and exec.
fn decimal(mut number: u32, digits: &mut [u8; 10]) -> &[u8] {
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return &digits[at..];
        }
    }
}

/// Files to which the child writes its pid and then 1, so that it is traced; and a lock held until then (`tracefs.rs`).
pub type Switches = [File; 3];

/// Starts the command with our streams, environment and working directory. Between fork and exec it writes its pid into
/// the first of `switches` and 1 into the second, so that no event is lost and none comes from another process.
///
/// # Errors
/// The program does not exist, or cannot be run or traced.
pub fn start(command: &[OsString], mut switches: Option<Switches>) -> io::Result<Started> {
    let mut words = command.iter();
    let program = words.next().ok_or(io::ErrorKind::InvalidInput)?;
    let mut child = Command::new(program);
    child.args(words);
    // SAFETY: the code between fork and exec only makes system calls.
    unsafe {
        child.pre_exec(move || {
            // Python ignores these, and the command would inherit that.
            for signal in [libc::SIGPIPE, libc::SIGXFSZ] {
                libc::signal(signal, libc::SIG_DFL);
            }
            let Some([followers, tracing, _]) = &mut switches else { return Ok(()) };
            followers.write_all(decimal(std::process::id(), &mut [0; 10]))?;
            tracing.write_all(b"1")
        });
    }
    let before = forward_signals();
    match child.spawn() {
        Ok(child) => {
            CHILD.store(child.id() as i32, Ordering::SeqCst);
            match EARLY.swap(0, Ordering::SeqCst) {
                0 => {}
                signal => send(child.id() as i32, signal),
            }
            Ok(Started { child, before })
        }
        Err(error) => {
            restore_handlers(&before);
            Err(error)
        }
    }
}

/// A running command. Signals are forwarded until this is dropped.
pub struct Started {
    child: Child,
    before: Vec<(libc::c_int, libc::sigaction)>,
}

impl Started {
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits for the command to end.
    ///
    /// # Errors
    /// The system call fails.
    pub fn wait(&mut self) -> io::Result<Status> {
        let status = self.child.wait()?.into();
        let _ = ENDED.set(status);
        CHILD.store(0, Ordering::SeqCst);
        Ok(status)
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        restore_handlers(&self.before);
    }
}

fn restore_handlers(before: &[(libc::c_int, libc::sigaction)]) {
    for (signal, before) in before {
        // SAFETY: the system returned this handler before.
        unsafe { libc::sigaction(*signal, before, std::ptr::null_mut()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_outlives_a_fault() {
        assert_eq!(outlive(), None);
        let run = |script: &str| start(&["sh", "-c", script].map(OsString::from), None).expect("there is a shell");
        let running = run("sleep 0.1; exit 7");
        assert_eq!(outlive(), Some(Status::Code(7)));
        drop(running);
        let mut waited_for = run("kill -9 $$");
        assert_eq!(waited_for.wait().expect("a child"), Status::Signal(libc::SIGKILL));
        assert_eq!(outlive(), Some(Status::Signal(libc::SIGKILL)));
    }

    #[test]
    fn numbers_in_digits() {
        for number in [0, 7, 10, 4_194_303, u32::MAX] {
            assert_eq!(super::decimal(number, &mut [0; 10]), number.to_string().as_bytes());
        }
    }
}
