//! The host: a command's threads and the readers of prefetches, around simulated disks. Time is virtual.
//!
//! ```text
//! at each instant: requests end -> conductor hears and acts -> the command's threads go on -> readers take what is
//! ordered
//! ```
//!
//! The code of `headstart run` (`crate`) decides about prefetching: machine, conductor and queues are the same. Only
//! what has threads there is simulated here.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::time::Duration;

use headstart_policy::readahead::Cached;
use headstart_types::{Block, Nanos};
use rustc_hash::FxBuildHasher;

use super::memory::Kernel;
use super::places::Places;
use super::program::{Action, Pages, Program, Step};
use super::storage::{Storage, Waiter};
use crate::conductor::{Conductor, LOOK_EVERY_MS};
use crate::disk::{Done, Why};
use crate::head_start::HeadStart;
use crate::list::PAGE_BYTES;
use crate::pieces::{Piece, Placed};
use crate::queue::{depth, Work};
use crate::report::Report;
use crate::trace::{By, Seen};
use crate::waiting::Waiting;

/// The state of a busy reader.
enum Busy {
    /// Until then, it opens a file and asks where the file lies, or how much of it is cached.
    Opening(Nanos, Work),
    /// Waits for requests.
    Reading(Reading),
}

/// A read by a reader.
struct Reading {
    begun: Nanos,
    needed: Vec<Block>,
    holes: u64,
    metadata: bool,
    requests: usize,
}

/// The prefetching side.
pub(super) struct Prefetcher {
    pub conductor: Conductor<Waiting>,
    /// By hinted file: the file of the recording; by file of the recording: its device and inode.
    pub recorded: Vec<u32>,
    pub identity: Vec<(u64, u64)>,
    /// By disk and reader.
    readers: Vec<Vec<Option<Busy>>>,
    /// The processor time that opening a file takes, of a processor that all readers share; and when that is free.
    open: Nanos,
    free_at: Nanos,
    /// The command's references since the trace was last read, and when it will be read next.
    seen: Vec<Seen>,
    looks_at: Option<Nanos>,
    /// Something was heard: the loop must run at once.
    woken: bool,
}

impl Prefetcher {
    pub fn new(
        conductor: Conductor<Waiting>,
        recorded: Vec<u32>,
        identity: Vec<(u64, u64)>,
        arms: &[bool],
        open: Nanos,
    ) -> Self {
        let readers = arms.iter().map(|arm| (0..depth(*arm)).map(|_| None).collect()).collect();
        let (seen, free_at) = (Vec::new(), Nanos::ZERO);
        Self { conductor, recorded, identity, readers, open, free_at, seen, looks_at: None, woken: true }
    }

    fn hear(&mut self, now: Nanos, done: Done) {
        self.conductor.heard(now, done);
        self.woken = true;
    }

    /// The command has referenced `pages`.
    fn see(&mut self, now: Nanos, pages: &Pages, by: By) {
        let file = self.identity[pages.file as usize];
        self.seen.push(Seen { file, first: pages.first, last: pages.end() - 1, by });
        let soon = now + Nanos(LOOK_EVERY_MS as u64 * 1_000_000);
        self.looks_at = Some(self.looks_at.map_or(soon, |at| at.min(soon)));
    }

    /// One pass of the loop of `headstart run`.
    fn look(&mut self, now: Nanos) {
        if !std::mem::take(&mut self.woken) && self.looks_at.is_none_or(|at| at > now) {
            return;
        }
        self.looks_at = None;
        for seen in std::mem::take(&mut self.seen) {
            self.conductor.referenced(now, seen);
        }
        if self.conductor.stopped.is_none() {
            self.conductor.act(now);
        }
    }

    /// When the next reader has opened its file, or the trace is read.
    fn next_event(&self) -> Option<Nanos> {
        let until = |busy: &Option<Busy>| match busy {
            Some(Busy::Opening(until, _)) => Some(*until),
            _ => None,
        };
        self.readers.iter().flatten().filter_map(until).chain(self.looks_at).min()
    }

