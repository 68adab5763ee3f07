//! The command: started so that the kernel follows it from its first instruction, and left to itself.
//!
//! It is a child in the same process group, so that a terminal's signals reach it as they would without us; it is not killed when
//! we are. Signals that another process sends to us are handed on.

#![allow(unsafe_code)]

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicI32, Ordering};

/// Signals that are handed on where another process has sent them. Those of a terminal reach the command itself.
const HANDED_ON: [libc::c_int; 7] =
    [libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGHUP, libc::SIGUSR1, libc::SIGUSR2, libc::SIGALRM];

/// The command that gets them; 0: none.
static CHILD: AtomicI32 = AtomicI32::new(0);
/// A signal that came before the command's number was known; 0: none.
static EARLY: AtomicI32 = AtomicI32::new(0);

/// How the command has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// By itself.
    Code(i32),
    /// By a signal.
    Signal(i32),
}

impl Status {
    /// As shells say it: the exit status, or 128 and the number of the signal.
    #[must_use]
    pub fn shell_code(self) -> i32 {
        match self {
            Self::Code(code) => code,
            Self::Signal(signal) => 128 + signal,
        }
    }
}

extern "C" fn hand_on(signal: libc::c_int, info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    let child = CHILD.load(Ordering::SeqCst);
    // SAFETY: the kernel gives a handler of this kind a valid `info`.
    // What the kernel sends (a terminal's Ctrl-C) goes to the whole group.
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
    // SAFETY: no memory is involved, and a handler may call it.
    unsafe { libc::kill(child, signal) };
}

/// From now on signals go to the command. Those that were ignored stay ignored, for it too. Returns what was done with each before.
fn hand_on_signals() -> Vec<(libc::c_int, libc::sigaction)> {
    let mut before = Vec::new();
    for signal in HANDED_ON {
        // SAFETY: both structures are zero, which is a valid value, or written by the call; the handler has the form that SA_SIGINFO wants.
        unsafe {
            let mut old: libc::sigaction = std::mem::zeroed();
            libc::sigaction(signal, std::ptr::null(), &raw mut old);
            if old.sa_sigaction == libc::SIG_IGN {
                continue;
            }
            let mut new: libc::sigaction = std::mem::zeroed();
            new.sa_sigaction = hand_on as *const () as usize;
            new.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
            libc::sigaction(signal, &raw const new, std::ptr::null_mut());
            before.push((signal, old));
        }
    }
    before
}

/// The number in decimal digits, without memory of its own: between fork and exec.
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

/// Where a process writes its number to be followed, and then 1 to begin; and what is held until then (`tracefs.rs`).
pub type Switches = [File; 3];

/// Starts the command with our streams, environment and folder. Between fork and exec it writes its number into the first of
/// `switches` and 1 into the second: no event is lost, and none is of another process.
///
/// # Errors
/// There is no such program, or it cannot be run or followed.
pub fn start(command: &[OsString], mut switches: Option<Switches>) -> io::Result<Started> {
    let mut words = command.iter();
    let program = words.next().ok_or(io::ErrorKind::InvalidInput)?;
    let mut child = Command::new(program);
    child.args(words);
    // SAFETY: what runs between fork and exec only makes system calls.
    unsafe {
        child.pre_exec(move || {
            // Python ignores these, which the command would inherit.
            for signal in [libc::SIGPIPE, libc::SIGXFSZ] {
                libc::signal(signal, libc::SIG_DFL);
            }
            let Some([followers, tracing, _]) = &mut switches else { return Ok(()) };
            followers.write_all(decimal(std::process::id(), &mut [0; 10]))?;
            tracing.write_all(b"1")
        });
    }
    let before = hand_on_signals();
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
            take_back(&before);
            Err(error)
        }
    }
}

/// The command while it runs. Signals are handed on until this is dropped.
pub struct Started {
    child: Child,
    before: Vec<(libc::c_int, libc::sigaction)>,
}

impl Started {
    /// Its number.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits for the end of the command, which need not have come.
    ///
    /// # Errors
    /// As the system says.
    pub fn wait(&mut self) -> io::Result<Status> {
        let status = self.child.wait()?;
        CHILD.store(0, Ordering::SeqCst);
        Ok(status.code().map_or_else(|| Status::Signal(status.signal().unwrap_or(libc::SIGKILL)), Status::Code))
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        take_back(&self.before);
    }
}

fn take_back(before: &[(libc::c_int, libc::sigaction)]) {
    for (signal, before) in before {
        // SAFETY: it is what the system said was there.
        unsafe { libc::sigaction(*signal, before, std::ptr::null_mut()) };
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn numbers_in_digits() {
        for number in [0, 7, 10, 4_194_303, u32::MAX] {
            assert_eq!(super::decimal(number, &mut [0; 10]), number.to_string().as_bytes());
        }
    }
}
