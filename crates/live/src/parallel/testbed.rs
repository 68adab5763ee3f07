//! The threads of a run: starting, ending and stopping them, and what they have in common.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use headstart_engine::parallel::{Outcome, Setup};
use headstart_policy::Space;
use headstart_types::{Block, Nanos};

use super::disks::Disk;
use super::machine::Machine;
use super::process::Process;
use super::Error;
use crate::Clock;

/// How often the thread that started the run looks at it.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Room for a thread: none of them recurses.
const STACK_BYTES: usize = 256 * 1024;

/// What the threads of a run share. Its workers are the disks, then the processes, then the timer.
pub(super) struct Testbed<'a, C, S> {
    pub clock: &'a C,
    machine: Mutex<Machine<S>>,
    disks: Vec<Disk>,
    service: Nanos,
    processes: usize,
    /// Processes that are not done.
    running: AtomicUsize,
    stopped: AtomicBool,
    /// Threads that have not ended.
    left: Mutex<usize>,
    ended: Condvar,
}

impl<C: Clock, S: Space + Send> Testbed<'_, C, S> {
    /// The worker of a process.
    pub fn worker(&self, process: u32) -> usize {
        self.disks.len() + process as usize
    }

    /// Looks at the shared state, or takes something out of it.
    pub fn look<R>(&self, look: impl FnOnce(&mut Machine<S>) -> R) -> R {
        look(&mut self.machine())
    }

    /// Tells the machine of something, and lets it act once everybody has told it who has something to tell at this instant.
    /// Disks get their orders, threads whose times have changed are woken.
    pub fn act(&self, worker: usize, tell: impl FnOnce(&mut Machine<S>)) {
        tell(&mut self.machine());
        while self.turn(worker) {}
    }

    /// Lets the machine act. Returns whether there is more for it to do at this instant.
    fn turn(&self, worker: usize) -> bool {
        self.clock.settle(worker);
        let mut machine = self.machine();
        // Read while nobody else acts, so that times never decrease.
        let now = self.clock.now();
        machine.turn(now);
        for (disk, request) in machine.take_orders() {
            self.disks[disk.index()].order(now, request);
            self.clock.wake(disk.index());
        }
        for process in machine.wakes.drain(..) {
            self.clock.wake(self.worker(process));
        }
        if std::mem::take(&mut machine.wakes_timer) {
            self.clock.wake(self.timer());
        }
        if machine.is_over() {
            self.wake_servants();
        }
        machine.has_ended()
    }

    /// The worker that is the timer.
    fn timer(&self) -> usize {
        self.disks.len() + self.processes
    }

    /// The disks and the timer look whether there is anything left for them to do.
    fn wake_servants(&self) {
        (0..self.disks.len()).chain([self.timer()]).for_each(|worker| self.clock.wake(worker));
    }

    /// Whether everybody is to end.
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::SeqCst)
    }

    fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
        (0..=self.timer()).for_each(|worker| self.clock.wake(worker));
    }

    fn machine(&self) -> MutexGuard<'_, Machine<S>> {
        self.machine.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The thread of a disk.
    fn serve(&self, index: usize) {
        let disk = &self.disks[index];
        while !self.is_stopped() && self.running.load(Ordering::SeqCst) > 0 {
            let now = self.clock.now();
            match disk.next_at() {
                Some(at) if at <= now => {
                    let (request, data) = disk.take(now);
                    self.act(index, |machine| machine.brought(&request, data, self.service));
                }
                next_at => self.clock.park(index, next_at),
            }
        }
    }

    /// The thread of the timer: for what comes at a time of its own.
    fn keep_time(&self) {
        let worker = self.timer();
        while !self.is_stopped() && self.running.load(Ordering::SeqCst) > 0 {
            let now = self.clock.now();
            match self.look(|machine| machine.timer()) {
                Some(at) if at <= now => self.act(worker, |_| {}),
                at => self.clock.park(worker, at),
            }
        }
    }

    /// A process's thread is at its end.
    fn is_done(&self) {
        if self.running.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.wake_servants();
        }
    }
}

/// Ends a thread, however that comes about.
struct Thread<'a, 'b, C: Clock, S: Space + Send>(&'a Testbed<'b, C, S>, usize);

