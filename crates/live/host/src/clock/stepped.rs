//! A virtual clock: one worker runs at a time, and time passes only while all are parked.
//!
//! At one instant, workers that are woken or due run in the order of their numbers. The operating system's scheduling
//! does not matter, so equal runs are identical to the nanosecond.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use headstart_types::Nanos;

use super::Clock;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Its thread has not begun.
    Outside,
    /// It runs as soon as no other worker does.
    Ready,
    Runs,
    Parked(Option<Nanos>),
    /// It runs when no other worker can run at this instant.
    Settles,
    Left,
}

#[derive(Debug)]
struct State {
    now: Nanos,
    phases: Vec<Phase>,
    /// By worker: whether it was woken since it last parked.
    woken: Vec<bool>,
    stuck: bool,
}

impl State {
    /// Picks the next worker to run, if none is running.
    fn pick(&mut self) -> Option<usize> {
        if self.phases.iter().any(|phase| matches!(phase, Phase::Outside | Phase::Runs)) {
            return None;
        }
        let due = |phase: &Phase, now: Nanos| match phase {
            Phase::Ready => true,
            Phase::Parked(Some(until)) => *until <= now,
            _ => false,
        };
        let mut next = self.phases.iter().position(|phase| due(phase, self.now));
        next = next.or_else(|| self.phases.iter().position(|phase| *phase == Phase::Settles));
        if next.is_none() {
            let times = self.phases.iter().filter_map(|phase| match phase {
                Phase::Parked(until) => *until,
                _ => None,
            });
            self.now = times.min().unwrap_or(self.now);
            next = self.phases.iter().position(|phase| due(phase, self.now));
        }
        match next {
            Some(worker) => self.phases[worker] = Phase::Runs,
            None => self.stuck = self.phases.iter().any(|phase| *phase != Phase::Left),
        }
        next
    }
}

#[derive(Debug)]
pub struct SteppedClock {
    state: Mutex<State>,
    turns: Vec<Condvar>,
}

impl SteppedClock {
    /// A clock for `workers` workers, at time zero.
    #[must_use]
    pub fn new(workers: usize) -> Self {
        let phases = vec![Phase::Outside; workers];
        let state = State { now: Nanos::ZERO, phases, woken: vec![false; workers], stuck: false };
        Self { state: Mutex::new(state), turns: (0..workers).map(|_| Condvar::new()).collect() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets the next worker run, and waits for the turn of `worker`.
    fn wait_turn<'a>(&self, mut state: MutexGuard<'a, State>, worker: usize) -> MutexGuard<'a, State> {
        self.pass_on(&mut state);
        while state.phases[worker] != Phase::Runs {
            state = self.turns[worker].wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state
    }

    fn pass_on(&self, state: &mut State) {
        if let Some(next) = state.pick() {
            self.turns[next].notify_one();
        }
    }
}

impl Clock for SteppedClock {
    fn now(&self) -> Nanos {
        self.state().now
    }

    fn enter(&self, worker: usize) {
        let mut state = self.state();
        state.phases[worker] = Phase::Ready;
        drop(self.wait_turn(state, worker));
    }

    fn leave(&self, worker: usize) {
        let mut state = self.state();
        state.phases[worker] = Phase::Left;
        self.pass_on(&mut state);
    }

    fn park(&self, worker: usize, until: Option<Nanos>) {
        let mut state = self.state();
        state.phases[worker] = if state.woken[worker] { Phase::Ready } else { Phase::Parked(until) };
        self.wait_turn(state, worker).woken[worker] = false;
    }

    fn settle(&self, worker: usize) {
        let mut state = self.state();
        state.phases[worker] = Phase::Settles;
        drop(self.wait_turn(state, worker));
    }

    fn wake(&self, worker: usize) {
        let mut state = self.state();
        if let Phase::Parked(_) = state.phases[worker] {
            state.phases[worker] = Phase::Ready;
        }
        state.woken[worker] = true;
        state.stuck = false;
        // Called from outside while no worker runs.
        self.pass_on(&mut state);
    }

    fn is_stuck(&self) -> bool {
        self.state().stuck
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_run_in_turn_and_time_jumps() {
        let clock = SteppedClock::new(3);
        let log = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for worker in (0..3).rev() {
                let (clock, log) = (&clock, &log);
                scope.spawn(move || {
                    clock.enter(worker);
                    for step in 1..=2 {
                        // Worker 1 wakes worker 2.
                        let until = (worker < 2).then_some(Nanos(step * 1_000_000_000 * (worker as u64 + 1)));
                        clock.park(worker, until);
                        log.lock().expect("no panic").push((clock.now().0 / 1_000_000_000, worker));
                        if worker == 1 {
                            clock.wake(2);
                        }
                    }
                    clock.leave(worker);
                });
            }
        });
        let log = log.into_inner().expect("no panic");
        assert_eq!(log, [(1, 0), (2, 0), (2, 1), (2, 2), (4, 1), (4, 2)]);
    }

    #[test]
    fn tells_when_nothing_will_happen() {
        let clock = SteppedClock::new(1);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                clock.enter(0);
                clock.park(0, None);
                clock.leave(0);
            });
            while !clock.is_stuck() {
                std::thread::yield_now();
            }
            clock.wake(0);
        });
        assert!(!clock.is_stuck());
    }
}
