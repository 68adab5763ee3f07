//! Reverse aggressive's plan: a schedule for the reversed reference string, itself reversed.
//!
//! Source: kimbrel96, sections 2.5 and 2.7; Kimbrel and Karlin, FOCS 1996.
//!
//! ```text
//! run the reversed string, think time 1, fetch time F, from a cache of its first K distinct blocks:
//!     over the idle disks, up to a batch for each:
//!         m = the first missing block; v = the furthest resident block that is on one of them
//!         if v's next use is later than m's: fetch m in place of v; v's disk is busy for F
//! a fetch of m in place of v, reversed, is forward a fetch of v in place of m
//! ```
//!
//! The reversed run ends with the forward run's initial cache: the string is continued by the initial blocks that are
//! referenced at all, in order of their first forward reference, then by one dummy for each free frame (an initial
//! block that is never referenced counts as one). Fetching a dummy means, in forward direction, using a free frame.
//! Frames beyond the distinct blocks of the string stay free in both directions and are ignored.
//!
//! Ties: the lowest among idle disks; the lowest number among blocks of one disk that are never used again.
//!
//! Times are nanoseconds, so that F need not be a whole multiple of the think time.
//!
//! Cost: a few words per reference, and the number of disks per fetch. Memory: about 20 bytes per reference.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use headstart_types::{Block, Disk, IndexSet, Nanos, Position, NEVER};

use super::slots::Slots;

/// One fetch of the forward schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Operation {
    /// The block to fetch.
    pub block: Block,
    /// The reference for which it is fetched.
    pub position: Position,
    /// The block to evict; `None` takes a free frame.
    pub victim: Option<Block>,
    /// The cursor from which the victim may be evicted: one past its last use before the eviction.
    pub release: Position,
    /// Start of the fetch in the mirrored schedule.
    pub start: Nanos,
}

/// Input of the planner.
pub(super) struct Task<'a> {
    /// Disclosed references from the cursor on, in order: position and block.
    pub references: &'a [(Position, Block)],
    /// Resident blocks that are referenced (including those in flight). At most `frames`.
    pub initial: &'a [Block],
    /// K.
    pub frames: usize,
    /// The disk of each block.
    pub disk_of: &'a [Disk],
    /// d, the number of disks.
    pub disks: usize,
    /// Think time after each reference, at least 1 ns.
    pub compute: Nanos,
    /// F, as a time.
    pub fetch: Nanos,
    /// Maximum fetches that an idle disk takes at once, at least 1.
    pub batch_size: u32,
}

/// The forward schedule, in the order in which its fetches start.
pub(super) fn plan(task: &Task<'_>) -> Vec<Operation> {
    let mut run = ReversedRun::new(task);
    run.finish();
    run.mirrored()
}

/// An operation of the reversed run: its start, the position of the fetched block in the continued string, and the
/// position of the victim's last use.
struct Reversed {
    start: Nanos,
    fetched: usize,
    victim: usize,
}

/// The reversed run. Blocks are renumbered densely ("local" numbers): real ones first, then dummies.
struct ReversedRun<'a> {
    task: &'a Task<'a>,
    /// The continued reversed string, as local blocks.
    string: Vec<u32>,
    /// For each position in `string`: the next position of the same block.
    next: Vec<Position>,
    /// For each local block: its next use at or after the cursor.
    next_use: Vec<Position>,
    /// For each local block: its last use before the cursor.
    last_use: Vec<Position>,
    disk: Vec<u32>,
    /// For each local block except dummies: the block.
    real: Vec<Block>,
    resident: Vec<bool>,
    /// Next uses of missing blocks.
    missing: IndexSet,
    /// Slots of next uses of resident blocks.
    known: IndexSet,
    slots: Slots,
    /// For each disk: resident blocks that are never used again, lowest number first.
    dead: Vec<BinaryHeap<Reverse<u32>>>,
    busy_until: Vec<Nanos>,
    arrivals: BinaryHeap<Reverse<(Nanos, usize, u32)>>,
    operations: Vec<Reversed>,
    /// End of the think time after the last real reference.
    end: Nanos,
}