    /// Idle readers take work, and those that have opened a file go on. Returns whether any did.
    fn take(&mut self, now: Nanos, storage: &mut Storage<'_>, places: &Places) -> bool {
        let mut did = false;
        for disk in 0..self.readers.len() {
            while !self.conductor.queues.stopped {
                let Some(free) = self.readers[disk].iter().position(Option::is_none) else { break };
                let Some(work) = self.conductor.queues.queues[disk].choose() else { break };
                let is_metadata = matches!(work, Work::Read(_, true));
                if !is_metadata {
                    self.free_at = self.free_at.max(now) + self.open;
                }
                let until = if is_metadata { now } else { self.free_at };
                self.readers[disk][free] = Some(Busy::Opening(until, work));
                did = true;
            }
            for reader in 0..self.readers[disk].len() {
                let slot = &mut self.readers[disk][reader];
                if !matches!(slot, Some(Busy::Opening(until, _)) if *until <= now) {
                    continue;
                }
                did = true;
                match slot.take() {
                    Some(Busy::Opening(_, Work::Place(file, blocks))) => self.place(now, disk, file, &blocks, places),
                    Some(Busy::Opening(_, Work::Read(piece, metadata))) => {
                        self.read(now, (disk, reader), &piece, metadata, storage);
                    }
                    _ => {}
                }
            }
        }
        did
    }

    fn place(&mut self, now: Nanos, disk: usize, file: u32, blocks: &[(Block, u64)], places: &Places) {
        let recorded = self.recorded[file as usize];
        let (mut stored, mut holes) = (Vec::new(), Vec::new());
        if places.changed[recorded as usize] {
            self.conductor.queues.queues[disk].place(stored);
            return self.hear(now, Done::Unneeded(blocks.iter().map(|(block, _)| *block).collect(), Why::Stale));
        }
        for (block, page) in blocks {
            match places.page(recorded, *page) {
                Some(address) => stored.push(Placed { block: *block, file, page: *page, address }),
                None => holes.push(*block),
            }
        }
        self.conductor.queues.queues[disk].place(stored);
        if !holes.is_empty() {
            self.hear(now, Done::Unneeded(holes, Why::Hole));
        }
    }

    /// Reads like a thread of `headstart run`: leaves out what is cached or on its way at both ends.
    fn read(
        &mut self,
        now: Nanos,
        (disk, reader): (usize, usize),
        piece: &Piece,
        metadata: bool,
        storage: &mut Storage<'_>,
    ) {
        let file = self.recorded[piece.pages[0].file as usize];
        let (cached, needed): (Vec<&Placed>, Vec<&Placed>) =
            piece.pages.iter().partition(|placed| storage.cache.state(file, placed.page).is_some());
        if !cached.is_empty() {
            self.hear(now, Done::Unneeded(cached.iter().map(|placed| placed.block).collect(), Why::Cached));
        }
        let (Some(first), Some(last)) = (needed.first(), needed.last()) else {
            self.conductor.queues.queues[disk].read(metadata);
            return;
        };
        let pages = Pages { file, first: first.page, count: (last.page - first.page + 1) as u32 };
        let absent = (pages.first..pages.end()).filter(|page| storage.cache.state(file, *page).is_none()).count();
        storage.fetch(now, &pages);
        let requests = storage.wait(Waiter::Reader(disk, reader), &[pages]);
        let holes = absent.saturating_sub(needed.len()) as u64;
        let needed = needed.iter().map(|placed| placed.block).collect();
        self.readers[disk][reader] = Some(Busy::Reading(Reading { begun: now, needed, holes, metadata, requests }));
    }

    /// A request of a reader has ended.
    fn ended(&mut self, now: Nanos, (disk, reader): (usize, usize)) {
        let slot = &mut self.readers[disk][reader];
        let Some(Busy::Reading(reading)) = slot else { return };
        reading.requests -= 1;
        if reading.requests > 0 {
            return;
        }
        let Reading { begun, holes, metadata, .. } = *reading;
        let needed = std::mem::take(&mut reading.needed);
        *slot = None;
        self.conductor.queues.queues[disk].read(metadata);
        self.hear(now, Done::Read(needed, Duration::from_nanos((now - begun).0), holes));
    }
}

/// A thread's progress.
#[derive(Debug, Clone, Copy, Default)]
struct Progress {
    /// Steps that have ended.
    done: u32,
    /// Steps of other threads that must end before the next one.
    unmet: usize,
    /// Requests that the current step waits for.
    requests: usize,
}

/// The result of a run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ran {
    pub elapsed: Nanos,
    pub requests: u64,
    pub read_bytes: u64,
}

/// The end of a step that has not ended.
const NEVER: Nanos = Nanos(u64::MAX);

