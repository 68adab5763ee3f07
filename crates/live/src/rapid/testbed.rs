//! The threads of a run: starting, ending and stopping them, and what they have in common.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use headstart_engine::parallel::{Outcome, Setup};
use headstart_types::{Block, Nanos};

use super::disks::Disk;
use super::files::Files;
use super::process::Process;
use super::Error;
use crate::Clock;

/// How often the thread that started the run looks at it.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Room for a thread: none of them recurses.
const STACK_BYTES: usize = 256 * 1024;

/// What the threads of a run share. Its workers are the disks, then the processes.
pub(super) struct Testbed<'a, C> {
    pub clock: &'a C,
    pub read_cost: Nanos,
    files: Mutex<Files>,
    disks: Vec<Disk>,
    service: Nanos,
    has_actions: bool,
    /// Processes that are not done.
    running: AtomicUsize,
    stopped: AtomicBool,
    /// Threads that have not ended.
    left: Mutex<usize>,
    ended: Condvar,
}

impl<C: Clock> Testbed<'_, C> {
    /// The worker of a process.
    pub fn worker(&self, process: u32) -> usize {
        self.disks.len() + process as usize
    }

    /// Does something with the shared state, and what follows from it: disks get their orders, threads are woken.
    pub fn act<R>(&self, act: impl FnOnce(&mut Files, Nanos) -> R) -> R {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        // Read while nobody else acts, so that times never decrease.
        let now = self.clock.now();
        let result = act(&mut files, now);
        for (block, disk) in files.orders.0.drain(..) {
            self.disks[disk.index()].order(now, block);
            self.clock.wake(disk.index());
        }
        for process in files.wakes.drain(..) {
            self.clock.wake(self.disks.len() + process as usize);
        }
        result
    }

    /// Idle processors may have something to do now.
    pub fn offer(&self, worker: usize) {
        if self.has_actions {
            self.clock.settle(worker);
            self.act(Files::offer_actions);
        }
    }

    /// Whether everybody is to end.
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::SeqCst)
    }

    fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
        (0..self.disks.len() + self.running_max()).for_each(|worker| self.clock.wake(worker));
    }

    fn running_max(&self) -> usize {
        self.files().processes()
    }

    fn files(&self) -> MutexGuard<'_, Files> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The thread of a disk.
    fn serve(&self, index: usize) {
        let disk = &self.disks[index];
        while !self.is_stopped() && self.running.load(Ordering::SeqCst) > 0 {
            let now = self.clock.now();
            match disk.next_at() {
                Some(at) if at <= now => {
                    let (block, data) = disk.take(now);
                    let disk = headstart_types::Disk(index as u32);
                    self.act(|files, now| files.arrived(now, block, disk, self.service, data));
                    self.offer(index);
                }
                next_at => self.clock.park(index, next_at),
            }
        }
    }

    /// A process's thread is at its end.
    fn is_done(&self) {
        if self.running.fetch_sub(1, Ordering::SeqCst) == 1 {
            (0..self.disks.len()).for_each(|disk| self.clock.wake(disk));
        }
    }
}

/// Ends a thread, however that comes about.
struct Thread<'a, 'b, C: Clock>(&'a Testbed<'b, C>, usize);

impl<C: Clock> Drop for Thread<'_, '_, C> {
    fn drop(&mut self) {
        let Thread(testbed, worker) = self;
        if *worker >= testbed.disks.len() {
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

/// Plays a parallel program, by a clock made for [`workers`]. Every now and then `on_progress` is told
/// the share of the references that has been taken, and their number; it says whether to go on.
///
/// # Errors
/// `on_progress` said no, or the machine gives no more threads.
///
/// # Panics
/// A process gets a wrong block, or an invariant of the cache does not hold: a bug.
pub fn run<C: Clock>(
    mut setup: Setup,
    clock: &C,
    on_progress: &mut dyn FnMut(f64, u64) -> bool,
) -> Result<Outcome, Error> {
    let (workers, processes) = (workers(&setup), setup.processes());
    let thinks = std::mem::take(&mut setup.thinks);
    let testbed = Testbed {
        clock,
        read_cost: setup.read_cost,
        disks: disks(&setup),
        service: setup.service,
        has_actions: setup.actions.is_some(),
        running: AtomicUsize::new(processes),
        stopped: AtomicBool::new(false),
        left: Mutex::new(workers),
        ended: Condvar::new(),
        files: Mutex::new(Files::new(setup)),
    };
    let watched = thread::scope(|scope| {
        let disks = testbed.disks.len();
        let mut thinks = thinks.into_iter();
        for worker in 0..workers {
            let process = worker.checked_sub(disks).map(|number| {
                let think = thinks.next().expect("each process thinks");
                Process::new(&testbed, number as u32, think)
            });
            let testbed = &testbed;
            let thread = thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, move || {
                let _thread = Thread(testbed, worker);
                testbed.clock.enter(worker);
                match process {
                    Some(process) => process.run(),
                    None => testbed.serve(worker),
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
    let disks = testbed.disks.iter().map(Disk::times).collect();
    let files = testbed.files.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(files.outcome(disks))
}

/// How many workers a run's clock has to be for: a thread for each disk and process.
#[must_use]
pub fn workers(setup: &Setup) -> usize {
    setup.disks + setup.processes()
}

/// Looks at a run until all of its threads have ended.
fn watch<C: Clock>(testbed: &Testbed<'_, C>, on_progress: &mut dyn FnMut(f64, u64) -> bool) -> Result<(), Error> {
    let mut outcome = Ok(());
    let mut left = testbed.left.lock().unwrap_or_else(PoisonError::into_inner);
    while *left > 0 {
        left = testbed.ended.wait_timeout(left, LOOK_EVERY).unwrap_or_else(PoisonError::into_inner).0;
        if *left == 0 || outcome.is_err() {
            continue;
        }
        drop(left);
        let (taken, all) = testbed.files().progress();
        if testbed.clock.is_stuck() {
            outcome = Err(Error::Stuck(testbed.files().describe()));
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
fn disks(setup: &Setup) -> Vec<Disk> {
    let mut blocks: Vec<Vec<Block>> = vec![Vec::new(); setup.disks];
    let slot_of: Arc<[u32]> = (0u32..)
        .zip(&setup.disk_of)
        .map(|(block, disk)| {
            let of_disk = &mut blocks[disk.index()];
            of_disk.push(Block(block));
            of_disk.len() as u32 - 1
        })
        .collect();
    blocks.iter().map(|blocks| Disk::new(blocks, slot_of.clone(), setup.block_bytes, setup.service)).collect()
}
