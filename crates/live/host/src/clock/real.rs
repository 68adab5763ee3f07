//! The machine's monotonic clock, scaled.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use headstart_types::Nanos;

use super::Clock;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Phase {
    /// Its thread has not begun.
    #[default]
    Outside,
    Runs,
    /// Parked until a time.
    Sleeps,
    /// Parked until woken.
    Waits,
    Left,
}

#[derive(Debug, Default)]
struct Worker {
    phase: Phase,
    /// It was woken since it last parked.
    woken: bool,
}

#[derive(Debug, Default)]
struct Place {
    worker: Mutex<Worker>,
    changed: Condvar,
}

/// How late timed waits ended, in real time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Lateness {
    pub mean: Duration,
    pub most: Duration,
}

/// The machine's clock. A second of the program takes `1 / speed` real seconds.
#[derive(Debug)]
pub struct RealClock {
    speed: f64,
    places: Vec<Place>,
    begun: Mutex<usize>,
    all_begun: Condvar,
    start: OnceLock<Instant>,
    /// Counts wakes and parks, so that a check of all workers can tell whether it saw one instant.
    changes: AtomicU64,
    /// Number of timed waits that expired, and the sum and the maximum of their lateness, in real nanoseconds.
    waits: AtomicU64,
    late_sum: AtomicU64,
    late_max: AtomicU64,
}

impl RealClock {
    /// A clock for `workers` workers that starts when all have begun. The caller guarantees that `speed` is finite and
    /// positive.
    #[must_use]
    pub fn new(workers: usize, speed: f64) -> Self {
        Self {
            speed,
            places: (0..workers).map(|_| Place::default()).collect(),
            begun: Mutex::new(0),
            all_begun: Condvar::new(),
            start: OnceLock::new(),
            changes: AtomicU64::new(0),
            waits: AtomicU64::new(0),
            late_sum: AtomicU64::new(0),
            late_max: AtomicU64::new(0),
        }
    }

    /// Ignores poisoning: the worker that panicked reports it.
    fn worker(&self, worker: usize) -> MutexGuard<'_, Worker> {
        self.places[worker].worker.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a worker that has begun.
    #[allow(clippy::disallowed_methods)] // As in `now`.
    fn begins(&self) -> MutexGuard<'_, usize> {
        let mut begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        *begun += 1;
        if *begun == self.places.len() {
            self.start.get_or_init(Instant::now);
            self.all_begun.notify_all();
        }
        begun
    }

    /// Records the lateness of a timed wait.
    fn note_late(&self, late: Nanos) {
        let late = self.real(late).as_nanos() as u64;
        self.waits.fetch_add(1, Ordering::Relaxed);
        self.late_sum.fetch_add(late, Ordering::Relaxed);
        self.late_max.fetch_max(late, Ordering::Relaxed);
    }

    /// Lateness of timed waits so far.
    #[must_use]
    pub fn lateness(&self) -> Lateness {
        let mean = self.late_sum.load(Ordering::Relaxed).checked_div(self.waits.load(Ordering::Relaxed));
        let most = Duration::from_nanos(self.late_max.load(Ordering::Relaxed));
        Lateness { mean: Duration::from_nanos(mean.unwrap_or(0)), most }
    }

    fn note_change(&self) {
        self.changes.fetch_add(1, Ordering::SeqCst);
    }

    /// Real duration of `time` of the program.
    fn real(&self, time: Nanos) -> Duration {
        Duration::from_nanos((time.0 as f64 / self.speed) as u64)
    }
}

impl Clock for RealClock {
    #[allow(clippy::disallowed_methods)] // The one place where a live run reads the machine's clock.
    fn now(&self) -> Nanos {
        let Some(start) = self.start.get() else { return Nanos::ZERO };
        Nanos((start.elapsed().as_nanos() as f64 * self.speed) as u64)
    }

    fn enter(&self, worker: usize) {
        self.worker(worker).phase = Phase::Runs;
        let mut begun = self.begins();
        while *begun < self.places.len() {
            begun = self.all_begun.wait(begun).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn leave(&self, worker: usize) {
        let before = std::mem::replace(&mut self.worker(worker).phase, Phase::Left);
        if before == Phase::Outside {
            // It will never begin: the others must not wait for it.
            drop(self.begins());
        }
        self.note_change();
    }

    fn park(&self, worker: usize, until: Option<Nanos>) {
        let place = &self.places[worker];
        let mut state = self.worker(worker);
        while !state.woken {
            state.phase = if until.is_some() { Phase::Sleeps } else { Phase::Waits };
            self.note_change();
            state = match until {
                None => place.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(until) => {
                    let now = self.now();
                    let left = until.saturating_sub(now);
                    if left == Nanos::ZERO {
                        self.note_late(now - until);
                        break;
                    }
                    // At least a nanosecond, so that a high speed does not turn this into a busy wait.
                    let wait = self.real(left).max(Duration::from_nanos(1));
                    place.changed.wait_timeout(state, wait).unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
        *state = Worker { phase: Phase::Runs, woken: false };
        self.note_change();
    }

    fn settle(&self, _worker: usize) {}

    fn wake(&self, worker: usize) {
        self.worker(worker).woken = true;
        self.note_change();
        self.places[worker].changed.notify_one();
    }

    fn is_stuck(&self) -> bool {
        let before = self.changes.load(Ordering::SeqCst);
        let (mut waits, mut others) = (0, 0);
        for worker in 0..self.places.len() {
            match *self.worker(worker) {
                Worker { phase: Phase::Left, .. } => {}
                Worker { phase: Phase::Waits, woken: false } => waits += 1,
                Worker { .. } => others += 1,
            }
        }
        waits > 0 && others == 0 && self.changes.load(Ordering::SeqCst) == before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wake_before_the_park_is_not_lost() {
        let clock = RealClock::new(1, 1.0);
        clock.enter(0);
        clock.wake(0);
        clock.park(0, None);
        assert!(!clock.is_stuck(), "it runs");
    }

    #[test]
    fn a_park_lasts_as_long_as_it_should_at_any_speed() {
        for speed in [1.0, 10.0] {
            let clock = RealClock::new(1, speed);
            clock.enter(0);
            let until = clock.now() + Nanos(20_000_000);
            clock.park(0, Some(until));
            let late = clock.now();
            assert!(late >= until, "never shorter; longer is the machine's business");
            let Lateness { mean, most } = clock.lateness();
            assert!(mean == most && most <= clock.real(late - until), "one wait, whose lateness is known");
        }
    }

    #[test]
    fn all_wait_for_each_other() {
        let clock = RealClock::new(2, 1.0);
        std::thread::scope(|scope| {
            for worker in 0..2 {
                let clock = &clock;
                scope.spawn(move || {
                    clock.enter(worker);
                    clock.park(worker, None);
                    clock.leave(worker);
                });
            }
            while !clock.is_stuck() {
                std::thread::yield_now();
            }
            clock.wake(0);
            clock.wake(1);
        });
        assert!(!clock.is_stuck(), "nobody is left");
    }
}
