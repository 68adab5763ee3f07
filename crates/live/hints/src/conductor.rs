//! The host side of a hinted command, between the command's references and the disks: lets the machine act when the
//! hints are confirmed, orders what the policy wants from the disks, and stops the machine when prefetching does not
//! help. It has no threads and no clock: `run.rs` hosts it with real ones, a forecast (`crate::forecast`) with
//! simulated ones.

use std::collections::HashSet;
use std::ops::RangeInclusive;

use headstart_types::{Block, Bytes, Nanos};
use rustc_hash::FxBuildHasher;

use super::account::Account;
use super::disk::{Done, Why};
use super::guard::{why_stop, Seen as LookupCounts, ALL_CACHED};
use super::head_start::Settled;
use super::list::PAGE_BYTES;
use super::machine::Machine;
use super::pace::Pace;
pub use super::plan::{Plan, Trust};
use super::queue::HALVINGS_MAX;
use super::report::Report;
use super::trace::{By, Seen};
use super::universe::{HintedSpace, Universe};

/// How often the trace is read.
pub const LOOK_EVERY_MS: i32 = 2;
/// Pages that the kernel reads ahead for a command are mostly either referenced within this time or seen not to be.
const CACHED_JUDGED_AFTER: Nanos = Nanos(50_000_000);
/// Pages of holes that may be read for each frame, and the maximum share of the budget that holes may take in all.
const HOLES_PER_FRAME: u64 = 8;
const HOLES_SHARE: u64 = 4;

/// Share of hinted pages in changed files above which hints no longer fit.
const STALE_MAX: f64 = 0.1;

/// References to unhinted pages, per hinted one, above which hints no longer fit.
const FOREIGN_PER_HINTED: u64 = 2;
/// ext4's default of `inode_readahead_blks`.
const INODE_READAHEAD_BLOCKS: u64 = 32;
/// Maximum number of unhinted references that are remembered, to recognize repeated ones.
const ELSEWHERE_MAX: usize = 1 << 16;

/// Where orders go: one queue per disk.
pub trait Queues {
    fn disks(&self) -> usize;

    /// Orders reads: blocks, their files and pages.
    fn order(&mut self, disk: usize, blocks: &mut dyn Iterator<Item = (Block, u32, u64)>);

    /// Withdraws `block`; false if its read has begun.
    fn cancel(&mut self, disk: usize, block: Block) -> bool;

    /// Allows `pages` more pages of holes on each disk.
    fn allow_holes(&mut self, pages: u64);

    /// Sets how often the limit of reads in flight on each disk is halved (`pace.rs`).
    fn slow(&mut self, halvings: u32);

    /// Limits the reads in flight on each disk, and the pages of each.
    fn limit(&mut self, reads: usize, pages: u64);

    /// Starts no more reads.
    fn stop(&mut self);
}

/// The machine, and what has been observed of the command and the disks.
pub struct Conductor<Q, S = Universe> {
    pub machine: Machine<S>,
    pub queues: Q,
    /// Why prefetching has stopped, if it has.
    pub stopped: Option<&'static str>,
    looked: LookupCounts,
    /// Frames at the start.
    frames_min: u64,
    /// Pages of holes that have been read, that may be read now, and that may be read at most.
    holes: u64,
    holes_allowed: u64,
    holes_max: u64,
    orders: Vec<Block>,
    /// Unhinted references so far.
    elsewhere: HashSet<((u64, u64), u64), FxBuildHasher>,
    /// Metadata that has been read and does not count as used yet.
    metadata: Vec<Block>,
    /// Metadata that counts as used.
    metadata_used: u64,
    /// The last page of metadata that the command itself read, and its device.
    metadata_last: Option<((u64, u64), u64)>,
    /// Pages found in the page cache, of which it is not yet known whether the command has just read them: the earlier
    /// ones, which are judged next, and the later ones; and the time of the next judgement.
    cached: [Vec<Block>; 2],
    judged_next: Nanos,
    /// By block: it is in the page cache, though no disk has read it for the command.
    there: Vec<bool>,
    trust: Trust,
    pace: Pace,
    /// `None` where frames are earned otherwise (`follow.rs`), and of trusted hints.
    account: Option<Account>,
    /// The command follows the hints, or, if they were recorded from it, has not deviated yet. Until then nothing is
    /// prefetched.
    confirmed: bool,
}

