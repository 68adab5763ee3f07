//! A private kernel trace: an instance of tracefs with our events only.

use std::fs::File;
use std::io::{self, Read};

use headstart_types::system_says;

use super::depth::page_bytes;
use super::events::{beginnings, EVENT, FAULT, FILLED, MAPPED};
use super::{Error, Number};
use headstart_host::tracefs::{open_pipe, own_name, Tracefs};
use headstart_host::Roots;

/// Buffer of unread events per processor: some 4,000 of them.
const BUFFER_KB: &str = "256";
/// Size of a read, and maximum per call, so that a flood of events does not block everything else.
const PIECE: usize = 64 << 10;
const PIECES: usize = 64;

/// A source of trace events.
pub trait Source {
    /// Passes the events since the last call to `each`, without waiting.
    ///
    /// # Errors
    /// An error of the system.
    fn take(&mut self, each: &mut dyn FnMut(&[u8])) -> io::Result<()>;

    /// Turns tracing on or off; it starts on.
    ///
    /// # Errors
    /// An error of the system.
    fn set_tracing(&mut self, _on: bool) -> io::Result<()> {
        Ok(())
    }
}

/// An instance. Dropping it removes it; the next command that writes removes those of killed processes.
#[derive(Debug)]
pub struct Instance {
    /// The files that turn events on and off.
    switches: Vec<String>,
    pipe: Option<File>,
    piece: Vec<u8>,
    tracefs: Tracefs,
}

impl Instance {
    /// Traces the requests of a device.
    ///
    /// # Errors
    /// There is no tracefs, it lacks the events, or permission is missing. Nothing is left behind.
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
        let filter = format!("dev == {}", packed(number));
        Self::with(roots, &name(roots, number), &[("block", EVENT, filter)])
    }

    /// Traces faults of files on the file systems of these devices: the device `number` and its partitions. It is an
    /// instance of its own, so that faults do not displace requests.
    ///
    /// # Errors
    /// The kernel lacks the events, or permission is missing. Nothing is left behind.
    pub(super) fn faults(roots: &Roots, number: Number, devices: &[Number]) -> Result<Self, Error> {
        let folder = roots.tracing.join("events/filemap");
        if let Some(missing) = [FAULT, FILLED, MAPPED].into_iter().find(|event| !folder.join(event).is_dir()) {
            let problem = format!("there is no {missing}");
            return Err(Error::path(&folder, problem, "Linux 6.12 or later, with filemap tracepoints"));
        }
        let any: Vec<String> = devices.iter().map(|device| format!("s_dev == {}", packed(*device))).collect();
        let any = format!("({})", any.join(" || "));
        let filled = format!("{any}{}", beginnings(page_bytes()));
        let events = [("filemap", FAULT, any.clone()), ("filemap", MAPPED, any), ("filemap", FILLED, filled)];
        Self::with(roots, &format!("{}-faults", name(roots, number)), &events)
    }

    fn with(roots: &Roots, name: &str, events: &[(&str, &str, String)]) -> Result<Self, Error> {
        let folder = Tracefs::folder_of(roots, name);
        let allowed = "root, and an instance of tracefs that can be made";
        let problem = |source: io::Error| Error::path(&folder, system_says(&source), allowed);
        let tracefs = Tracefs::create(roots, name).map_err(problem)?;
        let mut instance = Self { switches: Vec::new(), pipe: None, piece: vec![0; PIECE], tracefs };
        instance.start(events).map_err(problem)?;
        Ok(instance)
    }

    fn start(&mut self, events: &[(&str, &str, String)]) -> io::Result<()> {
        self.tracefs.set("buffer_size_kb", BUFFER_KB)?;
        // Reduces the text, and uses one clock for all processors. If it fails, tracing is only slower.
        let _ = self.tracefs.set("options/context-info", "0");
        let _ = self.tracefs.set("trace_clock", "mono");
        for (system, event, filter) in events {
            self.tracefs.set(&format!("events/{system}/{event}/filter"), filter)?;
            self.switches.push(format!("events/{system}/{event}/enable"));
        }
        self.pipe = Some(open_pipe(&self.tracefs.folder().join("trace_pipe"))?);
        self.set_tracing(true)
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
        self.switches.iter().try_for_each(|switch| self.tracefs.set(switch, if on { "1" } else { "0" }))
    }
}

/// The kernel's packed device number.
fn packed(number: Number) -> u64 {
    (number.major << 20) | number.minor
}

/// The instance's name; a process may trace several devices.
fn name(roots: &Roots, number: Number) -> String {
    own_name(roots, &format!("{}.{}", number.major, number.minor))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use headstart_host::testing::Machine;

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
        // An instance can be created here, but it stays empty.
        assert!(error().contains(&format!("/instances/headstart-{}-", std::process::id())), "{}", error());
        assert_eq!(fs::read_dir(machine.path("tracing/instances")).expect("a folder").count(), 0);
    }
}
