//! Records what a command reads: every page that it and its children need from the page cache, in order.
//!
//! The source is a private tracefs instance, with the tracepoints of the page cache and of task switches, limited to
//! the command's processes, to which `fork` adds. The command is not changed or stopped at any system call. This
//! process reads the kernel's buffers, in binary form, when one is half full, and periodically.
//!
//! - `crate::page_trace`: the kernel's trace;
//! - `fold.rs`: from events to reads, hits and waits; `intervals.rs`: ranges of pages;
//! - `places.rs`: from inodes to files.
//!
//! Not visible: pages that kernel threads read on behalf of the command (io_uring's workers and pollers), and accesses
//! to mapped pages without a fault.

mod fold;
mod places;

use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::time::Duration;

use headstart_trace::hints::{About, FileKind, Read, RecordedFile, RecordedProcess, Recording, READS_MAX};
use headstart_types::{system_says, KeyError};
use nix::time::{clock_gettime, ClockId};
use serde::Serialize;

use fold::{Event, Fold, What};
use places::{refresh_all, Place, Places};

use crate::page_trace::{Inode, PageTrace, Purpose, Raw, RawEvent};
use crate::system::{cached_pages, process_file, wait_readable};
use headstart_host::child::{self, Started, Status};
use headstart_host::memory::check_room;
use headstart_host::tracefs::sweep_beside;
use headstart_host::PathError;
use headstart_host::Roots;

/// The kernel's buffer per processor: a command that reads cached pages as fast as possible fills it in a tenth of a
/// second.
pub const BUFFER_KIB: u64 = 4096;
/// How often buffers are read that are not half full: the recorder takes time from the command. While there are files
/// without a path, processes are examined before they end.
const PAUSE_MS: i32 = 10;
const PAUSE_GROWTH: i32 = 4;
const PAUSE_MAX_MS: i32 = 250;
/// Maximum wait for the kernel to remove another trace.
const PATIENCE: Duration = Duration::from_secs(10);
/// The file through which the kernel drops its caches.
const DROP_CACHES: &str = "/proc/sys/vm/drop_caches";

/// Maximum time for searching file systems for files without a path. A guess at what a user accepts: some million
/// files.
pub const WALK_MAX: Duration = Duration::from_secs(30);

/// What to record, and how.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where the kernel's file systems are.
    pub roots: Roots,
    /// The program and its arguments; at least the program.
    pub command: Vec<OsString>,
    /// Whether to drop the page cache and the caches of names and inodes first.
    pub cold: bool,
    /// The kernel's buffer per processor; [`BUFFER_KIB`] unless that is too small.
    pub buffer_kib: u64,
    /// Maximum time for searching file systems for files that the kernel does not name; [`WALK_MAX`] unless a user
    /// waits.
    pub walk_max: Duration,
    /// The recording ends after this time, or with the command.
    pub elapsed_max: Option<Duration>,
}

/// Why nothing was recorded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A key.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// A file.
    #[error(transparent)]
    Path(#[from] PathError),
    /// The command.
    #[error("{program}: {}; allowed: a command that can be started", why_not_started(source))]
    Start {
        /// As it was named.
        program: String,
        /// What the system says.
        source: io::Error,
    },
}

fn why_not_started(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "there is no such program".to_owned(),
        _ => system_says(error),
    }
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

/// A recorded command, which may still be running.
pub struct Recorded {
    /// What it has read.
    pub recording: Recording,
    /// Why the recording ended early.
    pub failed: Option<PathError>,
    child: Started,
    status: Option<Status>,
    origin_ns: u64,
}

impl Recorded {
    /// Waits for the end of the command.
    ///
    /// # Errors
    /// From the system.
    pub fn wait(&mut self) -> io::Result<Status> {
        self.status.map_or_else(|| self.child.wait(), Ok)
    }

    /// From the start of the command to its end, or until now.
    #[must_use]
    pub fn elapsed_ns(&self) -> u64 {
        let now = || now_ns(ClockId::CLOCK_MONOTONIC).saturating_sub(self.origin_ns);
        self.status.map_or_else(now, |_| self.recording.about.elapsed_ns)
    }
}

