//! Runs a command with its hints: the command, its trace, the machine, the disks' threads, and the loop between them.

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

/// The command is no longer watched after this long without a reference to a hinted page, and as long as the recorded
/// run took.
const IDLE: Duration = Duration::from_secs(20);
/// How often the trace is read when nothing is prefetched any more, since used pages still count.
const IDLE_LOOK_MS: i32 = 100;
/// The reason in a small control group.
const NO_ROOM: &str = "the command may not fit into the memory of its control group";
/// The reason if threads cannot be created.
const NO_THREAD: &str = "the system gives no thread";
/// The reason if the trace would make the command wait.
const BUSY: &str = "the kernel is still removing the trace of another run";
/// The command's maximum wait for this, as a share of its recorded time, and the minimum of that limit.
const PATIENCE_SHARE: u64 = 50;
const PATIENCE_MIN: Duration = Duration::from_millis(2);
/// The limit if hints are trusted: without a trace, used pages would not be reported.
const PATIENCE_TRUSTED: Duration = Duration::from_secs(1);

/// What to run, and how.
#[derive(Clone)]
pub struct Settings {
    /// The command and its arguments.
    pub command: Vec<OsString>,
    /// The expected reads.
    pub list: HintList,
    /// The policy.
    pub row: &'static PolicyRow,
    /// Its keys.
    pub keys: Table,
    /// Maximum bytes prefetched and not yet used; 0: determined from the available [`Room`], without delaying the
    /// command.
    pub budget_bytes: u64,
    /// The hints have proved right: the whole budget is available from the start.
    pub trusted: bool,
    /// Whether the disks have arms; `None`: as the system says.
    pub arm: Option<bool>,
    /// Where the system's virtual file systems are.
    pub roots: Roots,
}

/// The result of a run.
pub(super) struct Finished {
    pub status: Status,
    pub report: Report,
    /// Why the hints no longer fit the command, if they do not.
    pub unfit: Option<String>,
}

/// Runs the command.
///
/// # Errors
/// The command cannot be started, or a key of the policy is wrong; nothing has been started then.
pub fn run(settings: Settings) -> Result<(Status, Report), Error> {
    run_whole(settings).map(|Finished { status, report, .. }| (status, report))
}

/// See [`run`].
///
/// # Errors
/// See [`run`].
pub(super) fn run_whole(mut settings: Settings) -> Result<Finished, Error> {
    // Finds a wrong key before the command is started.
    check(&settings)?;
    let list = std::mem::take(&mut settings.list);
    // The command is started in parallel to everything else: it waits only for the trace, and for the head start of
    // trusted hints.
    let (traced, is_traced) = channel();
    let (go, may_go) = channel();
    let starting = thread::Builder::new().spawn({
        let (roots, command) = (settings.roots.clone(), settings.command.clone());
        let trusted = settings.trusted;
        let patience =
            (!list.ranges.is_empty()).then(|| if trusted { PATIENCE_TRUSTED } else { patience(list.elapsed_ns) });
        move || start_traced(patience.map(|patience| (&roots, patience)), &command, &traced, &may_go)
    });
    let Ok(starting) = starting else {
        return left_alone(start(&settings.command, None)?, &settings, &list, NO_THREAD);
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
        // If hints are followed at once, the first reads are in flight when the command begins.
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
        // Even then the command must be waited for.
        (Err(problem), running) => {
            let _ = running.map(|mut running| running.child.wait());
            Err(problem)
        }
    }
}

/// Maximum wait of a command for its trace, which the kernel creates in some ms unless it is removing another one.
fn patience(recorded_ns: u64) -> Duration {
    Duration::from_nanos(recorded_ns / PATIENCE_SHARE).max(PATIENCE_MIN)
}

/// Why nothing is seen.
#[derive(Default)]
struct Untraced {
    text: String,
    is_busy: bool,
}

/// A started command.
struct Running {
    child: Started,
    started: Instant,
    trace: Option<Trace>,
}

/// Creates the trace if there are `roots` for it, reports why there is none otherwise, and starts the command once it
/// may. If `may_go` is closed, the command must not be started.
fn start_traced(
    wanted: Option<(&Roots, Duration)>,
    command: &[OsString],
    traced: &Sender<Option<Untraced>>,
    may_go: &Receiver<()>,
) -> Result<Running, Error> {
    let trace = wanted.map(|(roots, patience)| Trace::new(roots, patience));
    let untraced = match &trace {
        None => Some(Untraced { text: "there are no hints".to_owned(), is_busy: false }),
        Some(Ok(_)) => None,
        Some(Err(problem)) => {
            Some(Untraced { text: problem.to_string(), is_busy: problem.problem == page_trace::BUSY })
        }
    };
    let _ = traced.send(untraced);
    may_go.recv().map_err(|_| not_started(command, io::ErrorKind::Interrupted.into()))?;
    let running = start(command, trace.and_then(Result::ok))?;
    wanted.into_iter().for_each(|(roots, _)| sweep_beside(roots));
    Ok(running)
}