/// By file and page: when it was first requested, and when it was there.
pub(super) type Times = HashMap<(u32, u64), (Nanos, Nanos), FxBuildHasher>;

/// A running command.
pub(super) struct Host<'a> {
    pub program: &'a Program,
    pub places: &'a Places,
    pub storage: Storage<'a>,
    /// By disk.
    pub kernels: Vec<Kernel>,
    pub prefetcher: Option<Prefetcher>,
    /// What to read before the command is started.
    pub head_start: Option<HeadStart>,
    pub times: Times,
}

impl Host<'_> {
    /// Runs the command to its end, and fills in the prefetch statistics of `report`.
    pub fn run(&mut self, report: Option<&mut Report>) -> Ran {
        let steps_first = |steps: &Vec<Step>| Progress { unmet: steps[0].after.len(), ..Progress::default() };
        let mut progress: Vec<_> = self.program.threads.iter().map(steps_first).collect();
        let mut ready: BinaryHeap<Reverse<(Nanos, u32)>> = BinaryHeap::new();
        let mut left = self.program.threads.len();
        let mut now = Nanos::ZERO;
        let mut is_started = self.head_start.is_none();
        if is_started {
            self.start(now, &mut ready);
        }
        while left > 0 {
            let mut woken: Vec<u32> = Vec::new();
            let prefetcher = &mut self.prefetcher;
            self.storage.advance(now, &mut |waiter| match (waiter, prefetcher.as_mut()) {
                (Waiter::Thread(thread), _) => woken.push(thread),
                (Waiter::Reader(disk, reader), Some(prefetcher)) => prefetcher.ended(now, (disk, reader)),
                (Waiter::Reader(..), None) => {}
            });
            for thread in woken {
                progress[thread as usize].requests -= 1;
                if progress[thread as usize].requests == 0 {
                    left -= self.end_step(now, thread, &mut progress, &mut ready);
                }
            }
            while let Some(Reverse((_, thread))) = ready.peek().filter(|next| next.0 .0 <= now).copied() {
                ready.pop();
                let requests = self.step(now, thread, progress[thread as usize].done);
                progress[thread as usize].requests = requests;
                if requests == 0 {
                    left -= self.end_step(now, thread, &mut progress, &mut ready);
                }
            }
            if let Some(prefetcher) = &mut self.prefetcher {
                loop {
                    prefetcher.look(now);
                    if !prefetcher.take(now, &mut self.storage, self.places) {
                        break;
                    }
                }
            }
            let prefetches_at = self.prefetcher.as_ref().and_then(Prefetcher::next_event);
            if !is_started && (self.is_over(now) || self.storage.next_event().or(prefetches_at).is_none()) {
                is_started = true;
                self.start(now, &mut ready);
            }
            let next = [ready.peek().map(|next| next.0 .0), self.storage.next_event(), prefetches_at];
            if left > 0 {
                now = next.into_iter().flatten().min().expect("a thread waits for something").max(now);
            }
        }
        let elapsed = now + self.program.tail;
        if let (Some(prefetcher), Some(report)) = (&mut self.prefetcher, report) {
            prefetcher.looks_at = Some(now);
            prefetcher.look(now);
            prefetcher.conductor.fill(report);
        }
        Ran { elapsed, requests: self.storage.requests, read_bytes: self.storage.pages * PAGE_BYTES }
    }

    /// Starts the command: each of its threads prepares its first step.
    fn start(&self, now: Nanos, ready: &mut BinaryHeap<Reverse<(Nanos, u32)>>) {
        for (at, steps) in (0u32..).zip(&self.program.threads) {
            if steps[0].after.is_empty() {
                ready.push(Reverse((now + steps[0].think, at)));
            }
        }
    }

    /// Whether the head start is over.
    fn is_over(&self, now: Nanos) -> bool {
        let settled = self.prefetcher.as_ref().map(|prefetcher| prefetcher.conductor.settled()).unwrap_or_default();
        self.head_start.is_none_or(|head_start| head_start.is_over(now, settled))
    }

    /// Starts a step. Returns how many requests it waits for.
    fn step(&mut self, now: Nanos, thread: u32, step: u32) -> usize {
        let program = self.program;
        let action = &program.threads[thread as usize][step as usize].action;
        self.note(now, action, false);
        let (needed, fetched) = match action {
            Action::Read(pages) => (
                vec![*pages],
                self.kernels[self.places.disk_of[pages.file as usize]].read(thread, pages, &self.storage.cache),
            ),
            Action::Fault(pages) => {
                self.see(now, pages, By::Use);
                (vec![*pages], self.fault(thread, *pages))
            }
            Action::Map(pages) => {
                self.see(now, pages, By::Use);
                let is_cached = |page| self.storage.cache.is_resident(pages.file, page);
                let kernel = &mut self.kernels[self.places.disk_of[pages.file as usize]];
                if (pages.first..pages.end()).any(is_cached) {
                    kernel.mapped(thread, pages.file, pages.count);
                    return 0;
                }
                // If none is there, one of them was touched.
                let touched = Pages { count: 1, ..*pages };
                (vec![touched], self.fault(thread, touched))
            }
            Action::Metadata(pages, waits) => {
                for pages in pages {
                    let is_absent = |page: &u64| self.storage.cache.state(pages.file, *page).is_none();
                    let absent: Vec<u64> = (pages.first..pages.end()).filter(is_absent).collect();
                    for page in absent {
                        self.see(now, &Pages { file: pages.file, first: page, count: 1 }, By::Metadata);
                    }
                }
                (if *waits { pages.clone() } else { Vec::new() }, pages.clone())
            }
        };
        let is_absent = |pages: &Pages, page| self.storage.cache.state(pages.file, page).is_none();
        let coming = fetched.iter().find(|pages| (pages.first..pages.end()).any(|page| is_absent(pages, page)));
        if let (Action::Read(_), Some(pages)) = (action, coming.copied()) {
            self.see(now, &pages, By::Coming);
        }
        fetched.iter().for_each(|pages| self.storage.fetch(now, pages));
        self.storage.wait(Waiter::Thread(thread), &needed)
    }

    /// Notes the start or end of a step of the plain command.
    fn note(&mut self, now: Nanos, action: &Action, has_ended: bool) {
        if self.prefetcher.is_some() {
            return;
        }
        let pages = match action {
            Action::Read(pages) | Action::Fault(pages) | Action::Map(pages) => std::slice::from_ref(pages),
            Action::Metadata(pages, _) => pages,
        };
        for page in pages.iter().flat_map(|pages| (pages.first..pages.end()).map(|page| (pages.file, page))) {
            // The first time counts for a page that comes again.
            let times = self.times.entry(page).or_insert((now, NEVER));
            if has_ended && times.1 == NEVER {
                times.1 = now;
            }
        }
    }

    fn see(&mut self, now: Nanos, pages: &Pages, by: By) {
        if let Some(prefetcher) = &mut self.prefetcher {
            prefetcher.see(now, pages, by);
        }
    }

    fn fault(&mut self, thread: u32, pages: Pages) -> Vec<Pages> {
        let kernel = &mut self.kernels[self.places.disk_of[pages.file as usize]];
        let text = self.places.text(pages.file, pages.first);
        kernel.fault(thread, (pages.file, pages.first), text, &self.storage.cache)
    }

    /// Ends a step. Returns 1 if it was the thread's last.
    fn end_step(
        &mut self,
        now: Nanos,
        thread: u32,
        progress: &mut [Progress],
        ready: &mut BinaryHeap<Reverse<(Nanos, u32)>>,
    ) -> usize {
        let program = self.program;
        let step = progress[thread as usize].done;
        self.note(now, &program.threads[thread as usize][step as usize].action, true);
        // A read becomes visible when it has its pages.
        if let Action::Read(pages) = &program.threads[thread as usize][step as usize].action {
            self.see(now, pages, By::Use);
        }
        progress[thread as usize].done += 1;
        for (of, waits) in program.dependents.get(&(thread, step)).into_iter().flatten() {
            let other = &mut progress[*of as usize];
            if other.done == *waits && other.unmet > 0 {
                other.unmet -= 1;
                if other.unmet == 0 {
                    ready.push(Reverse((now + program.threads[*of as usize][*waits as usize].think, *of)));
                }
            }
        }
        let Some(next) = program.threads[thread as usize].get(step as usize + 1) else { return 1 };
        let is_over = |(of, step): &&(u32, u32)| progress[*of as usize].done > *step;
        let unmet = next.after.len() - next.after.iter().filter(is_over).count();
        progress[thread as usize].unmet = unmet;
        if unmet == 0 {
            ready.push(Reverse((now + next.think, thread)));
        }
        0
    }
}
