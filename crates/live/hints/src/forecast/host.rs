//! The host: a command's threads, and what `headstart run` would be beside them. Time is virtual.
//!
//! At each instant, requests end, the command's threads go on, the conductor acts, and readers take what it has ordered.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use headstart_policy::readahead::Run;
use headstart_types::Nanos;
use rustc_hash::FxBuildHasher;

use super::memory::Memory;
use super::prefetcher::Prefetcher;
use super::program::{Action, Program};
use super::report::Row;
use crate::head_start::HeadStart;
use crate::list::PAGE_BYTES;
use crate::report::Report;
use crate::trace::By;

/// The end of a step that has not ended.
const NEVER: Nanos = Nanos(u64::MAX);

/// By file and page: when it was first requested, and when it was there.
pub(super) type Times = HashMap<(u32, u64), (Nanos, Nanos), FxBuildHasher>;

/// A running command.
pub(super) struct Host<'a> {
    program: &'a Program,
    memory: Memory<'a>,
    prefetcher: Option<Prefetcher>,
    pub times: Times,
    /// By thread: the steps that have ended.
    done: Vec<u32>,
    /// Threads whose next step waits for this step of another thread.
    parked: HashMap<(u32, u32), Vec<u32>, FxBuildHasher>,
    /// When threads begin their next steps.
    ready: BinaryHeap<Reverse<(Nanos, u32)>>,
    /// Threads that have not ended.
    left: usize,
}

impl<'a> Host<'a> {
    pub fn new(program: &'a Program, memory: Memory<'a>, prefetcher: Option<Prefetcher>) -> Self {
        let left = program.threads.len();
        let (times, parked, ready) = (Times::default(), HashMap::default(), BinaryHeap::new());
        Self { program, memory, prefetcher, times, done: vec![0; left], parked, ready, left }
    }

    /// Runs the command to its end. `head_start`: what to read before the command is started.
    pub fn run(&mut self, policy: &'static str, mut head_start: Option<HeadStart>) -> Row {
        let mut now = Nanos::ZERO;
        if head_start.is_none() {
            self.start(now);
        }
        while self.left > 0 {
            for waiter in self.memory.advance(now) {
                let is_reader = |prefetcher: &mut Prefetcher| prefetcher.ended(now, waiter);
                if !self.prefetcher.as_mut().is_some_and(is_reader) {
                    self.end_step(now, waiter as u32);
                }
            }
            while let Some(Reverse((_, thread))) = self.ready.peek().filter(|Reverse((at, _))| *at <= now).copied() {
                self.ready.pop();
                if !self.step(now, thread) {
                    self.end_step(now, thread);
                }
            }
            let prefetches_at = self.prefetcher.as_mut().and_then(|prefetcher| {
                prefetcher.turn(now, &mut self.memory);
                prefetcher.next_event()
            });
            let next = self.memory.disks.next_event().into_iter().chain(prefetches_at).min();
            let settled = self.prefetcher.as_ref().map(|prefetcher| prefetcher.conductor.settled());
            if head_start.take_if(|start| next.is_none() || start.is_over(now, settled.unwrap_or_default())).is_some() {
                self.start(now);
            }
            if self.left > 0 {
                let next = next.into_iter().chain(self.ready.peek().map(|Reverse((at, _))| *at)).min();
                now = next.expect("a thread waits for something").max(now);
            }
        }
        let mut report = Report::new(policy);
        self.prefetcher.iter_mut().for_each(|prefetcher| prefetcher.finish(now, &mut report));
        Row {
            policy: report.policy.to_owned(),
            elapsed_ns: (now + self.program.tail).0,
            requests: self.memory.disks.requests,
            read_bytes: self.memory.disks.pages * PAGE_BYTES,
            prefetched_bytes: report.prefetched_bytes,
            used_bytes: report.used_bytes,
            late_bytes: report.late_bytes,
            wasted_bytes: report.wasted_bytes,
            stopped: report.stopped,
            ..Row::default()
        }
    }

