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
use headstart_types::{system_says, Block, Disk as DiskNumber, Nanos};
use toml::Table;

use super::child::{self, Started, Status};
use super::conductor::{disks_of, Conductor, Plan, Queues, Trust, LOOK_EVERY_MS};
use super::disk::{Disk, DiskFacts, Done};
use super::list::{HintList, PAGE_BYTES};
use super::machine::Machine;
use super::report::Report;
use super::system::{begin, process_file, wait_readable, wake_file};
use super::trace::Trace;
use super::universe::Universe;
use super::Error;
use crate::tune::Roots;

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
    let (disk_of_file, facts) = facts_of(&settings);
    let trace = Trace::new(&settings.roots);
    // Where nothing is seen there is nothing to wait for.
    let trust = if settings.trusted || trace.is_err() {
        Trust::Whole
    } else if std::env::current_dir().is_ok_and(|folder| settings.list.is_of(&settings.command, &folder)) {
        Trust::SameCommand
    } else {
        Trust::Earned
    };
    let Settings { row, keys, budget_bytes, .. } = settings.clone();
    let plan = Plan { row, keys, budget_bytes, trust };
    let setting = plan.setting(&settings.list, facts.len(), facts.iter().any(|disk| disk.arm))?;
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
    let machine = Machine::try_new(setting, universe)?;
    let list = Arc::new(settings.list);
    let disks = facts.into_iter().map(|facts| Arc::new(Disk::new(facts, list.clone()))).collect();
    let conductor = Conductor::new(machine, Disks(disks), settings.budget_bytes, trust);
    Host { conductor, trace, report, started }.run(child)
}

/// By file its disk, and what is known of each.
fn facts_of(settings: &Settings) -> (Vec<DiskNumber>, Vec<DiskFacts>) {
    let (of_file, numbers) = disks_of(&settings.list.files);
    let facts = numbers.iter().map(|number| {
        let found = DiskFacts::of(&settings.roots.sys, number >> 20, number & 0xf_ffff);
        DiskFacts { arm: settings.arm.unwrap_or(found.arm), ..found }
    });
    (of_file, facts.collect())
}

/// The disks with their threads.
struct Disks(Vec<Arc<Disk>>);

impl Queues for Disks {
    fn disks(&self) -> usize {
        self.0.len()
    }

    fn order(&mut self, disk: usize, blocks: &mut dyn Iterator<Item = (Block, u32, u64)>) {
        self.0[disk].order(blocks);
    }

    fn cancel(&mut self, disk: usize, block: Block) -> bool {
        self.0[disk].cancel(block)
    }

    fn allow_holes(&mut self, pages: u64) {
        self.0.iter().for_each(|disk| disk.allow_holes(pages));
    }

    fn pause(&mut self, paused: bool) {
        self.0.iter().for_each(|disk| disk.pause(paused));
    }

    fn stop(&mut self) {
        self.0.iter().for_each(|disk| disk.stop());
    }
}

/// What the loop works with.
struct Host {
    conductor: Conductor<Disks>,
    trace: Option<Trace>,
    report: Report,
    started: Instant,
}

impl Host {
    fn run(mut self, mut child: Started) -> Result<(Status, Report), Error> {
        let threads = self.start_threads();
        let ended = process_file(child.id());
        if let (Ok((done, wake)), Ok(ended)) = (threads, ended) {
            self.follow(&done, &wake, ended.as_raw_fd());
        }
        self.conductor.queues.stop();
        let status = child.wait().map_err(|source| Error::Wait { source })?;
        self.report.elapsed_ns = self.started.elapsed().as_nanos() as u64;
        Ok((status, self.finish()))
    }

    /// The threads of the disks; they end by themselves when the disks are stopped, or with this process.
    fn start_threads(&self) -> std::io::Result<(Receiver<Done>, Arc<File>)> {
        let (sender, receiver) = channel();
        let wake = Arc::new(File::from(wake_file()?));
        for disk in &self.conductor.queues.0 {
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
        self.conductor.turn(self.now());
        loop {
            let going = self.conductor.stopped.is_none();
            let timeout =
                if going && self.trace.is_some() && !self.conductor.machine.is_over() { LOOK_EVERY_MS } else { -1 };
            let ready = wait_readable(&[Some(ended), going.then_some(wake.as_raw_fd())], timeout);
            if ready[1] {
                // The number does not matter.
                let _ = (&*wake).read(&mut [0; 8]);
            }
            done.try_iter().for_each(|said| self.conductor.heard(said));
            self.observe();
            if ready[0] {
                return;
            }
            if going {
                self.conductor.act(self.now());
            }
        }
    }

    fn now(&self) -> Nanos {
        Nanos(self.started.elapsed().as_nanos() as u64)
    }

    /// What the command has referenced.
    fn observe(&mut self) {
        let Some(mut trace) = self.trace.take() else { return };
        let now = self.now();
        let taken = trace.take(&mut |seen| self.conductor.referenced(now, seen));
        match taken {
            Ok(()) => self.trace = Some(trace),
            Err(error) => {
                self.report.notes.push(format!("the command's reads are no longer seen: {}", system_says(&error)))
            }
        }
    }

    fn finish(mut self) -> Report {
        self.conductor.fill(&mut self.report);
        self.report
    }
}
