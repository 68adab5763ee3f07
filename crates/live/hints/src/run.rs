//! A command run with its hints: the command, its trace, the machine and the disks' threads, and the loop between them.

use std::env;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::panic::resume_unwind;
use std::sync::mpsc::{channel, Receiver, Sender};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use headstart_policy::registry::PolicyRow;
use headstart_policy::BlockMap;
use headstart_types::{system_says, Disk as DiskNumber, Nanos};
use toml::Table;

use super::budget::Room;
use super::conductor::{Conductor, Plan, Queues, Trust, LOOK_EVERY_MS};
use super::disk::{Disk, DiskFacts, Done};
use super::head_start::{HeadStart, Settled};
use super::list::{disks_of, main_disk, waited_for_arm, waited_for_page, HintList, PAGE_BYTES};
use super::machine::Machine;
use super::report::Report;
use super::store::found;
use super::system::{begin, process_file, wait_readable, wake_file};
use super::threads::Disks;
use super::trace::Trace;
use super::universe::Universe;
use super::Error;
use crate::page_trace;
use headstart_host::child::{self, Started, Status};
use headstart_host::tracefs::sweep_beside;
use headstart_host::Roots;

/// After so long without a reference to a page of the hints, and as long as the recorded run took, the command is no longer watched.
const IDLE: Duration = Duration::from_secs(20);
/// How often the trace is read when nothing is prefetched any more: what is used still counts.
const IDLE_LOOK_MS: i32 = 100;
/// Why nothing is prefetched in a small control group.
const NO_ROOM: &str = "the command may not fit into the memory of its control group";
/// Why nothing is prefetched where there is no room for a thread.
const NO_THREAD: &str = "the system gives no thread";
/// Why nothing is prefetched where the trace would make the command wait.
const BUSY: &str = "the kernel is still removing the trace of another run";
/// What the command waits for that at most, as a share of its recorded time, and at least.
const PATIENCE_SHARE: u64 = 50;
const PATIENCE_MIN: Duration = Duration::from_millis(2);
/// The same where hints are trusted: without a trace nothing would be said of what was used.
const PATIENCE_TRUSTED: Duration = Duration::from_secs(1);

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
    /// Bytes prefetched and not yet used, at most; 0: by the [`Room`] that there is, which the command does not wait for.
    pub budget_bytes: u64,
    /// The hints have proved right: the whole budget is there from the start.
    pub trusted: bool,
    /// Whether the disks have arms; `None`: as the system says.
    pub arm: Option<bool>,
    /// Where the system shows itself.
    pub roots: Roots,
}

/// What has come of a run.
pub(super) struct Finished {
    pub status: Status,
    pub report: Report,
    /// Why the hints no longer fit the command, if they do not.
    pub unfit: Option<String>,
}

/// Runs the command.
///
/// # Errors
/// It cannot be started, or a key of the policy is wrong; then nothing has been started.
pub fn run(settings: Settings) -> Result<(Status, Report), Error> {
    run_whole(settings).map(|Finished { status, report, .. }| (status, report))
}

