//! A private kernel trace: an instance of tracefs, which holds our events only.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use headstart_types::system_says;

use super::depth::page_bytes;
use super::events::{beginnings, EVENT, FAULT, FILLED, MAPPED};
use super::{Error, Number, Process, Roots};

/// Of the events that have not been read: for each processor. Some 4,000 of them.
const BUFFER_KB: &str = "256";
/// Ours begin so; the process that it belongs to follows.
const PREFIX: &str = "headstart-";
/// Read at a time; and at most at once, so that a flood does not keep us from all else.
const PIECE: usize = 64 << 10;
const PIECES: usize = 64;

/// Where events come from.
pub trait Source {
    /// Gives `each` what has come since the last time, without waiting.
    ///
    /// # Errors
    /// As the system says.
    fn take(&mut self, each: &mut dyn FnMut(&[u8])) -> io::Result<()>;

    /// Whether events are traced from now on. At first they are.
    ///
    /// # Errors
    /// As the system says.
    fn set_tracing(&mut self, _on: bool) -> io::Result<()> {
        Ok(())
    }
}

/// The instance. Dropping it removes it; the next command that writes removes that of a killed process.
#[derive(Debug)]
pub struct Instance {
    folder: PathBuf,
    /// The files that turn events on and off.
    switches: Vec<String>,
    pipe: Option<File>,
    piece: Vec<u8>,
}

impl Instance {
    /// Requests of the device of that number, from now on.
    ///
    /// # Errors
    /// There is no tracefs, it has no such events, or it may not be used. Then nothing is left.
    pub(super) fn new(roots: &Roots, number: Number) -> Result<Self, Error> {
        let root = &roots.tracing;
        let missing = |problem: &str| {
            let allowed = format!(
                "a kernel with block tracepoints, and its tracefs: mount -t tracefs tracefs {}",
                root.display()
            );
            Error::path(root, problem, allowed)
        };
        let instances = root.join("instances");
        if !instances.is_dir() {
            return Err(missing("there is no tracefs"));
        }
        if !root.join("events/block").join(EVENT).is_dir() {
            return Err(missing("there are no block tracepoints"));
        }
        sweep(roots);
        let filter = format!("dev == {}", packed(number));
        Self::with(instances.join(name(Process::own(roots), number)), &[("block", EVENT, filter)])
    }

    /// Faults of files on the file systems of these devices, from now on: the device of that number and its partitions. An
    /// instance of its own, so that they do not push requests out.
    ///
    /// # Errors
    /// The kernel has no such events, or they may not be used. Then nothing is left.
    pub(super) fn faults(roots: &Roots, number: Number, devices: &[Number]) -> Result<Self, Error> {
        let folder = roots.tracing.join("events/filemap");
        if let Some(missing) = [FAULT, FILLED, MAPPED].into_iter().find(|event| !folder.join(event).is_dir()) {
            let problem = format!("there is no {missing}");
            return Err(Error::path(&folder, problem, "Linux 6.12 or later, with filemap tracepoints"));
        }
        let any: Vec<String> = devices.iter().map(|device| format!("s_dev == {}", packed(*device))).collect();
        let any = format!("({})", any.join(" || "));
        let filled = format!("{any}{}", beginnings(page_bytes()));
        let own = name(Process::own(roots), number);
        let events = [("filemap", FAULT, any.clone()), ("filemap", MAPPED, any), ("filemap", FILLED, filled)];
        Self::with(roots.tracing.join("instances").join(format!("{own}-faults")), &events)
    }

    fn with(folder: PathBuf, events: &[(&str, &str, String)]) -> Result<Self, Error> {
        let allowed = "root, and an instance of tracefs that can be made";
        let problem = |source: io::Error| Error::path(&folder, system_says(&source), allowed);
        fs::create_dir(&folder).map_err(problem)?;
        // From here on it goes with this.
        let mut instance = Self { folder: folder.clone(), switches: Vec::new(), pipe: None, piece: vec![0; PIECE] };
        instance.start(events).map_err(problem)?;
        Ok(instance)
    }