impl<'a> ReversedRun<'a> {
    fn new(task: &'a Task<'a>) -> Self {
        let Continued { string, disk, real, frames } = continued_string(task);
        let locals = disk.len();
        let mut next = vec![NEVER; string.len()];
        let mut next_use = vec![NEVER; locals];
        for at in (0..string.len()).rev() {
            next[at] = next_use[string[at] as usize];
            next_use[string[at] as usize] = at as Position;
        }
        let slots = Slots::new(string.iter().map(|block| disk[*block as usize] as usize), task.disks);
        let mut run = Self {
            task,
            next,
            last_use: vec![NEVER; locals],
            resident: vec![false; locals],
            missing: IndexSet::new(string.len()),
            known: IndexSet::new(string.len()),
            slots,
            dead: vec![BinaryHeap::new(); task.disks],
            busy_until: vec![Nanos::ZERO; task.disks],
            arrivals: BinaryHeap::new(),
            operations: Vec::new(),
            string,
            next_use,
            disk,
            real,
            end: Nanos::ZERO,
        };
        run.fill(frames);
        run
    }

    /// Makes the first K distinct blocks of the continued string resident and the others missing.
    fn fill(&mut self, frames: usize) {
        let mut held = 0;
        for at in 0..self.string.len() {
            let block = self.string[at];
            if self.next_use[block as usize] != at as Position {
                continue;
            }
            if held < frames {
                held += 1;
                self.arrive(block);
            } else {
                self.missing.insert(at as u32);
            }
        }
    }

    fn arrive(&mut self, block: u32) {
        self.resident[block as usize] = true;
        match self.next_use[block as usize] {
            // Only blocks that have had their last use lack a next use; an arriving block has one.
            NEVER => unreachable!("a fetched block has a next use"),
            at => self.known.insert(self.slots.slot(at)),
        };
    }

    fn finish(&mut self) {
        let references = self.task.references.len();
        let (mut now, mut cursor) = (Nanos::ZERO, 0);
        loop {
            self.arrive_until(now);
            self.decide(now);
            if cursor == references {
                self.end = now;
            }
            if cursor >= references && self.missing.is_empty() {
                return;
            }
            let block = self.string[cursor];
            let next = if self.resident[block as usize] {
                self.serve(cursor as Position, block);
                cursor += 1;
                now + self.task.compute
            } else {
                // It is in flight or waits for a busy disk; the next arrival may change that.
                self.next_arrival().expect("a missing block waits for some fetch")
            };
            // Arrivals free disks while the process thinks.
            while let Some(arrival) = self.next_arrival().filter(|arrival| *arrival < next) {
                self.arrive_until(arrival);
                self.decide(arrival);
            }
            now = next;
        }
    }

    fn next_arrival(&self) -> Option<Nanos> {
        self.arrivals.peek().map(|Reverse((at, _, _))| *at)
    }

    fn arrive_until(&mut self, now: Nanos) {
        while self.next_arrival().is_some_and(|at| at <= now) {
            if let Some(Reverse((_, _, block))) = self.arrivals.pop() {
                self.arrive(block);
            }
        }
    }

    fn serve(&mut self, at: Position, block: u32) {
        let local = block as usize;
        self.known.remove(self.slots.slot(at));
        self.last_use[local] = at;
        self.next_use[local] = self.next[at as usize];
        match self.next[at as usize] {
            // The continuation stands for the final cache: blocks used there stay.
            NEVER if at as usize >= self.task.references.len() => {}
            NEVER => self.dead[self.disk[local] as usize].push(Reverse(block)),
            next => {
                self.known.insert(self.slots.slot(next));
            }
        }
    }

    /// The block of `disk` whose next use is furthest, and that use.
    fn furthest(&self, disk: usize) -> Option<(Position, u32)> {
        if let Some(Reverse(block)) = self.dead[disk].peek() {
            return Some((NEVER, *block));
        }
        let own = self.slots.of_disk(disk);
        let slot = self.known.previous(own.end)?;
        (slot >= own.start).then(|| {
            let at = self.slots.position(slot);
            (at, self.string[at as usize])
        })
    }