impl<Q: Queues, S: HintedSpace> Conductor<Q, S> {
    /// The state before the command's first reference.
    #[must_use]
    pub fn new(machine: Machine<S>, queues: Q, budget_bytes: u64, trust: Trust) -> Self {
        Self {
            looked: LookupCounts { hinted: machine.universe().hinted() as u64, ..LookupCounts::default() },
            frames_min: u64::from(machine.frames()),
            there: vec![false; machine.universe().hinted()],
            machine,
            queues,
            stopped: None,
            holes: 0,
            holes_allowed: 0,
            holes_max: budget_bytes / PAGE_BYTES / HOLES_SHARE,
            orders: Vec::new(),
            elsewhere: HashSet::default(),
            metadata: Vec::new(),
            metadata_used: 0,
            metadata_last: None,
            cached: [Vec::new(), Vec::new()],
            judged_next: Nanos(0),
            trust,
            pace: Pace::SLOWEST,
            account: None,
            confirmed: trust == Trust::Whole,
        }
    }

    /// Limits the disk time at risk (`account.rs`). The recorded command took `recorded`, on disks with or without an
    /// `arm`, and `waited` so long for each page.
    #[must_use]
    pub fn at_risk(mut self, recorded: Nanos, arm: bool, waited: Option<Nanos>) -> Self {
        if self.trust != Trust::Whole {
            let same = self.trust == Trust::SameCommand;
            self.account = Some(Account::new(same.then_some(recorded), arm, waited));
            if same && !arm {
                // A short command ends before enough has been seen.
                self.pace = Pace::FULL;
                self.confirmed = true;
            }
        }
        self
    }

    /// Handles an event of a disk.
    pub fn heard(&mut self, now: Nanos, said: Done) {
        match said {
            Done::Read(blocks, took, holes) => {
                if let Some(account) = &mut self.account {
                    let (machine, universe) = (&self.machine, self.machine.universe());
                    let each = |block: &Block| (*block, universe.is_metadata(*block), machine.is_referenced(*block));
                    let disk = universe.disk(blocks[0]).index();
                    account.read(now, disk, Nanos(took.as_nanos() as u64), blocks.iter().map(each));
                }
                let share = Nanos(took.as_nanos() as u64 / blocks.len().max(1) as u64);
                self.looked.read += blocks.len() as u64;
                self.holes += holes;
                self.looked.metadata += self.keep_metadata(&blocks);
                blocks.into_iter().for_each(|block| self.machine.fetched(block, Some(share)));
            }
            Done::Unneeded(blocks, why) => {
                self.looked.unneeded(why, blocks.len() as u64);
                if why == Why::Cached {
                    self.cached[1].extend(&blocks);
                    blocks.iter().for_each(|block| self.there[block.index()] = true);
                }
                self.keep_metadata(&blocks);
                blocks.into_iter().for_each(|block| self.machine.fetched(block, None));
            }
        }
    }

    /// Returns how many of them are metadata.
    fn keep_metadata(&mut self, blocks: &[Block]) -> u64 {
        let (universe, before) = (self.machine.universe(), self.metadata.len());
        self.metadata.extend(blocks.iter().filter(|block| universe.is_metadata(**block)));
        (self.metadata.len() - before) as u64
    }

