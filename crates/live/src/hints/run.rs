//! A command run with its hints: the command, its trace, the machine and the disks' threads, and the loop between them.

use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::sync::mpsc::{channel, Receiver};
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use headstart_policy::registry::PolicyRow;
use headstart_policy::Space;
use headstart_types::{system_says, Block, Disk as DiskNumber, KeyError, Nanos};
use toml::Table;

use super::child::{self, Started, Status};
use super::disk::{Disk, DiskFacts, Done};
use super::guard::{why_stop, Seen as Looked};
use super::list::{HintList, PAGE_BYTES};
use super::machine::{Machine, Setting};
use super::report::Report;
use super::system::{begin, process_file, wait_readable, wake_file};
use super::trace::{Seen, Trace};
use super::universe::Universe;
use super::Error;
use crate::tune::Roots;

/// How often the trace is read.
const LOOK_EVERY_MS: i32 = 2;
/// Frames before anything has been used, where there is an arm and where there is none: some 64 seeks, and 16 MiB.
const ARM_FRAMES_MIN: u32 = 64;
const FLASH_FRAMES_MIN: u32 = 4096;
/// Where a policy has these keys and they are not given: batches as large as an arm can sort, and horizons as far as it needs.
const ARM_BATCH: i64 = 1 << 16;
const FLASH_BATCH: i64 = 1024;
const HORIZON: i64 = 4096;
/// What a disk typically takes for a page.
const ARM_SERVICE: Nanos = Nanos(8_000_000);
const FLASH_SERVICE: Nanos = Nanos(100_000);
/// The part of it that goes by the page's size: 80 MB/s, and 1 GB/s.
const ARM_TRANSFER: Nanos = Nanos(50_000);
const FLASH_TRANSFER: Nanos = Nanos(4_000);
/// Reads that a disk without an arm serves at a time.
const FLASH_CONCURRENCY: u32 = 16;
/// Pages of holes that may be read for each frame, and the share of the budget that they may take in all.
const HOLES_PER_FRAME: u64 = 8;
const HOLES_SHARE: u64 = 4;
/// A thread reads 1 MiB and calls little.
const STACK_BYTES: usize = 128 * 1024;

/// What is to be run, and how.
#[derive(Clone)]
pub struct Settings {
    /// The command and its arguments.
    pub command: Vec<OsString>,
    /// What it is going to read.
    pub list: HintList,
    /// The policy.
    pub row: &'static PolicyRow,
    /// Its keys.
    pub keys: Table,
    /// Bytes prefetched and not yet used, at most.
    pub budget_bytes: u64,
    /// The hints have proved right: the whole budget is there from the start.
    pub trusted: bool,
    /// Whether the disks have arms; `None`: as the system says.
    pub arm: Option<bool>,
    /// Where the system shows itself.
    pub roots: Roots,
}

/// Runs the command.
///
/// # Errors
/// It cannot be started, or a key of the policy is wrong; then nothing has been started.
pub fn run(settings: Settings) -> Result<(Status, Report), Error> {
    let (disk_of_file, facts) = disks_of(&settings);
    let trace = Trace::new(&settings.roots);
    // Where nothing is seen there is nothing to wait for.
    let trusted = settings.trusted || trace.is_err();
    let setting = setting(&settings, &facts, trusted)?;
    // Of no pages: a wrong key is found before the command is started, and the command does not wait for its pages to be numbered.
    Machine::try_new(setting.clone(), Universe::new(&HintList::default(), Vec::new()))?;
    let started = begin();
    let followed = trace.as_ref().ok().and_then(Trace::followed);
    let child = child::start(&settings.command, followed).map_err(|source| Error::Start {
        program: settings.command.first().cloned().unwrap_or_default().to_string_lossy().into_owned(),
        source,
    })?;
    let universe = Universe::new(&settings.list, disk_of_file);
    let mut report = Report::new(settings.row.name);
    report.observed = trace.is_ok();
    report.budget_bytes = settings.budget_bytes;
    report.hinted_bytes = universe.blocks() as u64 * PAGE_BYTES;
    if universe.left_out > 0 {
        report.notes.push(format!("{} pages of the hints are beyond what is prefetched", universe.left_out));
    }
    let trace = match trace {
        Ok(trace) => Some(trace),
        Err(problem) => {
            let what = "the command's reads are not seen, prefetching is by the hints alone";
            report.notes.push(format!("{what}: {}", system_says(&problem)));
            None
        }
    };
    let hinted = universe.blocks() as u64;
    let machine = Machine::try_new(setting, universe)?;
    let list = Arc::new(settings.list);
    let holes_max = settings.budget_bytes / PAGE_BYTES / HOLES_SHARE;
    let disks = facts.into_iter().map(|facts| Arc::new(Disk::new(facts, list.clone()))).collect();
    let (looked, orders, metadata) = (Looked { hinted, ..Looked::default() }, Vec::new(), Vec::new());
    let (holes, holes_allowed) = (0, 0);
    let host = Host {
        machine,
        trace,
        disks,
        looked,
        report,
        started,
        holes,
        holes_allowed,
        holes_max,
        orders,
        metadata,
        confirmed: trusted,
    };
    host.run(child)
}