    fn start(&mut self, events: &[(&str, &str, String)]) -> io::Result<()> {
        self.set("buffer_size_kb", BUFFER_KB)?;
        // Less to print and to read; and one clock for all processors. Without them it works as well, but slower.
        let _ = self.set("options/context-info", "0");
        let _ = self.set("trace_clock", "mono");
        for (system, event, filter) in events {
            self.set(&format!("events/{system}/{event}/filter"), filter)?;
            self.switches.push(format!("events/{system}/{event}/enable"));
        }
        let pipe = self.folder.join("trace_pipe");
        self.pipe = Some(OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(pipe)?);
        self.set_tracing(true)
    }

    fn set(&self, file: &str, value: &str) -> io::Result<()> {
        OpenOptions::new().write(true).open(self.folder.join(file))?.write_all(value.as_bytes())
    }
}

impl Source for Instance {
    fn take(&mut self, each: &mut dyn FnMut(&[u8])) -> io::Result<()> {
        let Some(pipe) = &mut self.pipe else { return Ok(()) };
        for _ in 0..PIECES {
            match pipe.read(&mut self.piece) {
                Ok(0) => return Ok(()),
                Ok(bytes) => each(&self.piece[..bytes]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn set_tracing(&mut self, on: bool) -> io::Result<()> {
        self.switches.iter().try_for_each(|switch| self.set(switch, if on { "1" } else { "0" }))
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // While it is open it cannot be removed.
        self.pipe = None;
        let _ = fs::remove_dir(&self.folder);
    }
}

/// Removes the instances of processes that have ended. The kernel refuses to remove one in use.
pub(crate) fn sweep(roots: &Roots) {
    for entry in fs::read_dir(roots.tracing.join("instances")).into_iter().flatten().flatten() {
        if owner(&entry.file_name().to_string_lossy()).is_some_and(|owner| !owner.lives(roots)) {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

/// As the kernel packs numbers of devices.
fn packed(number: Number) -> u64 {
    (number.major << 20) | number.minor
}

/// A process may follow several devices.
fn name(owner: Process, number: Number) -> String {
    named(owner, &format!("{}.{}", number.major, number.minor))
}

/// The instance of this process for `what`.
pub(crate) fn own_name(roots: &Roots, what: &str) -> String {
    named(Process::own(roots), what)
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
    use super::super::testing::Machine;
    use super::*;

    #[test]
    fn without_traces_it_says_so_and_leaves_nothing() {
        let machine = Machine::new();
        let number = Number { major: 7, minor: 0 };
        let error = || Instance::new(&machine.roots(), number).expect_err("refused").to_string();
        let root = machine.path("tracing").display().to_string();
        let allowed =
            format!("allowed: a kernel with block tracepoints, and its tracefs: mount -t tracefs tracefs {root}");
        assert_eq!(error(), format!("{root}: there is no tracefs; {allowed}"));
        fs::create_dir_all(machine.path("tracing/instances")).expect("there is room");
        assert_eq!(error(), format!("{root}: there are no block tracepoints; {allowed}"));
        fs::create_dir_all(machine.path("tracing/events/block").join(EVENT)).expect("there is room");
        // Here it can be made, but nothing appears in it.
        assert!(error().contains(&format!("/instances/headstart-{}-", std::process::id())), "{}", error());
        assert_eq!(fs::read_dir(machine.path("tracing/instances")).expect("a folder").count(), 0);
    }

    #[test]
    fn what_the_dead_have_left_goes() {
        let machine = Machine::new();
        let instances = machine.path("tracing/instances");
        machine.write("proc/77/stat", &format!("77 (a) b) S {} 4242 0", "1 ".repeat(18).trim()));
        // Two devices of one process.
        let live = Process { pid: 77, start_ticks: 4242 };
        assert_eq!(owner(&format!("{}-faults", name(live, Number { major: 8, minor: 0 }))), Some(live));
        let [one, other] = [0, 16].map(|minor| name(live, Number { major: 8, minor }));
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
