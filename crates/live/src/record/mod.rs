//! Records what a command reads: every page that it and its children need from the page cache, in order.
//!
//! The kernel tells: an instance of tracefs of one's own, with the tracepoints of the page cache and of task switches,
//! limited to the command's processes, which `fork` adds to. Nothing of the command is changed; it is not stopped at any
//! system call. This process reads the kernel's buffers every few milliseconds, in their binary form.
//!
//! - `child.rs`: the command, followed from its first instruction; `instance.rs`: the kernel's trace; `ring.rs`: its pages;
//! - `fold.rs`: from events to reads, hits and waits; `intervals.rs`: ranges of pages;
//! - `places.rs`: from inodes to files.
//!
//! Not seen: pages that threads of the kernel read on behalf of the command (io_uring's workers and pollers), and accesses to
//! mapped pages that need no fault.

mod child;
mod fold;
mod instance;
mod intervals;
mod places;
mod ring;

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::io;
use std::process::Child;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use headstart_trace::hints::{About, FileKind, Read, RecordedFile, RecordedProcess, Recording, READS_MAX};
use headstart_types::{system_says, KeyError};
use nix::time::{clock_gettime, ClockId};
use serde::Serialize;

use fold::{Event, Fold, What};
use instance::{Inode, Instance, Raw, RawEvent};
use places::{refresh_all, Place, Places};

use crate::tune::Roots;
use crate::PathError;

/// The kernel's buffer for each processor: a command that reads cached pages as fast as it can fills it in a tenth of a second.
pub const BUFFER_KIB: u64 = 4096;
/// How often buffers are read.
const PAUSE: Duration = Duration::from_millis(10);
/// Where the kernel is told to drop what it caches.
const DROP_CACHES: &str = "/proc/sys/vm/drop_caches";

/// What to record, and how.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where the kernel's file systems are.
    pub roots: Roots,
    /// The program and its arguments; at least the program.
    pub command: Vec<String>,
    /// Whether to drop the page cache, and the caches of names and inodes, before.
    pub cold: bool,
    /// The kernel's buffer for each processor; [`BUFFER_KIB`] unless it is too small.
    pub buffer_kib: u64,
}

/// Why nothing was recorded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A key.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// A file, or the command.
    #[error(transparent)]
    Path(#[from] PathError),
}

/// What a recording holds, in numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// References, and how many of them were cached.
    pub references: u64,
    /// Those that were cached.
    pub hits: u64,
    /// Files with references, block devices not counted.
    pub files: u64,
    /// Files without a path: of no use for prefetching.
    pub unnamed_files: u64,
    /// Distinct bytes of files that came into the cache and were referenced.
    pub miss_bytes: u64,
    /// The same of block devices: metadata.
    pub metadata_bytes: u64,
    /// Bytes that the kernel has read ahead and that were not referenced.
    pub unused_read_ahead_bytes: u64,
    /// Waits for devices, all processes together.
    pub wait_ns: u64,
    /// Events that the kernel has dropped.
    pub lost_events: u64,
}

/// Runs the command and records it. `started` is told the number of its process; `between` is called every few
/// milliseconds, and ends the recording, not the command, by returning false.
///
/// # Errors
/// Root or a tracefs is missing, caches cannot be dropped, or the command cannot be started. Then nothing has run.
pub fn record(
    settings: &Settings,
    started: impl FnOnce(u32),
    mut between: impl FnMut() -> bool,
) -> Result<Recording, Error> {
    if settings.command.is_empty() {
        return Err(KeyError::new("command", "is missing", "a command behind --").into());
    }
    let instance = Instance::new(&settings.roots, settings.buffer_kib)?;
    if settings.cold {
        drop_caches()?;
    }
    let failed =
        |error: io::Error| PathError::new(&settings.roots.tracing, system_says(&error), "a tracefs that stays");
    let switches = instance.switches().map_err(failed)?;
    let mut recorder = Recorder::new(settings.cold);
    let recorded_at_s = now_ns(ClockId::CLOCK_REALTIME) / 1_000_000_000;
    recorder.origin_ns = now_ns(ClockId::CLOCK_MONOTONIC);
    let child = child::start(&settings.command, switches)?;
    started(child.id());
    let (exit_status, elapsed_ns, lost_events) = recorder.follow(child, instance, &mut between).map_err(failed)?;
    let about = About {
        command: settings.command.clone(),
        folder: std::env::current_dir().unwrap_or_default().display().to_string(),
        recorded_at_s,
        elapsed_ns,
        exit_status,
        kernel: fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_owned(),
        page_bytes: recorder.page_bytes,
        cold: settings.cold,
        lost_events,
        recordings: 1,
    };
    Ok(recorder.finish(about))
}

