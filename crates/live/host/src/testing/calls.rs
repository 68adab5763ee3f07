//! Makes every system call on a folder fail in turn, once and permanently, and kills the process at each: SQLite's way
//! of testing its storage.
//!
//! The work under test runs in a process of its own, in a traced thread (`traced.rs`). Calls that name the folder or
//! something below it, by path or descriptor, are counted; the call with a given number is not executed and returns an
//! error instead. The number grows until the work ends before it is reached.

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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Only this call fails.
    Once(Errno),
    /// This call and all later ones fail.
    ForGood(Errno),
    /// The process is killed before this call.
    Kill,
}

/// EACCES as well, since libraries treat some errors as if nothing were there.
pub const FAULTS: [Fault; 4] =
    [Fault::Once(Errno::EIO), Fault::ForGood(Errno::EIO), Fault::Once(Errno::EACCES), Fault::Kill];

/// The outcome of one run of the work.
#[derive(Debug)]
pub struct Outcome {
    /// The call that failed, as text; `None` if the work ended before.
    pub call: Option<String>,
    pub fault: Fault,
    /// The work's result; `None` if it was killed.
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

/// For other machines, whose registers have other names.
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

/// Runs `work` in another process, each time on a machine of `prepare`, until each of its calls on the folder `below`
/// the machine has failed in each way, and passes what is left to `check`. `test` is the path of the calling test,
/// which is the only one the process runs. Returns false, with a message, if processes cannot be traced.
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

/// For each machine named on stdin, does the work in a new thread after another line.
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

    /// The rest of the next line with this prefix.
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

    /// A store without protection: the old content is lost in between. The test must find that.
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