    /// The command has referenced these pages.
    pub fn referenced(&mut self, now: Nanos, Seen { file, first, last, by }: Seen) {
        let (identity, metadata) = (file, by == By::Metadata);
        if by == By::Coming {
            return self.comes(file, first..=last);
        }
        let Some(file) = self.machine.universe().file(file) else {
            // Nothing is known of a disk that hints do not name.
            if !metadata {
                self.foreign(identity, first);
            }
            return;
        };
        // Programs request data beyond the end of a file.
        let last = last.min(self.machine.universe().last_page(file));
        let beside = metadata && self.is_beside(identity, first);
        let blocks = || (first..=last).filter_map(|page| self.machine.universe().hinted_block(file, page));
        let is_there = |block: Block| self.there[block.index()] || self.machine.has_read(block);
        // If no page of a window is known to be there, all of them were there before the command.
        let only_there = by == By::Mapped && blocks().any(is_there);
        let is_left = || self.machine.universe().is_left_to_kernel(file, first);
        let known = first > last || blocks().next().is_some() || is_left();
        let is_new = |block: &Block| !self.machine.is_referenced(*block) && (!only_there || is_there(*block));
        let new: Vec<Block> = blocks().filter(is_new).collect();
        let fresh = new.len() as u64;
        let (mut late, mut near) = (self.cancel(now, &new), false);
        for block in new {
            let is_near = self.machine.is_near(block);
            near |= is_near;
            if let Some(account) = &mut self.account {
                let near = is_near || self.trust != Trust::Earned;
                account.referenced(block, near);
            }
            self.machine.observe(now, block);
            late += u64::from(metadata);
        }
        // Repeated references prove nothing, nor do pages that the file system read beside another one.
        if fresh > 0 && !beside {
            self.looked.referenced(true);
            if self.trust != Trust::Earned && self.account.is_none() {
                self.machine.earn(late);
                // A command that reads faster than the hints can be followed still proves them right.
                self.machine.add_frames(fresh);
            }
            if near || self.trust != Trust::Earned {
                self.pace.right();
            } else {
                // What another command did next, this one does not do.
                self.pace.wrong();
            }
        } else if !known && !beside {
            self.foreign(identity, first);
        }
    }

    /// The command reads these itself. Returns how many of them had no read in flight.
    fn cancel(&mut self, now: Nanos, blocks: &[Block]) -> u64 {
        let mut late = 0;
        loop {
            let before = late;
            for block in blocks {
                let disk = self.machine.universe().disk(*block);
                if self.queues.cancel(disk.index(), *block) {
                    late += 1;
                    self.machine.fetched(*block, None);
                }
            }
            if late == before {
                return late;
            }
            // They must not count as prefetched when observed. What is ordered in their place may include them.
            self.turn(now);
        }
    }

    /// Whether this page of metadata was read beside the last one: ext4 reads inode tables 32 blocks at a time.
    fn is_beside(&mut self, device: (u64, u64), page: u64) -> bool {
        let last = self.metadata_last.replace((device, page));
        last.is_some_and(|(of, other)| of == device && other.abs_diff(page) < INODE_READAHEAD_BLOCKS)
    }

    /// Pages of `file` enter the page cache for the command.
    fn comes(&mut self, file: (u64, u64), pages: RangeInclusive<u64>) {
        if let Some(file) = self.machine.universe().file(file) {
            for block in pages.filter_map(|page| self.machine.universe().hinted_block(file, page)) {
                self.there[block.index()] = true;
            }
        }
    }

    /// Counts an unhinted reference; a repeated one tells nothing.
    fn foreign(&mut self, file: (u64, u64), first: u64) {
        if self.elsewhere.len() == ELSEWHERE_MAX || self.elsewhere.insert((file, first)) {
            self.looked.referenced(false);
            self.pace.wrong();
        }
    }

    /// Lets the machine act, and orders what it wants from the disks.
    pub fn turn(&mut self, now: Nanos) {
        let is_unshaken = || self.trust == Trust::SameCommand && self.account.is_some() && self.looked.is_unshaken();
        let confirmed = self.trust == Trust::Whole || self.looked.confirmed() || is_unshaken();
        if confirmed != self.confirmed {
            self.confirmed = confirmed;
            self.pace = Pace::SLOWEST;
        }
        let halvings = match self.trust {
            Trust::Whole => 0,
            _ if !confirmed => HALVINGS_MAX,
            _ => self.pace.halvings(),
        };
        self.queues.slow(halvings);
        if !confirmed {
            return;
        }
        if let Some(account) = &self.account {
            let left = account.left(now);
            let pages = account.pages_in(left);
            self.queues.limit(account.reads_in(left), account.longest_in(left));
            self.machine.allow(pages);
        }
        let mut orders = std::mem::take(&mut self.orders);
        self.machine.turn(now, &mut orders);
        let holes = (u64::from(self.machine.frames()) * HOLES_PER_FRAME).min(self.holes_max);
        if holes > self.holes_allowed {
            self.queues.allow_holes(holes - self.holes_allowed);
            self.holes_allowed = holes;
        }
        if self.stopped.is_none() && !orders.is_empty() {
            let universe = self.machine.universe();
            for number in 0..self.queues.disks() {
                let of_disk = orders.iter().filter(|block| universe.disk(**block).index() == number);
                let mut placed = of_disk.map(|block| {
                    let (file, page) = universe.place(*block);
                    (*block, file, page)
                });
                self.queues.order(number, &mut placed);
            }
        }
        orders.clear();
        self.orders = orders;
    }

