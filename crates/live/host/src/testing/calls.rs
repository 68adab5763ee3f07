//! Every system call on a folder fails in turn, once and for good, and the process is killed at each: SQLite's way of testing what it keeps.
//!
//! The work under test runs in a process of its own, in a thread that is traced (`traced.rs`). Calls that name the folder or something below
//! it, by a path or by a descriptor, are counted; the call of a number is not executed and returns an error instead. The number grows until
//! the work ends before it is reached.

use std::env;
use std::fmt;
use std::io::{self, BufRead, BufReader, Write};
use std::mem::ManuallyDrop;
#[cfg(not(all(target_arch = "x86_64", target_env = "gnu")))]
use std::path::Path;
use std::process::{exit, Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread;

use nix::errno::Errno;
use nix::unistd::gettid;

use super::Machine;

/// What happens at a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It fails.
    Once(Errno),
    /// It and all later ones fail.
    ForGood(Errno),
    /// The process is killed before it.
    Kill,
}

/// No right: libraries take some errors for nothing there.
pub const FAULTS: [Fault; 4] =
    [Fault::Once(Errno::EIO), Fault::ForGood(Errno::EIO), Fault::Once(Errno::EACCES), Fault::Kill];

/// What came of one run of the work.
#[derive(Debug)]
pub struct Outcome {
    /// The call at which it happened, for the reader; `None` if the work ended before.
    pub call: Option<String>,
    pub fault: Fault,
    /// What the work returned; `None` if it was killed.
    pub said: Option<String>,
}

impl fmt::Display for Outcome {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let call = self.call.as_deref().unwrap_or("no call");
        write!(to, "{:?} at {call}: {:?}", self.fault, self.said)
    }
}

#[cfg(all(target_arch = "x86_64", target_env = "gnu"))]
pub use super::traced::drive;

/// As on other machines, whose registers have other names.
///
/// # Errors
/// Always.
#[cfg(not(all(target_arch = "x86_64", target_env = "gnu")))]
pub fn drive(_: i32, _: &Path, _: usize, _: Fault, _: impl FnOnce()) -> nix::Result<Option<String>> {
    Err(Errno::ENOSYS)
}

const WORKS: &str = "HEADSTART_TEST_WORKS";
const THREAD: &str = "thread of the work: ";
const SAID: &str = "the work said: ";

/// Runs `work` on a machine of `prepare`, in another process, until each of its calls on the folder `below` the machine has failed in each
/// way, and gives `check` what is left. `test` is the path of the test that calls this: the process runs nothing else. Returns false, and
/// says so, where processes cannot be traced.
pub fn each(
    test: &str,
    below: &str,
    work: impl Fn(&Machine) -> String + Sync,
    prepare: impl Fn() -> Machine,
    check: impl Fn(&Machine, &Outcome),
) -> bool {
    if env::var_os(WORKS).is_some() {
        carry_out(&work);
    }
    let mut worker = Worker::start(test);
    for fault in FAULTS {
        for number in 1.. {
            let machine = prepare();
            let outcome = match worker.attempt(&machine, below, number, fault) {
                Err(Errno::EPERM | Errno::ENOSYS) => {
                    eprintln!("SKIPPED: processes cannot be traced here");
                    return false;
                }
                outcome => outcome.expect("it can be traced"),
            };
            if outcome.said.is_none() {
                worker = Worker::start(test);
            }
            check(&machine, &outcome);
            if outcome.call.is_none() {
                assert!(number > 1, "no call of the work concerns {}", machine.path(below).display());
                break;
            }
        }
    }
    true
}

/// Does the work on each machine that is named on stdin, in a thread of its own, after another line.
fn carry_out(work: &(impl Fn(&Machine) -> String + Sync)) -> ! {
    let line = || io::stdin().lines().next().and_then(Result::ok);
    while let Some(folder) = line() {
        let machine = ManuallyDrop::new(Machine(folder.into()));
        let said = thread::scope(|scope| {
            let traced = scope.spawn(|| {
                println!("\n{THREAD}{}", gettid());
                line().map(|_| work(&machine))
            });
            traced.join().expect("no panic")
        });
        println!("\n{SAID}{}", said.unwrap_or_default().replace('\n', "\\n"));
    }
    exit(0)
}

/// The process that does the work.
struct Worker {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Worker {
    fn start(test: &str) -> Self {
        let mut command = Command::new(env::current_exe().expect("a program"));
        command.args([test, "--exact", "--nocapture"]).env(WORKS, "");
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
        let input = process.stdin.take().expect("a pipe");
        let output = BufReader::new(process.stdout.take().expect("a pipe"));
        Self { process, input, output }
    }

    fn attempt(&mut self, machine: &Machine, below: &str, number: usize, fault: Fault) -> nix::Result<Outcome> {
        writeln!(self.input, "{}", machine.path("").display()).expect("it waits");
        let thread = self.line(THREAD).expect("a thread").parse().expect("a number");
        let go = || writeln!(self.input).expect("it waits");
        let call = drive(thread, &machine.path(below), number, fault, go)?;
        let is_killed = fault == Fault::Kill && call.is_some();
        let outcome = Outcome { call, fault, said: self.line(SAID) };
        assert_eq!(is_killed, outcome.said.is_none(), "{outcome}");
        Ok(outcome)
    }

    /// The rest of the next line that begins so.
    fn line(&mut self, begin: &str) -> Option<String> {
        let mut lines = (&mut self.output).lines().map_while(Result::ok);
        lines.find_map(|line| Some(line.strip_prefix(begin)?.to_owned()))
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A store that is none: what it replaces is lost in between. That has to be found.
    #[test]
    fn a_file_that_is_written_in_its_place_is_found_out() {
        let lost = std::cell::RefCell::new(Vec::new());
        let work = |machine: &Machine| match fs::write(machine.path("state/file"), "new") {
            Ok(()) => "written".to_owned(),
            Err(error) => error.to_string(),
        };
        let prepare = || {
            let machine = Machine::new();
            machine.write("state/file", "old");
            machine
        };
        let traced = each(
            "testing::calls::tests::a_file_that_is_written_in_its_place_is_found_out",
            "state",
            work,
            prepare,
            |machine, outcome| {
                let (left, call) = (machine.read("state/file"), outcome.call.as_deref().unwrap_or("no call"));
                match outcome.said.as_deref() {
                    Some("written") => assert_eq!(left, "new", "{outcome}"),
                    Some(said) => assert!(said.contains("os error"), "{outcome}"),
                    None => assert_eq!(outcome.fault, Fault::Kill),
                }
                if !["old", "new"].contains(&&*left) {
                    assert_eq!(left, "", "{outcome}");
                    lost.borrow_mut().push(format!(
                        "{:?} {}",
                        outcome.fault,
                        call.split(" of ").next().expect("a part")
                    ));
                }
            },
        );
        let found = [
            "Once(EIO) call 2, write",
            "ForGood(EIO) call 2, write",
            "Once(EACCES) call 2, write",
            "Kill call 2, write",
        ];
        let lost = lost.into_inner();
        assert!(lost == found || !traced, "{lost:?}");
    }
}