/// As [`run`].
///
/// # Errors
/// As [`run`].
pub(super) fn run_whole(mut settings: Settings) -> Result<Finished, Error> {
    // A wrong key is found before the command is started.
    check(&settings)?;
    let list = std::mem::take(&mut settings.list);
    // The command is started beside all else: it waits for the trace alone, and of trusted hints for their head start.
    let (traced, is_traced) = channel();
    let (go, may_go) = channel();
    let starting = thread::Builder::new().spawn({
        let (roots, command) = (settings.roots.clone(), settings.command.clone());
        let trusted = settings.trusted;
        let patience =
            (!list.ranges.is_empty()).then(|| if trusted { PATIENCE_TRUSTED } else { patience(list.elapsed_ns) });
        move || start(patience.map(|patience| (&roots, patience)), &command, &traced, &may_go)
    });
    let Ok(starting) = starting else {
        let ((traced, _), (go, may_go)) = (channel(), channel());
        let _ = go.send(());
        return left_alone(start(None, &settings.command, &traced, &may_go)?, &settings, &list, NO_THREAD);
    };
    if !settings.trusted {
        let _ = go.send(());
    }
    let mut alone = None;
    if settings.budget_bytes == 0 {
        let room = Room::now(&settings.roots.proc, "/sys/fs/cgroup".as_ref());
        alone = room.is_tight_for(|| list.pages() * PAGE_BYTES).then_some(NO_ROOM);
        settings.budget_bytes = room.budget();
    }
    let untraced = is_traced.recv().unwrap_or_default();
    let is_busy = untraced.as_ref().is_some_and(|why| why.is_busy && !settings.trusted);
    if let Some(why) = alone.or(is_busy.then_some(BUSY)) {
        let _ = go.send(());
        return left_alone(ended(starting)?, &settings, &list, why);
    }
    let host = Host::new(settings, list, untraced.map(|why| why.text)).map(|mut host| {
        // Of hints that are followed at once the first reads are under way when the command begins.
        host.conductor.turn(Nanos::ZERO);
        host.give_head_start();
        host
    });
    let _ = go.send(());
    match (host, ended(starting)) {
        (Ok(host), Ok(running)) => host.run(running),
        (Ok(mut host), Err(problem)) => {
            host.conductor.queues.stop();
            Err(problem)
        }
        // The command is not left alone for that.
        (Err(problem), running) => {
            let _ = running.map(|mut running| running.child.wait());
            Err(problem)
        }
    }
}

/// How long a command waits for its trace, which the kernel makes in some ms unless it is removing another one.
fn patience(recorded_ns: u64) -> Duration {
    Duration::from_nanos(recorded_ns / PATIENCE_SHARE).max(PATIENCE_MIN)
}

/// Why nothing is seen.
#[derive(Default)]
struct Untraced {
    text: String,
    is_busy: bool,
}

/// A command that has been started.
struct Running {
    child: Started,
    started: Instant,
    trace: Option<Trace>,
}

/// Makes the trace if there are `roots` for it, says why there is none if so, and starts the command when it may; no sender of that:
/// there is a reason not to.
fn start(
    wanted: Option<(&Roots, Duration)>,
    command: &[OsString],
    traced: &Sender<Option<Untraced>>,
    may_go: &Receiver<()>,
) -> Result<Running, Error> {
    let mut trace = wanted.map(|(roots, patience)| Trace::new(roots, patience));
    let untraced = match &trace {
        None => Some(Untraced { text: "there are no hints".to_owned(), is_busy: false }),
        Some(Ok(_)) => None,
        Some(Err(problem)) => {
            Some(Untraced { text: problem.to_string(), is_busy: problem.problem == page_trace::BUSY })
        }
    };
    let _ = traced.send(untraced);
    let program = || command.first().cloned().unwrap_or_default().to_string_lossy().into_owned();
    let failed = |source| Error::Start { program: program(), source };
    may_go.recv().map_err(|_| failed(io::ErrorKind::Interrupted.into()))?;
    let switches = trace.as_mut().and_then(|trace| trace.as_mut().ok()?.switches());
    let started = begin();
    let child = child::start(command, switches).map_err(failed)?;
    wanted.into_iter().for_each(|(roots, _)| sweep_beside(roots));
    Ok(Running { child, started, trace: trace.and_then(Result::ok) })
}

/// What has come of starting the command.
fn ended(starting: JoinHandle<Result<Running, Error>>) -> Result<Running, Error> {
    starting.join().unwrap_or_else(|panic| resume_unwind(panic))
}

/// Waits for a command that has no memory to spare, in as little as possible.
fn left_alone(running: Running, settings: &Settings, list: &HintList, why: &str) -> Result<Finished, Error> {
    let Running { mut child, started, trace } = running;
    trace.into_iter().for_each(|trace| trace.leave(false));
    let mut report = Report::new(settings.row.name);
    report.hinted_bytes = list.pages() * PAGE_BYTES;
    report.stopped = Some(why.to_owned());
    let status = child.wait().map_err(|source| Error::Wait { source })?;
    report.elapsed_ns = started.elapsed().as_nanos() as u64;
    Ok(Finished { status, report, unfit: None })
}

