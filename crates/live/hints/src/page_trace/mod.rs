//! A private kernel trace of one command: a tracefs instance that follows its processes and records which pages they
//! read.
//!
//! It is read in binary form (`buffer.rs`): writing text takes the kernel ten times as long. The command belongs to
//! `headstart record`, which needs times and waits, or to `headstart run`, which needs references only.

mod buffer;

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::ops::RangeInclusive;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use headstart_types::system_says;

use buffer::{Field, Pages};

use headstart_host::child::Switches;
use headstart_host::tracefs::{begin, next_name, open_pipe, root, Tracefs};
use headstart_host::PathError;
use headstart_host::Roots;

/// The page-cache events, all of which exist since Linux 6.12.
const READS: [&str; 4] = [ADDED, "mm_filemap_get_pages", "mm_filemap_fault", "mm_filemap_map_pages"];
const ADDED: &str = "mm_filemap_add_to_page_cache";
const SWITCH: &str = "sched_switch";
/// The bit of a task's state that means uninterruptible sleep.
const UNINTERRUPTIBLE: u64 = 2;
/// The requirements, for errors.
const ALLOWED: &str = "root, Linux 6.12 or later with filemap tracepoints, and its tracefs: mount -t tracefs tracefs ";

/// The error of a tracefs in which the kernel is removing an instance.
pub(crate) const BUSY: &str = "is busy: the kernel is removing a trace";

/// An inode in events: the device number as the kernel packs it, and the inode number.
pub(crate) type Inode = (u32, u64);

/// The purpose of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// A recording, with times and task switches; the kernel's buffer of each processor has this many KiB.
    Record(u64),
    /// The references of a command while it runs. The kernel's buffers keep their default size, 1.4 MB per processor,
    /// which holds some 30,000 events: another size costs 10 ms.
    Run,
}

/// The content of an event, in the kernel's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Raw {
    Add(Inode, u64, u64),
    Get(Inode, u64, u64),
    Fault(Inode, u64),
    Map(Inode, u64, u64),
    Sleep,
    Wake,
}

/// An event of a task, with the task's name if it comes from a switch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RawEvent {
    pub time_ns: u64,
    pub pid: u32,
    pub raw: Raw,
    /// Of switches only.
    pub name: Option<[u8; 16]>,
}

/// The fields of the events.
#[derive(Debug)]
struct Formats {
    id: Field,
    pid: Field,
    /// For each of [`READS`]: its id, and the fields device, inode, index, and last index or order.
    reads: [(u64, [Field; 4]); 4],
    /// For recordings: its id, and number, name and state of the task that leaves, number and name of the task that
    /// comes.
    switch: Option<(u64, [Field; 5])>,
}

impl Formats {
    fn read(events: &Path, purpose: Purpose) -> Option<Self> {
        let format =
            |system: &str, event: &str| fs::read_to_string(events.join(system).join(event).join("format")).ok();
        let number = |text: &str| text.lines().find_map(|line| line.strip_prefix("ID: ")?.trim().parse::<u64>().ok());
        let mut reads = Vec::new();
        let mut common = None;
        for event in READS {
            let text = format("filemap", event)?;
            let field = |name| Field::find(&text, name);
            let third = field("last_index").or_else(|| field("order")).or_else(|| field("index"))?;
            reads.push((number(&text)?, [field("s_dev")?, field("i_ino")?, field("index")?, third]));
            common = field("common_type").zip(field("common_pid"));
        }
        let (id, pid) = common?;
        let switch = match purpose {
            Purpose::Run => None,
            Purpose::Record(_) => {
                let text = format("sched", SWITCH)?;
                let names = ["prev_pid", "prev_comm", "prev_state", "next_pid", "next_comm"];
                let fields: Option<Vec<Field>> = names.iter().map(|name| Field::find(&text, name)).collect();
                Some((number(&text)?, fields?.try_into().ok()?))
            }
        };
        Some(Self { id, pid, reads: reads.try_into().ok()?, switch })
    }