impl<C: Clock, S: Space + Send> Drop for Thread<'_, '_, C, S> {
    fn drop(&mut self) {
        let Thread(testbed, worker) = self;
        if (testbed.disks.len()..testbed.timer()).contains(worker) {
            testbed.is_done();
        }
        if thread::panicking() {
            testbed.stop();
        }
        testbed.clock.leave(*worker);
        *testbed.left.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        testbed.ended.notify_all();
    }
}

/// Plays a parallel program whose blocks lie in `space`, by a clock made for [`workers`]. Every now and then `on_progress` is told
/// the share of the references that has been taken, and their number; it says whether to go on.
///
/// # Errors
/// `on_progress` said no, or the machine gives no more threads.
///
/// # Panics
/// A process gets a wrong block, or an invariant of the cache does not hold: a bug.
pub fn run<C: Clock, S: Space + Send>(
    setup: Setup,
    space: S,
    clock: &C,
    on_progress: &mut dyn FnMut(f64, u64) -> bool,
) -> Result<Outcome, Error> {
    let (workers, processes) = (workers(&setup), setup.processes());
    let testbed = Testbed {
        clock,
        disks: disks(&setup, &space),
        service: setup.service,
        processes,
        running: AtomicUsize::new(processes),
        stopped: AtomicBool::new(false),
        left: Mutex::new(workers),
        ended: Condvar::new(),
        machine: Mutex::new(Machine::new(setup, space)),
    };
    let watched = thread::scope(|scope| {
        let disks = testbed.disks.len();
        for worker in 0..workers {
            let testbed = &testbed;
            let thread = thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, move || {
                let _thread = Thread(testbed, worker);
                testbed.clock.enter(worker);
                match worker.checked_sub(disks) {
                    None => testbed.serve(worker),
                    Some(number) if number < processes => Process::new(testbed, number as u32).run(),
                    Some(_) => testbed.keep_time(),
                }
            });
            if let Err(problem) = thread {
                testbed.stop();
                (worker..workers).for_each(|worker| drop(Thread(testbed, worker)));
                return Err(Error::Threads { count: workers, problem: problem.to_string() });
            }
        }
        watch(&testbed, on_progress)
    });
    watched?;
    let machine = testbed.machine.into_inner().unwrap_or_else(PoisonError::into_inner);
    let end = machine.end();
    Ok(machine.outcome(testbed.disks.iter().map(|disk| disk.times(end)).collect()))
}

/// How many workers a run's clock has to be for: a thread for each disk and process, and one that keeps the time of links
/// and policies.
#[must_use]
pub fn workers(setup: &Setup) -> usize {
    setup.disks + setup.processes() + 1
}

/// Looks at a run until all of its threads have ended.
fn watch<C: Clock, S: Space + Send>(
    testbed: &Testbed<'_, C, S>,
    on_progress: &mut dyn FnMut(f64, u64) -> bool,
) -> Result<(), Error> {
    let mut outcome = Ok(());
    let mut left = testbed.left.lock().unwrap_or_else(PoisonError::into_inner);
    while *left > 0 {
        left = testbed.ended.wait_timeout(left, LOOK_EVERY).unwrap_or_else(PoisonError::into_inner).0;
        if *left == 0 || outcome.is_err() {
            continue;
        }
        drop(left);
        let (taken, all) = testbed.machine().progress();
        if testbed.clock.is_stuck() {
            outcome = Err(Error::Stuck(testbed.machine().describe()));
        } else if !on_progress(taken as f64 / all.max(1) as f64, taken) {
            outcome = Err(Error::Stopped);
        }
        if outcome.is_err() {
            testbed.stop();
        }
        left = testbed.left.lock().unwrap_or_else(PoisonError::into_inner);
    }
    outcome
}

/// The disks, each with its blocks.
fn disks(setup: &Setup, space: &impl Space) -> Vec<Disk> {
    let mut blocks: Vec<Vec<Block>> = vec![Vec::new(); setup.disks];
    let slot_of: Arc<[u32]> = (0..space.blocks() as u32)
        .map(|block| {
            let of_disk = &mut blocks[space.disk(Block(block)).index()];
            of_disk.push(Block(block));
            of_disk.len() as u32 - 1
        })
        .collect();
    blocks.iter().map(|blocks| Disk::new(blocks, slot_of.clone(), setup.block_bytes, setup.service)).collect()
}