/// Runs the command and records it until it ends. Passes the process id to `started`. Calls `between` several times a
/// second; if it returns false, the recording ends, not the command.
///
/// # Errors
/// Root or a tracefs is missing, caches cannot be dropped, or the command cannot be started. Nothing has run then.
pub fn record(
    settings: &Settings,
    started: impl FnOnce(u32),
    between: impl FnMut() -> bool,
) -> Result<Recording, Error> {
    let mut recorded = begin(settings, started, between)?;
    let status = recorded.wait().map_err(|error| failed(settings, &error))?;
    recorded.recording.about.exit_status = status.shell_code();
    recorded.failed.map_or(Ok(recorded.recording), |problem| Err(problem.into()))
}

fn failed(settings: &Settings, error: &io::Error) -> PathError {
    PathError::new(&settings.roots.tracing, system_says(error), "a tracefs that stays")
}

/// Like [`record`], but returns when the recording ends, possibly before the command: the exit status is 0 in the
/// recording then.
///
/// # Errors
/// See [`record`].
pub fn begin(
    settings: &Settings,
    started: impl FnOnce(u32),
    mut between: impl FnMut() -> bool,
) -> Result<Recorded, Error> {
    let program = settings.command.first().ok_or(KeyError::new("command", "is missing", "a command behind --"))?;
    let processors = std::thread::available_parallelism().map_or(1, |count| count.get() as u64);
    check_room("buffer", "a buffer for each processor", settings.buffer_kib.saturating_mul(1024 * processors))?;
    let mut instance = PageTrace::new(&settings.roots, Purpose::Record(settings.buffer_kib), PATIENCE)?;
    if settings.cold {
        drop_caches()?;
    }
    let mut recorder = Recorder::new();
    let recorded_at_s = now_ns(ClockId::CLOCK_REALTIME) / 1_000_000_000;
    let origin_ns = now_ns(ClockId::CLOCK_MONOTONIC);
    recorder.origin_ns = origin_ns;
    let not_started = |source| Error::Start { program: program.to_string_lossy().into_owned(), source };
    let mut child = child::start(&settings.command, instance.switches.take()).map_err(not_started)?;
    sweep_beside(&settings.roots);
    started(child.id());
    let ended = recorder.follow(&child, &mut instance, settings.elapsed_max, &mut between);
    // The events are processed after the command has ended, so that they do not slow it down.
    let ended_at = ended.as_ref().ok().copied().flatten();
    let elapsed_ns = ended_at.unwrap_or_else(|| now_ns(ClockId::CLOCK_MONOTONIC)).saturating_sub(origin_ns);
    let status = ended_at.and_then(|_| child.wait().ok());
    let about = About {
        command: settings.command.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
        folder: std::env::current_dir().unwrap_or_default().display().to_string(),
        recorded_at_s,
        elapsed_ns,
        exit_status: status.map_or(0, Status::shell_code),
        kernel: fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_owned(),
        page_bytes: recorder.page_bytes,
        cold: settings.cold,
        lost_events: instance.lost(),
        recordings: 1,
    };
    instance.leave(false);
    let recording = recorder.finish(about, settings.walk_max);
    Ok(Recorded { recording, failed: ended.err().map(|error| failed(settings, &error)), child, status, origin_ns })
}

/// Drops the kernel's caches of all file systems.
///
/// # Errors
/// The process is not root.
pub(crate) fn drop_caches() -> Result<(), PathError> {
    nix::unistd::sync();
    let refused = |error: io::Error| PathError::new(DROP_CACHES.as_ref(), system_says(&error), "root, for --cold");
    fs::write(DROP_CACHES, "3").map_err(refused)
}

/// The time of a clock; the trace's clock, `mono`, is the monotonic one.
fn now_ns(clock: ClockId) -> u64 {
    clock_gettime(clock).map_or(0, |now| Duration::from(now).as_nanos() as u64)
}

/// The known identity of an inode.
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
    /// Events that must wait: another processor may have earlier ones.
    waiting: VecDeque<RawEvent>,
}