fn drop_caches() -> Result<(), PathError> {
    nix::unistd::sync();
    let refused = |error: io::Error| PathError::new(DROP_CACHES.as_ref(), system_says(&error), "root, for --cold");
    fs::write(DROP_CACHES, "3").map_err(refused)
}

/// What a clock shows; that of the trace, `mono`, is the monotonic one.
fn now_ns(clock: ClockId) -> u64 {
    clock_gettime(clock).map_or(0, |now| Duration::from(now).as_nanos() as u64)
}

/// What is known of an inode.
#[derive(Debug, Clone, Copy)]
enum Known {
    Nowhere,
    File(u32),
}

struct Recorder {
    origin_ns: u64,
    page_bytes: u64,
    places: Places,
    fold: Fold,
    inodes: BTreeMap<Inode, Known>,
    files: Vec<RecordedFile>,
    tasks: BTreeMap<u32, u32>,
    processes: Vec<RecordedProcess>,
    /// Events whose turn has not come: another processor may have earlier ones.
    waiting: VecDeque<RawEvent>,
}

impl Recorder {
    fn new(cold: bool) -> Self {
        let page_bytes = nix::unistd::sysconf(nix::unistd::SysconfVar::PAGE_SIZE).ok().flatten().unwrap_or(4096) as u64;
        Self {
            origin_ns: 0,
            page_bytes,
            places: Places::new(page_bytes),
            fold: Fold::new(cold),
            inodes: BTreeMap::new(),
            files: Vec::new(),
            tasks: BTreeMap::new(),
            processes: Vec::new(),
            waiting: VecDeque::new(),
        }
    }

    /// Until the command has ended: its exit status, how long it took, and how many events were lost.
    fn follow(
        &mut self,
        mut child: Child,
        mut instance: Instance,
        between: &mut impl FnMut() -> bool,
    ) -> io::Result<(i32, u64, u64)> {
        let (send, ends) = mpsc::channel();
        // A thread waits for the command: its end is known when it comes.
        thread::spawn(move || send.send(child.wait()));
        let mut recording = true;
        loop {
            let ended = ends.recv_timeout(PAUSE).ok().transpose()?;
            let now_ns = now_ns(ClockId::CLOCK_MONOTONIC);
            if recording {
                self.look(&mut instance, now_ns)?;
                recording = between() && (self.fold.len() as u64) < READS_MAX / 2;
            } else {
                between();
            }
            if let Some(ended) = ended {
                return Ok((child::status(ended), now_ns.saturating_sub(self.origin_ns), instance.lost()));
            }
        }
    }

    /// Takes what has happened up to `now_ns`: by then every processor has shown it.
    fn look(&mut self, instance: &mut Instance, now_ns: u64) -> io::Result<()> {
        let waiting = &mut self.waiting;
        instance.take(|event| waiting.push_back(event))?;
        self.waiting.make_contiguous().sort_by_key(|event| event.time_ns);
        let named = self.files.len();
        while self.waiting.front().is_some_and(|event| event.time_ns <= now_ns) {
            self.waiting.pop_front().into_iter().for_each(|event| self.event(event));
        }
        if self.files[named..].iter().any(|file| file.path.as_os_str().is_empty()) {
            let pids: Vec<u32> = self.tasks.keys().copied().collect();
            self.places.look_at_processes(&pids, &mut self.files[named..]);
        }
        Ok(())
    }