/// Refuses what is wrong in `settings` whatever the hints are.
///
/// # Errors
/// The policy or one of its keys.
pub(super) fn check(settings: &Settings) -> Result<(), Error> {
    let nothing = HintList::default();
    let setting = plan(settings, Trust::Whole).setting(&nothing, 1, settings.arm.unwrap_or(false))?;
    Machine::try_new(setting, Universe::new(&nothing, Vec::new(), &[]))?;
    Ok(())
}

/// How it is to be prefetched.
fn plan(settings: &Settings, trust: Trust) -> Plan {
    let Settings { row, keys, budget_bytes, .. } = settings;
    Plan { row, keys: keys.clone(), budget_bytes: *budget_bytes, trust }
}

/// By file its disk, and what is known of each.
pub(super) fn facts_of(settings: &Settings, list: &HintList) -> (Vec<DiskNumber>, Vec<DiskFacts>) {
    let (of_file, numbers) = disks_of(&list.files);
    let facts = (0u32..).zip(&numbers).map(|(at, number)| {
        let found = DiskFacts::of(&settings.roots.sys, number >> 20, number & 0xf_ffff);
        let has_arm = || waited_for_arm(list, &of_file, DiskNumber(at)).unwrap_or(found.arm);
        DiskFacts { arm: settings.arm.unwrap_or_else(has_arm), ..found }
    });
    let facts = facts.collect();
    (of_file, facts)
}

/// Takes what has woken the loop: `wake` is readable no more. The number does not matter.
fn take(mut wake: &File) {
    let _ = wake.read(&mut [0; 8]);
}

/// What the loop works with.
struct Host {
    conductor: Conductor<Disks>,
    done: Receiver<Done>,
    trace: Option<Trace>,
    report: Report,
    started: Instant,
    /// How long the recorded run took.
    recorded: Duration,
    /// What is to be read before the command is started.
    head_start: Option<HeadStart>,
    /// References to pages of the hints, and when the last one was seen, since the start.
    matched: u64,
    matched_last: Duration,
}

impl Host {
    /// For a command that is going to run; `untraced`: why its reads will not be seen, if so.
    fn new(settings: Settings, list: HintList, untraced: Option<String>) -> Result<Self, Error> {
        let settings = &settings;
        let (disk_of_file, facts) = facts_of(settings, &list);
        // Where nothing is seen there is nothing to wait for.
        let trust = if settings.trusted || untraced.is_some() {
            Trust::Whole
        } else if env::current_dir().is_ok_and(|folder| list.is_of(&settings.command, &folder)) {
            Trust::SameCommand
        } else {
            Trust::Earned
        };
        let arm = facts.get(main_disk(&list.ranges, &disk_of_file, facts.len())).is_some_and(|disk| disk.arm);
        let in_order_left: Vec<bool> = facts.iter().map(|disk| !disk.arm && trust != Trust::Whole).collect();
        let universe = Universe::new(&list, disk_of_file, &in_order_left);
        let mut report = Report::new(settings.row.name);
        report.observed = untraced.is_none();
        report.budget_bytes = settings.budget_bytes;
        report.hinted_bytes = universe.blocks() as u64 * PAGE_BYTES;
        if universe.left_out > 0 {
            report.notes.push(format!("{} pages of the hints are beyond what is prefetched", universe.left_out));
        }
        if let Some(problem) = untraced {
            report
                .notes
                .push(format!("the command's reads are not seen, prefetching is by the hints alone: {problem}"));
        }
        let setting = plan(settings, trust).setting(&list, facts.len(), arm)?;
        let machine = Machine::try_new(setting, universe)?;
        let (recorded, recorded_ns) = (Duration::from_nanos(list.elapsed_ns), Nanos(list.elapsed_ns));
        let waited = waited_for_page(&list.ranges);
        // What cannot be started is said at once.
        let is_found = || settings.command.first().is_some_and(|name| found(name).is_some());
        let blocks = machine.universe().blocks() as u64;
        let head_start = HeadStart::of(settings.trusted, arm, &list, blocks).filter(|_| is_found());
        let list = Arc::new(list);
        let disks = facts.into_iter().map(|facts| Arc::new(Disk::new(facts, list.clone()))).collect();
        let (sender, done) = channel();
        let wake = Arc::new(File::from(wake_file().map_err(|source| Error::Wait { source })?));
        let disks = Disks::new(disks, sender, wake);
        let conductor = Conductor::new(machine, disks, settings.budget_bytes, trust);
        let conductor = conductor.at_risk(recorded_ns, arm, waited);
        Ok(Self {
            conductor,
            done,
            trace: None,
            report,
            started: begin(),
            recorded,
            head_start,
            matched: 0,
            matched_last: Duration::ZERO,
        })
    }