impl Recorder {
    fn new() -> Self {
        let page_bytes = nix::unistd::sysconf(nix::unistd::SysconfVar::PAGE_SIZE).ok().flatten().unwrap_or(4096) as u64;
        Self {
            origin_ns: 0,
            page_bytes,
            places: Places::new(page_bytes),
            fold: Fold::default(),
            inodes: BTreeMap::new(),
            files: Vec::new(),
            tasks: BTreeMap::new(),
            processes: Vec::new(),
            waiting: VecDeque::new(),
        }
    }

    /// Runs until the command has ended, or the recording is long enough. Returns when the command ended.
    fn follow(
        &mut self,
        child: &Started,
        instance: &mut PageTrace,
        elapsed_max: Option<Duration>,
        between: &mut impl FnMut() -> bool,
    ) -> io::Result<Option<u64>> {
        let ends = process_file(child.id())?;
        let files: Vec<_> = [ends.as_raw_fd()].into_iter().chain(instance.half_full()).map(Some).collect();
        let mut pause_ms = PAUSE_MS;
        loop {
            let ended = wait_readable(&files, pause_ms)[0];
            let now_ns = now_ns(ClockId::CLOCK_MONOTONIC);
            let all_named = self.look(instance, now_ns)?;
            pause_ms = if all_named { (pause_ms * PAUSE_GROWTH).min(PAUSE_MAX_MS) } else { PAUSE_MS };
            let elapsed = Duration::from_nanos(now_ns.saturating_sub(self.origin_ns));
            let is_long = elapsed_max.is_some_and(|most| elapsed >= most) || self.fold.len() as u64 >= READS_MAX / 2;
            if !between() || ended || is_long {
                return Ok(ended.then_some(now_ns));
            }
        }
    }

    /// Handles the events up to `now_ns`, which all processors have delivered. Returns whether the paths of all new
    /// files are known.
    fn look(&mut self, instance: &mut PageTrace, now_ns: u64) -> io::Result<bool> {
        let waiting = &mut self.waiting;
        instance.take(|event| waiting.push_back(event))?;
        self.waiting.make_contiguous().sort_by_key(|event| event.time_ns);
        let named = self.files.len();
        while self.waiting.front().is_some_and(|event| event.time_ns <= now_ns) {
            self.waiting.pop_front().into_iter().for_each(|event| self.event(event));
        }
        let all_named = self.files[named..].iter().all(|file| !file.path.as_os_str().is_empty());
        if !all_named {
            let pids: Vec<u32> = self.tasks.keys().copied().collect();
            self.places.look_at_processes(&pids, &mut self.files[named..]);
        }
        Ok(all_named)
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
            // Switches to tasks that have read nothing, and may belong to another program.
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

    fn finish(mut self, about: About, walk_max: Duration) -> Recording {
        self.places.walk(&mut self.files, walk_max);
        refresh_all(&mut self.files);
        let page_bytes = self.page_bytes;
        let files = &self.files;
        let mut opened = None;
        let reads = self.fold.finish(|number, pages| {
            if opened.as_ref().is_none_or(|(opened, _)| *opened != number) {
                opened = Some((number, places::open(&files[number as usize])));
            }
            let file = opened.as_ref().and_then(|(_, file)| file.as_ref());
            file.map_or_else(Vec::new, |file| cached(file, pages, page_bytes))
        });
        let mut recording = Recording { about, processes: self.processes, files: self.files, reads };
        // Programs read with buffers larger than the file.
        let sizes: Vec<u64> = recording.files.iter().map(|file| file.size_bytes).collect();
        recording.cut(&sizes);
        compact(recording)
    }
}

/// Which of these pages of a file are in the page cache.
fn cached(file: &File, pages: Range<u64>, page_bytes: u64) -> Vec<Range<u64>> {
    let count = |first: u64, pages: u64| cached_pages(file, first * page_bytes, pages * page_bytes).unwrap_or(0);
    match count(pages.start, pages.end - pages.start) {
        0 => Vec::new(),
        all if all == pages.end - pages.start => vec![pages],
        _ => pages.filter(|page| count(*page, 1) > 0).map(|page| page..page + 1).collect(),
    }
}

/// Omits files and processes without reads; the others are ordered by their first read.
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
        let mut seen: BTreeMap<u32, headstart_host::intervals::Intervals<()>> = BTreeMap::new();
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
