//! The prefetching side: the code of `headstart run` decides (machine, conductor and queues); what has threads there,
//! the readers, is simulated here.

use std::collections::BTreeMap;
use std::time::Duration;

use headstart_policy::readahead::Run;
use headstart_types::{Block, Nanos};

use super::memory::Memory;
use super::places::Places;
use crate::conductor::{Conductor, LOOK_EVERY_MS};
use crate::disk::{Done, Why};
use crate::pieces::{Piece, Placed};
use crate::queue::Work;
use crate::report::Report;
use crate::trace::{By, Seen};
use crate::waiting::Waiting;

/// A read under way.
struct Reading {
    disk: usize,
    begun: Nanos,
    needed: Vec<Block>,
    holes: u64,
    metadata: bool,
}

pub(super) struct Prefetcher {
    pub conductor: Conductor<Waiting>,
    /// By hinted file: the file of the recording; by file of the recording: its device and inode.
    recorded: Vec<u32>,
    identity: Vec<(u64, u64)>,
    /// By the time at which a file is open and it is known where it lies or how much of it is cached, and by number:
    /// the disk, and the work that then begins.
    opening: BTreeMap<(Nanos, u64), (usize, Work)>,
    reading: BTreeMap<u64, Reading>,
    /// The number of the next work. Threads have lower numbers.
    next: u64,
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
    /// `threads`: the number of the command's threads.
    pub fn new(
        conductor: Conductor<Waiting>,
        recorded: Vec<u32>,
        identity: Vec<(u64, u64)>,
        threads: usize,
        open: Nanos,
    ) -> Self {
        Self {
            conductor,
            recorded,
            identity,
            opening: BTreeMap::new(),
            reading: BTreeMap::new(),
            next: threads as u64,
            open,
            free_at: Nanos::ZERO,
            seen: Vec::new(),
            looks_at: None,
            woken: true,
        }
    }

    fn hear(&mut self, now: Nanos, done: Done) {
        self.conductor.heard(now, done);
        self.woken = true;
    }

    /// The command has referenced `run`.
    pub fn see(&mut self, now: Nanos, run: Run, by: By) {
        let file = self.identity[run.file as usize];
        self.seen.push(Seen { file, first: run.first, last: run.end() - 1, by });
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

    /// The command has ended.
    pub fn finish(&mut self, now: Nanos, report: &mut Report) {
        self.looks_at = Some(now);
        self.look(now);
        self.conductor.fill(report);
    }

    /// When the next file is open, or the trace is read.
    pub fn next_event(&self) -> Option<Nanos> {
        self.opening.keys().map(|(until, _)| *until).next().into_iter().chain(self.looks_at).min()
    }

    /// The conductor acts, and the readers carry out its orders, until there is nothing left to do at this instant.
    pub fn turn(&mut self, now: Nanos, memory: &mut Memory<'_>) {
        loop {
            self.look(now);
            if !self.take(now, memory) {
                return;
            }
        }
    }

    /// Readers take work, and those that have opened a file go on. Returns whether any did.
    fn take(&mut self, now: Nanos, memory: &mut Memory<'_>) -> bool {
        let before = self.next;
        for disk in 0..self.conductor.queues.queues.len() {
            while let Some(work) = self.conductor.queues.choose(disk) {
                let is_metadata = matches!(work, Work::Read(_, true));
                if !is_metadata {
                    self.free_at = self.free_at.max(now) + self.open;
                }
                self.opening.insert((if is_metadata { now } else { self.free_at }, self.next), (disk, work));
                self.next += 1;
            }
        }
        let mut did = self.next > before;
        while let Some(first) = self.opening.first_entry().filter(|first| first.key().0 <= now) {
            let ((_, number), (disk, work)) = first.remove_entry();
            match work {
                Work::Place(file, blocks) => self.place(now, disk, file, blocks, memory.places()),
                Work::Read(piece, metadata) => self.read(now, (disk, number), &piece, metadata, memory),
            }
            did = true;
        }
        did
    }

    fn place(&mut self, now: Nanos, disk: usize, file: u32, blocks: Vec<(Block, u64)>, places: &Places) {
        let recorded = self.recorded[file as usize];
        let is_changed = places.changed[recorded as usize];
        let place = |page| if is_changed { None } else { places.page(recorded, page) };
        let others = self.conductor.queues.queues[disk].place(file, blocks, place);
        if !others.is_empty() {
            self.hear(now, Done::Unneeded(others, if is_changed { Why::Stale } else { Why::Hole }));
        }
    }

    /// Reads like a thread of `headstart run`: leaves out what is cached or on its way at both ends.
    fn read(
        &mut self,
        now: Nanos,
        (disk, number): (usize, u64),
        piece: &Piece,
        metadata: bool,
        memory: &mut Memory<'_>,
    ) {
        let file = self.recorded[piece.pages[0].file as usize];
        let (cached, needed): (Vec<&Placed>, Vec<&Placed>) =
            piece.pages.iter().partition(|placed| memory.is_cached(file, placed.page));
        if !cached.is_empty() {
            self.hear(now, Done::Unneeded(cached.iter().map(|placed| placed.block).collect(), Why::Cached));
        }
        let (Some(first), Some(last)) = (needed.first(), needed.last()) else {
            self.conductor.queues.queues[disk].read(metadata);
            return;
        };
        let run = Run::between(file, first.page, last.page + 1);
        let holes = (memory.absent(&run).count() - needed.len()) as u64;
        memory.request(now, number, &[run], 0);
        let needed = needed.iter().map(|placed| placed.block).collect();
        self.reading.insert(number, Reading { disk, begun: now, needed, holes, metadata });
    }

    /// The pages that `reader` waited for are there. Returns false if there is no such reader.
    pub fn ended(&mut self, now: Nanos, reader: u64) -> bool {
        let Some(Reading { disk, begun, needed, holes, metadata }) = self.reading.remove(&reader) else { return false };
        self.conductor.queues.queues[disk].read(metadata);
        self.hear(now, Done::Read(needed, Duration::from_nanos((now - begun).0), holes));
        true
    }
}