/// By file its disk, and what is known of each.
fn disks_of(settings: &Settings) -> (Vec<DiskNumber>, Vec<DiskFacts>) {
    let mut numbers: Vec<u64> = Vec::new();
    let mut disk = |file: &super::list::HintedFile| {
        let number = if file.is_device { file.identity.1 } else { file.identity.0 };
        let at = numbers.iter().position(|each| *each == number).unwrap_or_else(|| {
            numbers.push(number);
            numbers.len() - 1
        });
        DiskNumber(at as u32)
    };
    let of_file = settings.list.files.iter().map(&mut disk).collect();
    if numbers.is_empty() {
        numbers.push(0);
    }
    let facts = numbers.iter().map(|number| {
        let found = DiskFacts::of(&settings.roots.sys, number >> 20, number & 0xf_ffff);
        DiskFacts { arm: settings.arm.unwrap_or(found.arm), ..found }
    });
    (of_file, facts.collect())
}

/// What the machine is built from.
fn setting(settings: &Settings, facts: &[DiskFacts], trusted: bool) -> Result<Setting, KeyError> {
    let Settings { row, list, .. } = settings;
    if !row.is_hinted() {
        let hinted = headstart_policy::registry::POLICIES.iter().filter(|row| row.is_hinted()).map(|row| row.name);
        let allowed = hinted.collect::<Vec<_>>().join(", ");
        return Err(KeyError::new("policy", format!("{} does not work from hints", row.name), allowed));
    }
    let arm = facts.iter().any(|disk| disk.arm);
    let mut keys = settings.keys.clone();
    for (key, value) in [("batch_size", if arm { ARM_BATCH } else { FLASH_BATCH }), ("horizon", HORIZON)] {
        if row.keys.has(key) && !keys.contains_key(key) {
            keys.insert(key.into(), value.into());
        }
    }
    let pages: u64 = list.ranges.iter().map(|range| u64::from(range.count)).sum();
    let frames_max = (settings.budget_bytes / PAGE_BYTES).clamp(1, pages.clamp(1, 1 << 24)) as u32;
    let frames_min = if arm { ARM_FRAMES_MIN } else { FLASH_FRAMES_MIN };
    Ok(Setting {
        row,
        keys,
        frames_min: if trusted { frames_max } else { frames_min.min(frames_max) },
        frames_max,
        disks: facts.len(),
        service: if arm { ARM_SERVICE } else { FLASH_SERVICE },
        transfer: if arm { ARM_TRANSFER } else { FLASH_TRANSFER },
        concurrency: if arm { 1 } else { FLASH_CONCURRENCY },
        think: Nanos(list.elapsed_ns / pages.max(1)),
    })
}

/// What the loop works with.
struct Host {
    machine: Machine,
    trace: Option<Trace>,
    disks: Vec<Arc<Disk>>,
    looked: Looked,
    report: Report,
    started: Instant,
    /// Pages of holes that have been read, may be, and may be at most.
    holes: u64,
    holes_allowed: u64,
    holes_max: u64,
    orders: Vec<Block>,
    /// Metadata that has been read and does not count as used yet.
    metadata: Vec<Block>,
    /// The command does what the hints say: before that nothing is prefetched.
    confirmed: bool,
}

impl Host {
    fn run(mut self, mut child: Started) -> Result<(Status, Report), Error> {
        let threads = self.start_threads();
        let ended = process_file(child.id());
        if let (Ok((done, wake)), Ok(ended)) = (threads, ended) {
            self.follow(&done, &wake, ended.as_raw_fd());
        }
        self.stop_disks();
        let status = child.wait().map_err(|source| Error::Wait { source })?;
        self.report.elapsed_ns = self.started.elapsed().as_nanos() as u64;
        Ok((status, self.finish()))
    }

    /// The threads of the disks; they end by themselves when the disks are stopped, or with this process.
    fn start_threads(&self) -> std::io::Result<(Receiver<Done>, Arc<File>)> {
        let (sender, receiver) = channel();
        let wake = Arc::new(File::from(wake_file()?));
        for disk in &self.disks {
            for _ in 0..disk.depth() {
                let (disk, sender, wake) = (disk.clone(), sender.clone(), wake.clone());
                thread::Builder::new().stack_size(STACK_BYTES).spawn(move || {
                    disk.serve(&sender, &|| {
                        let _ = (&*wake).write_all(&1u64.to_ne_bytes());
                    });
                })?;
            }
        }
        Ok((receiver, wake))
    }