/// Starts the command, whose reads `trace` shows.
fn start(command: &[OsString], mut trace: Option<Trace>) -> Result<Running, Error> {
    let switches = trace.as_mut().and_then(Trace::switches);
    let started = begin();
    let child = child::start(command, switches).map_err(|source| not_started(command, source))?;
    Ok(Running { child, started, trace })
}

fn not_started(command: &[OsString], source: io::Error) -> Error {
    let program = command.first().cloned().unwrap_or_default().to_string_lossy().into_owned();
    Error::Start { program, source }
}

/// The result of starting the command.
fn ended(starting: JoinHandle<Result<Running, Error>>) -> Result<Running, Error> {
    starting.join().unwrap_or_else(|panic| resume_unwind(panic))
}

/// Waits for a command that has no memory to spare, using as little as possible.
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

/// Checks `settings` independently of the hints.
///
/// # Errors
/// The policy or one of its keys is wrong.
pub(super) fn check(settings: &Settings) -> Result<(), Error> {
    let nothing = HintList::default();
    plan(settings, Trust::Whole).setting(&nothing, 1, settings.arm.unwrap_or(false))?.tier(&[])?;
    Ok(())
}

/// How to prefetch for the command.
fn plan(settings: &Settings, trust: Trust) -> Plan {
    let Settings { row, keys, budget_bytes, .. } = settings;
    Plan { row, keys: keys.clone(), budget_bytes: *budget_bytes, trust }
}

/// By file: its disk; and the facts of each disk.
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

/// Resets the file that woke the loop, so that it is no longer readable. The number does not matter.
fn take(mut wake: &File) {
    let _ = wake.read(&mut [0; 8]);
}

/// The state of the loop.
struct Host {
    conductor: Conductor<Disks>,
    done: Receiver<Done>,
    trace: Option<Trace>,
    report: Report,
    started: Instant,
    /// Duration of the recorded run.
    recorded: Duration,
    /// What to read before the command is started.
    head_start: Option<HeadStart>,
    /// References to hinted pages, and when the last one was seen, since the start.
    matched: u64,
    matched_last: Duration,
}

impl Host {
    /// For a command that is about to run; `untraced`: why its reads will not be visible, if so.
    fn new(settings: Settings, list: HintList, untraced: Option<String>) -> Result<Self, Error> {
        let settings = &settings;
        let (disk_of_file, facts) = facts_of(settings, &list);
        // Without a trace there is no proof to wait for.
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
        let machine = Machine::try_new(&setting, universe)?;
        let (recorded, recorded_ns) = (Duration::from_nanos(list.elapsed_ns), Nanos(list.elapsed_ns));
        let waited = waited_for_page(&list.ranges);
        // A command that cannot be started is reported at once.
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

    /// Reads ahead of a command that is not started yet. Its clock continues from there.
    fn give_head_start(&mut self) {
        let Some(head_start) = self.head_start.take_if(|it| !it.is_over(Nanos::ZERO, Settled::default())) else {
            return;
        };
        let wake = self.conductor.queues.wake.clone();
        loop {
            // Checked before the messages are read: what is idle now has sent them all.
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

    /// Runs until the command ends.
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
                // A window that a fault might still have followed was mapped after all.
                self.observe();
                return;
            }
            if going {
                self.conductor.act(self.now());
                self.trace.iter().filter(|_| self.conductor.stopped.is_some()).for_each(Trace::uses_only);
            }
            // A command that runs for days is not watched for days.
            if self.is_settled() || self.is_idle() {
                self.trace.take().into_iter().for_each(|trace| trace.leave(false));
                self.conductor.queues.stop();
                wait_readable(&[Some(ended)], -1);
                return;
            }
        }
    }

    /// Whether nothing more is to be read, and every prefetched page has been used.
    fn is_settled(&self) -> bool {
        let Self { conductor, .. } = self;
        conductor.stopped.is_some() && conductor.has_used_all() && conductor.queues.are_idle()
    }

    /// Whether nothing more is expected: the command has not referenced a hinted page for long.
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

    /// Handles the messages of the disks.
    fn hear(&mut self, now: Nanos) {
        self.done.try_iter().for_each(|said| self.conductor.heard(now, said));
    }

    /// Handles the references of the command.
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
