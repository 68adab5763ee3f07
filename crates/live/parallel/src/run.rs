//! Starts, watches and ends the threads of a run.

use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use headstart_engine::parallel::{Played, Setup};
use headstart_policy::BlockMap;
use headstart_types::Block;

use super::disks::Disk;
use super::machine::Machine;
use super::process::Process;
use super::testbed::Testbed;
use super::Error;
use headstart_host::Clock;

/// How often the starting thread checks the run.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Stack size of a thread: none of them recurses.
const STACK_BYTES: usize = 256 * 1024;

/// Ends a thread, even by a panic.
struct Thread<'a, 'b, C: Clock, S: BlockMap + Send>(&'a Testbed<'b, C, S>, usize);

impl<C: Clock, S: BlockMap + Send> Drop for Thread<'_, '_, C, S> {
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

/// Plays a parallel program over the blocks of `space`, on a clock made for [`workers`]. `on_progress` is called
/// regularly with the share of the references taken and their number; it returns whether to continue.
///
/// # Errors
/// `on_progress` returned false, or the system cannot create enough threads.
///
/// # Panics
/// A process gets a wrong block, or an invariant of the cache is violated: a bug.
pub fn run<C: Clock, S: BlockMap + Send>(
    setup: Setup,
    space: S,
    clock: &C,
    on_progress: &mut dyn FnMut(f64, u64) -> bool,
) -> Result<Played, Error> {
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

/// Number of workers of a run's clock: a thread for each disk and process, and one that serves the timers of links and
/// policies.
#[must_use]
pub fn workers(setup: &Setup) -> usize {
    setup.disks + setup.processes() + 1
}

/// Watches a run until all of its threads have ended.
fn watch<C: Clock, S: BlockMap + Send>(
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

/// The disks with their blocks.
fn disks(setup: &Setup, space: &impl BlockMap) -> Vec<Disk> {
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