    fn parse(&self, time_ns: u64, event: &[u8], mut each: impl FnMut(RawEvent)) {
        let id = self.id.number(event);
        if let Some((_, fields)) = self.switch.as_ref().filter(|(number, _)| *number == id) {
            let [pid, name, state, next_pid, next_name] = fields;
            let mut task = |pid: &Field, name: &Field, raw| {
                let name = name.bytes(event).try_into().ok();
                each(RawEvent { time_ns, pid: pid.number(event) as u32, raw, name });
            };
            if state.number(event) & UNINTERRUPTIBLE != 0 {
                task(pid, name, Raw::Sleep);
            }
            return task(next_pid, next_name, Raw::Wake);
        }
        let Some(at) = self.reads.iter().position(|(number, _)| *number == id) else { return };
        let [device, inode, index, third] = self.reads[at].1.map(|field| field.number(event));
        let inode = (device as u32, inode);
        let raw = match at {
            0 => Raw::Add(inode, index, 1 << third.min(31)),
            1 => Raw::Get(inode, index, third),
            2 => Raw::Fault(inode, index),
            _ => Raw::Map(inode, index, third),
        };
        each(RawEvent { time_ns, pid: self.pid.number(event) as u32, raw, name: None });
    }
}

/// Parses a list such as "0-3,8"; empty if it cannot be parsed.
fn numbers(list: &str) -> Vec<RangeInclusive<u32>> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.parse().ok()?..=last.parse().ok()?)
    };
    list.trim().split(',').map(range).collect::<Option<_>>().unwrap_or_default()
}

/// The text of `events/header_page`, which the kernel returns only at the first read.
fn header_page(events: &Path) -> String {
    let mut text = vec![0; 4096];
    let read = File::open(events.join("header_page")).and_then(|mut file| file.read(&mut text)).unwrap_or(0);
    String::from_utf8_lossy(&text[..read]).into_owned()
}

/// The instance. Dropping it removes it, or clears it if it is the one that is kept; after a killed process, a later
/// command does so.
#[derive(Debug)]
pub(crate) struct PageTrace {
    formats: Formats,
    pages: Pages,
    /// One per processor.
    pipes: Vec<File>,
    page: Vec<u8>,
    /// For the command to start with.
    pub switches: Option<Switches>,
    tracefs: Tracefs,
}

impl PageTrace {
    /// Creates it; it follows no process yet. If the kernel is still removing another one, waits for that for up to
    /// `patience`.
    ///
    /// # Errors
    /// There is no tracefs, or it lacks these events or may not be used. Nothing is left behind then.
    pub fn new(roots: &Roots, purpose: Purpose, patience: Duration) -> Result<Self, PathError> {
        let root = &root(roots);
        let allowed = format!("{ALLOWED}{}", roots.tracing.display());
        let problem = |problem: &str| PathError::new(&roots.tracing, problem, &*allowed);
        let starting = begin(roots, patience).map_err(|error| match error.kind() {
            io::ErrorKind::PermissionDenied => problem("may not be used without root"),
            io::ErrorKind::ResourceBusy => problem(BUSY),
            _ => problem("there is no tracefs"),
        })?;
        let events = root.join("events");
        let formats =
            Formats::read(&events, purpose).ok_or_else(|| problem("there are no tracepoints of the page cache"))?;
        let pages =
            Pages::parse(&header_page(&events)).ok_or_else(|| problem("events/header_page cannot be understood"))?;
        let name = next_name(roots, if purpose == Purpose::Run { "run" } else { "record" });
        let refused =
            |source: io::Error| PathError::new(&Tracefs::folder_of(roots, &name), system_says(&source), &*allowed);
        let kept = if purpose == Purpose::Run { Tracefs::kept(roots) } else { None };
        let tracefs = kept.map_or_else(|| Tracefs::create(roots, &name), Ok).map_err(refused)?;
        // From here on, dropping this removes the instance.
        let page = vec![0; pages.bytes];
        let mut instance = Self { formats, pages, pipes: Vec::new(), page, switches: None, tracefs };
        let online = fs::read_to_string(roots.sys.join("devices/system/cpu/online")).unwrap_or_default();
        instance.start(purpose, starting, &numbers(&online)).map_err(refused)?;
        Ok(instance)
    }