    /// Handles what was heard and referenced: the machine acts, and stops if there is a reason.
    pub fn act(&mut self, now: Nanos) {
        self.turn(now);
        self.use_metadata(now);
        self.judge_cached(now);
        let unused = (self.confirmed, self.machine.used(), self.machine.passed_unused(), self.machine.is_full());
        if let Some(why) = why_stop(&self.looked, unused, self.frames_min) {
            self.stopped = Some(why);
            self.queues.stop();
        }
    }

    /// Counts metadata that has come as used: the command follows the hints, and references to metadata are not
    /// visible. Counts no more than there are frames, unless those are all frames.
    fn use_metadata(&mut self, now: Nanos) {
        let allowed = if self.machine.is_whole() { u64::MAX } else { u64::from(self.machine.frames()) };
        let count =
            self.metadata.len().min(usize::try_from(allowed - self.metadata_used.min(allowed)).unwrap_or(usize::MAX));
        if count > 0 {
            self.metadata_used += count as u64;
            self.metadata.drain(..count).for_each(|block| self.machine.assume_used(now, block));
            self.turn(now);
        }
    }

    /// Counts the pages found in the page cache that the command has not read since: they were there before it.
    fn judge_cached(&mut self, now: Nanos) {
        if now < self.judged_next {
            return;
        }
        let earlier = self.cached[0].iter().filter(|block| !self.machine.is_referenced(**block));
        self.looked.cached_before += earlier.count() as u64;
        self.cached[0].clear();
        self.cached.swap(0, 1);
        self.judged_next = now + CACHED_JUDGED_AFTER;
    }

    /// Fills in `report`.
    pub fn fill(&self, report: &mut Report) {
        let looked = &self.looked;
        report.stopped = self.stopped.map(str::to_owned);
        report.used_bytes = self.machine.used() * PAGE_BYTES;
        report.late_bytes = self.machine.used_late() * PAGE_BYTES;
        report.prefetched_bytes = (looked.read + self.holes) * PAGE_BYTES;
        report.wasted_bytes = report.prefetched_bytes - report.used_bytes;
        report.cached_bytes = looked.cached * PAGE_BYTES;
        report.stale_bytes = looked.stale * PAGE_BYTES;
        if looked.denied > 0 {
            let size = Bytes(looked.denied * PAGE_BYTES).rounded();
            report.notes.push(format!("{size} of metadata are not prefetched: the device may not be read"));
        }
    }

    /// Whether everything that was read ahead has been used.
    #[must_use]
    pub fn has_used_all(&self) -> bool {
        self.looked.read <= self.machine.used()
    }

    /// Hinted pages that have been read or need not be read.
    pub fn settled(&self) -> Settled {
        self.looked.settled()
    }

    /// References to hinted pages.
    pub fn matched(&self) -> u64 {
        self.looked.matched
    }

    /// Why the hints do not fit the command, if they do not.
    pub fn unfit(&self) -> Option<&'static str> {
        let LookupCounts { hinted, stale, matched, foreign, .. } = self.looked;
        match self.stopped {
            Some(why) if why != ALL_CACHED => Some(why),
            _ if stale as f64 > hinted as f64 * STALE_MAX => Some("files have changed"),
            _ if foreign > FOREIGN_PER_HINTED * hinted.max(matched) => {
                Some("the command reads more than the hints say")
            }
            _ => None,
        }
    }
}

#[cfg(test)]
#[path = "conductor_tests.rs"]
mod tests;