    fn decide(&mut self, now: Nanos) {
        let mut room: Vec<(usize, u32)> = (0..self.task.disks)
            .filter(|disk| self.busy_until[*disk] <= now)
            .map(|disk| (disk, self.task.batch_size))
            .collect();
        while let Some(at) = self.missing.first() {
            // The furthest over the open disks; the lowest disk wins ties.
            let candidates = room.iter().enumerate().filter_map(|(index, (disk, _))| {
                self.furthest(*disk).map(|(next, block)| (next, Reverse(*disk), index, block))
            });
            let Some((next_use, Reverse(disk), index, victim)) = candidates.max() else { return };
            if next_use <= at {
                return;
            }
            self.missing.remove(at);
            self.evict(victim, next_use, disk);
            let fetched = self.string[at as usize];
            let start = self.busy_until[disk].max(now);
            self.busy_until[disk] = start + self.task.fetch;
            self.arrivals.push(Reverse((self.busy_until[disk], self.operations.len(), fetched)));
            let last_use = self.last_use[victim as usize];
            assert_ne!(last_use, NEVER, "a victim has been used");
            self.operations.push(Reversed { start, fetched: at as usize, victim: last_use as usize });
            room[index].1 -= 1;
            if room[index].1 == 0 {
                room.remove(index);
            }
        }
    }

    fn evict(&mut self, victim: u32, next_use: Position, disk: usize) {
        self.resident[victim as usize] = false;
        if next_use == NEVER {
            self.dead[disk].pop();
        } else {
            self.known.remove(self.slots.slot(next_use));
            self.missing.insert(next_use);
        }
    }

    /// The reversed operations: one that takes [s, s + F] starts at T - (s + F), where T is the end of the reversed
    /// run.
    fn mirrored(&self) -> Vec<Operation> {
        let references = self.task.references;
        let ends = self.operations.iter().map(|op| op.start + self.task.fetch);
        let end = ends.fold(self.end, Nanos::max);
        let forward = |at: usize| references[references.len() - 1 - at];
        let turned = self.operations.iter().rev().map(|op| {
            let (position, block) = forward(op.victim);
            let (victim, release) = if op.fetched < references.len() {
                let (last, victim) = forward(op.fetched);
                (Some(victim), last + 1)
            } else {
                // In the continuation: an initial block that is evicted before its first use, or a dummy.
                (self.real.get(self.string[op.fetched] as usize).copied(), 0)
            };
            Operation { block, position, victim, release, start: end - (op.start + self.task.fetch) }
        });
        let mut operations: Vec<Operation> = turned.collect();
        operations.sort_by_key(|op| op.start);
        operations
    }
}

/// A reversed string with its continuation.
struct Continued {
    /// As local blocks.
    string: Vec<u32>,
    /// For each local block.
    disk: Vec<u32>,
    /// For each local block except dummies; in order of block number, so that ties do not depend on the string.
    real: Vec<Block>,
    /// Frames that can be used: K, or one per real block if that is fewer.
    frames: usize,
}

fn continued_string(task: &Task<'_>) -> Continued {
    let mut real: Vec<Block> = task.references.iter().map(|(_, block)| *block).collect();
    real.sort_unstable();
    real.dedup();
    let local = |block: &Block| real.binary_search(block).ok().map(|local| local as u32);
    let mut string: Vec<u32> = task.references.iter().rev().filter_map(|(_, block)| local(block)).collect();
    let mut first_use = vec![NEVER; real.len()];
    for (at, block) in string.iter().enumerate() {
        first_use[*block as usize] = (task.references.len() - 1 - at) as Position;
    }
    let mut live: Vec<u32> = task.initial.iter().filter_map(local).collect();
    live.sort_unstable_by_key(|block| first_use[*block as usize]);
    let frames = task.frames.min(real.len());
    let dummies = real.len()..real.len() + frames - live.len();
    string.extend(live);
    string.extend(dummies.clone().map(|dummy| dummy as u32));
    // A dummy is never a victim, so its disk does not matter.
    let disk = real.iter().map(|block| task.disk_of[block.index()].0).chain(dummies.map(|_| 0)).collect();
    Continued { string, disk, real, frames }
}