    /// Reads ahead of a command that is not started yet. Its clock goes on from there.
    fn give_head_start(&mut self) {
        let Some(head_start) = self.head_start.take_if(|it| !it.is_over(Nanos::ZERO, Settled::default())) else {
            return;
        };
        let wake = self.conductor.queues.wake.clone();
        loop {
            // What has been read is said before.
            let was_idle = self.conductor.queues.have_nothing_to_do();
            let now = self.now();
            self.hear(now);
            self.conductor.turn(now);
            let is_idle = was_idle && self.conductor.queues.have_nothing_to_do();
            if is_idle || head_start.is_over(now, self.conductor.settled()) {
                break;
            }
            if wait_readable(&[Some(wake.as_raw_fd())], LOOK_EVERY_MS)[0] {
                take(&wake);
            }
        }
        self.report.head_start_ns = self.now().0;
    }

    fn run(mut self, running: Running) -> Result<Finished, Error> {
        let mut child = running.child;
        if self.report.head_start_ns == 0 {
            self.started = running.started;
        }
        self.trace = running.trace;
        let ended = process_file(child.id());
        // Without hints there is nothing to watch for.
        if let Some(ended) = ended.ok().filter(|_| self.report.hinted_bytes > 0) {
            self.follow(ended.as_raw_fd());
        }
        self.conductor.queues.stop();
        let status = child.wait().map_err(|source| Error::Wait { source })?;
        self.report.elapsed_ns = running.started.elapsed().as_nanos() as u64;
        self.conductor.fill(&mut self.report);
        let unfit = self.conductor.unfit().filter(|_| self.report.observed).map(str::to_owned);
        if let Some(trace) = self.trace {
            trace.leave(true);
        }
        Ok(Finished { status, report: self.report, unfit })
    }

    /// Until the command ends.
    fn follow(&mut self, ended: i32) {
        let wake = self.conductor.queues.wake.clone();
        self.conductor.turn(self.now());
        loop {
            let going = self.conductor.stopped.is_none();
            let timeout = match (going && !self.conductor.machine.is_over(), &self.trace) {
                (_, None) => -1,
                (true, Some(_)) => LOOK_EVERY_MS,
                (false, Some(_)) => IDLE_LOOK_MS,
            };
            let ready = wait_readable(&[Some(ended), going.then_some(wake.as_raw_fd())], timeout);
            if ready[1] {
                take(&wake);
            }
            let now = self.now();
            self.hear(now);
            self.observe();
            if ready[0] {
                // What may still have been followed by a fault has not been.
                self.observe();
                return;
            }
            if going {
                self.conductor.act(self.now());
                self.trace.iter().filter(|_| self.conductor.stopped.is_some()).for_each(Trace::uses_only);
            }
            // A command that goes on for days is not watched for days.
            if self.is_settled() || self.is_idle() {
                self.trace.take().into_iter().for_each(|trace| trace.leave(false));
                self.conductor.queues.stop();
                wait_readable(&[Some(ended)], -1);
                return;
            }
        }
    }

    /// Whether nothing more is to be read, and nothing that was is unused.
    fn is_settled(&self) -> bool {
        let Self { conductor, .. } = self;
        conductor.stopped.is_some() && conductor.has_used_all() && conductor.queues.are_idle()
    }

    /// Whether nothing more is to be expected: the command has not referenced a page of the hints for long.
    fn is_idle(&mut self) -> bool {
        let now = self.started.elapsed();
        let matched = self.conductor.matched();
        if matched > std::mem::replace(&mut self.matched, matched) {
            self.matched_last = now;
        }
        now - self.matched_last > IDLE.max(self.recorded)
    }

    fn now(&self) -> Nanos {
        Nanos(self.started.elapsed().as_nanos() as u64)
    }

    /// What the disks have done.
    fn hear(&mut self, now: Nanos) {
        self.done.try_iter().for_each(|said| self.conductor.heard(now, said));
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
}