    /// Until the command ends.
    fn follow(&mut self, done: &Receiver<Done>, wake: &File, ended: i32) {
        let frames_min = u64::from(self.machine.frames());
        self.turn();
        loop {
            let going = self.report.stopped.is_none();
            let timeout = if going && self.trace.is_some() && !self.machine.is_over() { LOOK_EVERY_MS } else { -1 };
            let ready = wait_readable(&[Some(ended), going.then_some(wake.as_raw_fd())], timeout);
            if ready[1] {
                // The number does not matter.
                let _ = (&*wake).read(&mut [0; 8]);
            }
            self.heard(done);
            self.observe();
            if ready[0] {
                return;
            }
            if going {
                self.turn();
                self.use_metadata();
                let counts = self.machine.counts();
                let unused =
                    (self.confirmed, counts.prefetches_used, self.machine.passed_unused(), self.machine.is_full());
                if let Some(why) = why_stop(&self.looked, unused, frames_min) {
                    self.report.stopped = Some(why.to_owned());
                    self.stop_disks();
                }
            }
        }
    }

    /// Metadata that has come counts as used: the command does what the hints say, and references to metadata are not seen.
    fn use_metadata(&mut self) {
        if self.metadata.is_empty() {
            return;
        }
        let now = self.now();
        for block in std::mem::take(&mut self.metadata) {
            self.machine.observe(now, block);
        }
        self.turn();
    }

    fn stop_disks(&self) {
        self.disks.iter().for_each(|disk| disk.stop());
    }

    fn now(&self) -> Nanos {
        Nanos(self.started.elapsed().as_nanos() as u64)
    }

    /// What the disks' threads have done.
    fn heard(&mut self, done: &Receiver<Done>) {
        for said in done.try_iter() {
            match said {
                Done::Read(blocks, took, holes) => {
                    let share = Nanos(took.as_nanos() as u64 / blocks.len().max(1) as u64);
                    self.looked.read += blocks.len() as u64;
                    self.holes += holes;
                    let metadata = self.machine.universe().metadata;
                    self.metadata.extend(blocks.iter().filter(|block| block.0 < metadata));
                    blocks.into_iter().for_each(|block| self.machine.fetched(block, Some(share)));
                }
                Done::Unneeded(blocks, why) => {
                    self.looked.unneeded(why, blocks.len() as u64);
                    blocks.into_iter().for_each(|block| self.machine.fetched(block, None));
                }
            }
        }
    }

    /// What the command has referenced.
    fn observe(&mut self) {
        let Some(mut trace) = self.trace.take() else { return };
        let now = self.now();
        let taken = trace.take(&mut |seen| self.referenced(now, seen));
        match taken {
            Ok(()) => self.trace = Some(trace),
            Err(error) => {
                self.report.notes.push(format!("the command's reads are no longer seen: {}", system_says(&error)))
            }
        }
    }

    fn referenced(&mut self, now: Nanos, Seen { file, first, last }: Seen) {
        let universe = self.machine.universe();
        let Some(file) = universe.file(file) else {
            self.looked.foreign += last - first + 1;
            return;
        };
        for page in first..=last {
            let Some(block) = self.machine.universe().known(file, page) else {
                self.looked.foreign += 1;
                continue;
            };
            if self.machine.is_referenced(block) {
                continue;
            }
            self.looked.matched += 1;
            let disk = self.machine.universe().disk(block);
            if self.disks[disk.index()].cancel(block) {
                self.machine.fetched(block, None);
                self.turn_at(now);
            }
            self.machine.observe(now, block);
        }
    }

    fn turn(&mut self) {
        self.turn_at(self.now());
    }

    /// Lets the machine act, and gives the disks what it wants.
    fn turn_at(&mut self, now: Nanos) {
        self.confirmed |= self.looked.confirmed();
        if !self.confirmed {
            return;
        }
        let mut orders = std::mem::take(&mut self.orders);
        self.machine.turn(now, &mut orders);
        let holes = (u64::from(self.machine.frames()) * HOLES_PER_FRAME).min(self.holes_max);
        if holes > self.holes_allowed {
            self.disks.iter().for_each(|disk| disk.allow_holes(holes - self.holes_allowed));
            self.holes_allowed = holes;
        }
        if self.report.stopped.is_none() && !orders.is_empty() {
            let universe = self.machine.universe();
            for (number, disk) in self.disks.iter().enumerate() {
                let of_disk = orders.iter().filter(|block| universe.disk(**block).index() == number);
                disk.order(of_disk.map(|block| {
                    let (file, page) = universe.place(*block);
                    (*block, file, page)
                }));
            }
        }
        orders.clear();
        self.orders = orders;
    }

    fn finish(self) -> Report {
        let Self { machine, mut report, looked, holes, .. } = self;
        let counts = machine.counts();
        report.used_bytes = counts.prefetches_used * PAGE_BYTES;
        report.late_bytes = counts.prefetches_late * PAGE_BYTES;
        report.prefetched_bytes = ((looked.read + holes) * PAGE_BYTES).max(report.used_bytes);
        report.wasted_bytes = report.prefetched_bytes - report.used_bytes;
        report.cached_bytes = looked.cached * PAGE_BYTES;
        report.stale_bytes = looked.stale * PAGE_BYTES;
        if looked.denied > 0 {
            let bytes = looked.denied * PAGE_BYTES;
            report.notes.push(format!("{bytes} bytes of metadata are not prefetched: the device may not be read"));
        }
        report
    }
}