    fn event(&mut self, event: RawEvent) {
        let what = match event.raw {
            Raw::Sleep => Some(What::Sleep),
            Raw::Wake => Some(What::Wake),
            Raw::Add(inode, first, pages) => self.file(inode).map(|file| What::Add { file, first, pages }),
            Raw::Get(inode, first, last) => self.file(inode).map(|file| What::Get { file, first, last }),
            Raw::Fault(inode, page) => self.file(inode).map(|file| What::Fault { file, page }),
            Raw::Map(inode, first, last) => self.file(inode).map(|file| What::Map { file, first, last }),
        };
        let Some(what) = what else { return };
        let task = match self.tasks.get(&event.pid) {
            Some(task) => *task,
            // Of switches to tasks that have read nothing, and may be anyone's.
            None if event.name.is_some() => return,
            None => {
                let task = self.processes.len() as u32;
                self.tasks.insert(event.pid, task);
                let name = fs::read_to_string(format!("/proc/{}/comm", event.pid)).unwrap_or_default();
                self.processes.push(RecordedProcess { pid: event.pid, name: name.trim_end().to_owned() });
                task
            }
        };
        if let Some(name) = event.name {
            let name = name.split(|&byte| byte == 0).next().unwrap_or_default();
            self.processes[task as usize].name = String::from_utf8_lossy(name).into_owned();
        }
        let time_ns = event.time_ns.saturating_sub(self.origin_ns);
        self.fold.take(Event { time_ns, task, what });
    }

    /// The index of a file, if it is on a device.
    fn file(&mut self, inode: Inode) -> Option<u32> {
        let known = self.inodes.get(&inode).copied().unwrap_or_else(|| {
            let known = match self.places.find(inode) {
                Place::Nowhere => Known::Nowhere,
                Place::Found(file) => {
                    let index = self.files.len() as u32;
                    if file.kind == FileKind::Device {
                        self.fold.is_device(index);
                    }
                    self.files.push(file);
                    Known::File(index)
                }
            };
            self.inodes.insert(inode, known);
            known
        });
        match known {
            Known::Nowhere => None,
            Known::File(index) => Some(index),
        }
    }

    fn finish(mut self, about: About) -> Recording {
        self.places.walk(&mut self.files);
        refresh_all(&mut self.files);
        let mut reads = self.fold.finish();
        let page_bytes = self.page_bytes;
        let files = &self.files;
        // Programs read with buffers that are larger than files.
        reads.retain_mut(|read| {
            let file = &files[read.file as usize];
            let end = if file.path.as_os_str().is_empty() { u64::MAX } else { file.size_bytes.div_ceil(page_bytes) };
            let pages = end.saturating_sub(read.start).min(read.pages.into());
            read.pages = pages as u32;
            pages > 0
        });
        compact(Recording { about, processes: self.processes, files: self.files, reads })
    }
}

/// Leaves out files and processes without reads; those that stay are in order of their first.
fn compact(recording: Recording) -> Recording {
    let Recording { about, processes, files, mut reads } = recording;
    let mut take = |of: fn(&mut Read) -> &mut u32| {
        let (mut places, mut order) = (BTreeMap::new(), Vec::new());
        for read in &mut reads {
            let old = of(read);
            *old = *places.entry(*old).or_insert_with(|| {
                order.push(*old as usize);
                order.len() as u32 - 1
            });
        }
        order
    };
    let (used_files, used_processes) = (take(|read| &mut read.file), take(|read| &mut read.process));
    let files = used_files.into_iter().map(|at| files[at].clone()).collect();
    let processes = used_processes.into_iter().map(|at| processes[at].clone()).collect();
    Recording { about, processes, files, reads }
}

impl Summary {
    /// The numbers of a recording.
    #[must_use]
    pub fn of(recording: &Recording) -> Self {
        let mut summary = Self { lost_events: recording.about.lost_events, ..Self::default() };
        let page_bytes = recording.about.page_bytes;
        let mut seen: BTreeMap<u32, intervals::Intervals<()>> = BTreeMap::new();
        for read in &recording.reads {
            if !read.is_reference() {
                summary.unused_read_ahead_bytes += u64::from(read.pages) * page_bytes;
                continue;
            }
            summary.references += 1;
            summary.hits += u64::from(read.hit);
            summary.wait_ns += read.wait_ns;
            if !read.hit {
                seen.entry(read.file).or_default().insert(read.start..read.end(), ());
            }
        }
        for (file, ranges) in &seen {
            let pages: u64 = ranges.iter().map(|(range, ())| range.end - range.start).sum();
            let device = recording.files[*file as usize].kind == FileKind::Device;
            *(if device { &mut summary.metadata_bytes } else { &mut summary.miss_bytes }) += pages * page_bytes;
        }
        let files = recording.files.iter().filter(|file| file.kind != FileKind::Device);
        summary.files = files.clone().count() as u64;
        summary.unnamed_files = files.filter(|file| file.path.as_os_str().is_empty()).count() as u64;
        summary
    }
}
