//! State shared by the threads of a run: the machine, the clock and the disks.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use headstart_policy::BlockMap;
use headstart_types::Nanos;

use super::disks::Disk;
use super::machine::Machine;
use headstart_host::Clock;

/// State shared by the threads of a run. The clock's workers are the disks, then the processes, then the timer.
pub(super) struct Testbed<'a, C, S> {
    pub clock: &'a C,
    pub machine: Mutex<Machine<S>>,
    pub disks: Vec<Disk>,
    pub service: Nanos,
    pub processes: usize,
    /// Processes that are not done.
    pub running: AtomicUsize,
    pub stopped: AtomicBool,
    /// Threads that have not ended.
    pub left: Mutex<usize>,
    pub ended: Condvar,
}

impl<C: Clock, S: BlockMap + Send> Testbed<'_, C, S> {
    /// Worker of a process.
    pub fn worker(&self, process: u32) -> usize {
        self.disks.len() + process as usize
    }

    /// Accesses the machine.
    pub fn look<R>(&self, look: impl FnOnce(&mut Machine<S>) -> R) -> R {
        look(&mut self.machine())
    }

    /// Notifies the machine with `tell`, and lets it act once every thread with news of this instant has done so. Then
    /// disks get their requests, and threads whose times have changed are woken.
    pub fn act(&self, worker: usize, tell: impl FnOnce(&mut Machine<S>)) {
        tell(&mut self.machine());
        while self.turn(worker) {}
    }

    /// Lets the machine act. Returns whether it has more to do at this instant.
    fn turn(&self, worker: usize) -> bool {
        self.clock.settle(worker);
        let mut machine = self.machine();
        // Read while no other thread acts, so that times never decrease.
        let now = self.clock.now();
        machine.turn(now);
        for request in machine.take_requests() {
            let disk = request.disk.index();
            self.disks[disk].order(now, request);
            self.clock.wake(disk);
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

    /// Worker of the timer.
    pub fn timer(&self) -> usize {
        self.disks.len() + self.processes
    }

    /// Wakes the disks and the timer, to check whether they have anything left to do.
    fn wake_servants(&self) {
        (0..self.disks.len()).chain([self.timer()]).for_each(|worker| self.clock.wake(worker));
    }

    /// Whether all threads must end.
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::SeqCst)
    }

    pub fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
        (0..=self.timer()).for_each(|worker| self.clock.wake(worker));
    }

    pub fn machine(&self) -> MutexGuard<'_, Machine<S>> {
        self.machine.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The thread of a disk.
    pub fn serve(&self, index: usize) {
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

    /// The thread of the timer, for events at times of their own.
    pub fn keep_time(&self) {
        let worker = self.timer();
        while !self.is_stopped() && self.running.load(Ordering::SeqCst) > 0 {
            let now = self.clock.now();
            match self.look(|machine| machine.timer()) {
                Some(at) if at <= now => self.act(worker, |_| {}),
                at => self.clock.park(worker, at),
            }
        }
    }

    /// A process's thread ends.
    pub fn is_done(&self) {
        if self.running.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.wake_servants();
        }
    }
}