    fn start(&mut self, now: Nanos) {
        (0..self.done.len() as u32).for_each(|thread| self.prepare(now, thread));
    }

    /// Lets a thread think before its next step, unless that waits for a step of another thread.
    fn prepare(&mut self, now: Nanos, thread: u32) {
        let Some(step) = self.program.threads[thread as usize].get(self.done[thread as usize] as usize) else {
            self.left -= 1;
            return;
        };
        match step.after.iter().find(|(of, step)| self.done[*of as usize] <= *step) {
            Some(unmet) => self.parked.entry(*unmet).or_default().push(thread),
            None => self.ready.push(Reverse((now + step.think, thread))),
        }
    }

    fn action(&self, thread: u32) -> &'a Action {
        &self.program.threads[thread as usize][self.done[thread as usize] as usize].action
    }

    /// Begins a step. Returns whether the thread waits for pages.
    fn step(&mut self, now: Nanos, thread: u32) -> bool {
        let action = self.action(thread);
        self.note(now, action, false);
        let waiter = thread.into();
        match action {
            Action::Read(run) => {
                let runs = self.memory.read(thread, *run);
                let coming = runs.iter().find(|run| self.memory.absent(run).next().is_some());
                coming.into_iter().for_each(|run| self.see(now, *run, By::Coming));
                // The first of them begins with the pages that are needed.
                debug_assert_eq!(runs[0].first, run.first);
                let waits = self.memory.request(now, waiter, &[*run], runs[0].count - run.count);
                self.memory.fetch(now, &runs[1..]);
                waits
            }
            Action::Fault(run) => {
                self.see(now, *run, By::Use);
                self.fault(now, thread, *run)
            }
            Action::Map(run) => {
                self.see(now, *run, By::Use);
                if self.memory.has_any(run) {
                    self.memory.mapped(thread, run);
                    return false;
                }
                // If none is there, one of them was touched.
                self.fault(now, thread, Run { count: 1, ..*run })
            }
            Action::Metadata(runs, waits) => {
                for run in runs {
                    for first in self.memory.absent(run).collect::<Vec<_>>() {
                        self.see(now, Run { first, count: 1, ..*run }, By::Metadata);
                    }
                }
                if *waits {
                    return self.memory.request(now, waiter, runs, 0);
                }
                self.memory.fetch(now, runs);
                false
            }
        }
    }

    fn fault(&mut self, now: Nanos, thread: u32, run: Run) -> bool {
        let runs = self.memory.fault(thread, run);
        self.memory.fetch(now, &runs);
        self.memory.request(now, thread.into(), &[run], 0)
    }

    /// Notes the start or end of a step of the plain command.
    fn note(&mut self, now: Nanos, action: &Action, has_ended: bool) {
        if self.prefetcher.is_some() {
            return;
        }
        for page in action.runs().iter().flat_map(|run| (run.first..run.end()).map(|page| (run.file, page))) {
            // The first time counts for a page that comes again.
            let times = self.times.entry(page).or_insert((now, NEVER));
            if has_ended && times.1 == NEVER {
                times.1 = now;
            }
        }
    }

    fn see(&mut self, now: Nanos, run: Run, by: By) {
        if let Some(prefetcher) = &mut self.prefetcher {
            prefetcher.see(now, run, by);
        }
    }

    fn end_step(&mut self, now: Nanos, thread: u32) {
        let action = self.action(thread);
        self.note(now, action, true);
        // A read becomes visible when it has its pages.
        if let Action::Read(run) = action {
            self.see(now, *run, By::Use);
        }
        let step = (thread, self.done[thread as usize]);
        self.done[thread as usize] += 1;
        for parked in self.parked.remove(&step).unwrap_or_default() {
            self.prepare(now, parked);
        }
        self.prepare(now, thread);
    }
}