    fn start(&mut self, purpose: Purpose, starting: File, online: &[RangeInclusive<u32>]) -> io::Result<()> {
        if let Purpose::Record(buffer_kib) = purpose {
            self.tracefs.set("buffer_size_kb", &buffer_kib.to_string())?;
            self.tracefs.set("trace_clock", "mono")?;
            // The oldest events are kept: the start of a command matters more than its end.
            self.tracefs.set("options/overwrite", "0")?;
        }
        self.switches = Some(self.tracefs.follow(starting)?);
        let mut cpus: Vec<PathBuf> = fs::read_dir(self.tracefs.folder().join("per_cpu"))?
            .map(|cpu| cpu.map(|cpu| cpu.path()))
            .collect::<Result<_, _>>()?;
        cpus.sort();
        // A virtual machine may be prepared for hundreds of processors that it does not have, and each would be polled
        // again and again.
        let number = |cpu: &Path| cpu.file_name()?.to_str()?.strip_prefix("cpu")?.parse::<u32>().ok();
        let is_online = |cpu: &u32| online.is_empty() || online.iter().any(|range| range.contains(cpu));
        for cpu in cpus.iter().filter(|cpu| number(cpu).as_ref().is_none_or(is_online)) {
            self.pipes.push(open_pipe(&cpu.join("trace_pipe_raw"))?);
        }
        READS.iter().try_for_each(|event| self.enable("filemap", event, true))?;
        self.formats.switch.map_or(Ok(()), |_| self.enable("sched", SWITCH, true))
    }

    fn enable(&self, system: &str, event: &str, on: bool) -> io::Result<()> {
        self.tracefs.set(&format!("events/{system}/{event}/enable"), if on { "1" } else { "0" })
    }

    /// Stops tracing pages that enter the page cache.
    pub fn uses_only(&self) {
        let _ = self.enable("filemap", ADDED, false);
    }

    /// See [`Tracefs::leave`]. `is_last`: this process ends now.
    pub fn leave(self, is_last: bool) {
        let Self { pipes, switches, tracefs, .. } = self;
        // While they are open, the instance cannot be removed.
        drop((pipes, switches));
        tracefs.leave(is_last);
    }

    /// Files that become readable when the buffer of a processor is half full (`buffer_percent`).
    pub fn half_full(&self) -> impl Iterator<Item = i32> + use<'_> {
        self.pipes.iter().map(AsRawFd::as_raw_fd)
    }

    /// Calls `each` for the events since the last call, one processor after another.
    pub fn take(&mut self, mut each: impl FnMut(RawEvent)) -> io::Result<()> {
        let Self { formats, pages, pipes, page, .. } = self;
        for pipe in pipes {
            loop {
                match pipe.read(page) {
                    Ok(0) => break,
                    Ok(bytes) => pages.events(&page[..bytes], |time, event| formats.parse(time, event, &mut each)),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }

    /// The number of dropped events.
    pub fn lost(&self) -> u64 {
        let count = |text: String| -> u64 {
            let value = |line: &str, name: &str| line.strip_prefix(name)?.trim().parse::<u64>().ok();
            let names = ["overrun:", "commit overrun:", "dropped events:"];
            text.lines().flat_map(|line| names.iter().filter_map(move |name| value(line, name))).sum()
        };
        let cpus = fs::read_dir(self.tracefs.folder().join("per_cpu")).into_iter().flatten().flatten();
        cpus.filter_map(|cpu| fs::read_to_string(cpu.path().join("stats")).ok()).map(count).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_processors() {
        assert_eq!(numbers("0-3,8\n"), [0..=3, 8..=8]);
        assert_eq!(numbers("0\n"), [0..=0]);
        assert!(["", "0-3,x", "-"].iter().all(|list| numbers(list).is_empty()));
    }
}
