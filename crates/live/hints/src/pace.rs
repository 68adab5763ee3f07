//! How much is read at a time for hints: like a TCP sender's window, it grows with right hints and shrinks with wrong
//! ones.
//!
//! A read in flight delays a read of the command by its own duration, some 6 ms on a disk with an arm. That is all that
//! wrong hints cost, as the command waits for nothing else here. Therefore the reads in flight must be limited:
//!
//! - After an unhinted reference of the command, which is *wrong*, nothing is started. Each hinted one is *right* and
//!   allows one read, then twice as many, up to the disk's depth `d`. Thus hints are followed if four references or
//!   more are right for each wrong one. Near there they begin to gain on a disk with an arm: a read in address order
//!   takes some 4.5 ms of the 7.5 ms of one in the command's own order, so that a useless read undoes the gain of one
//!   and a half.
//! - The reads in flight when hints turn wrong delay the command's later reads by at most `d` reads, 8 with an arm,
//!   whatever the length of the list and the place where it turns wrong. If no reference has come for a while, one read
//!   is started again: a command that computes is not delayed.
//! - A read of the command becomes visible when it has its pages, and during a sweep of the arm it may wait for as long
//!   as the scheduler permits. Pages entering the page cache are visible earlier: those of a file that no hint names
//!   stop everything for [`SUSPICION`], until it is known whether they are read or written.
//! - If hints are of another command, a hinted reference far from the command's position in them is wrong, too: the two
//!   commands load common modules in different orders, and what the other one loaded next this one does not.
//! - A page that the command itself reads while it waits to be prefetched is right: prefetches pass through the list in
//!   the disk's order, which costs the first references some time and saves more.
//! - For hints of another command, there are no more reads than the frames have earned (`machine.rs`), one per
//!   [`FRAMES_PER_READ`]: little is known at first.
//! - The fewer the reads, the smaller they are cut, so that a read of the command waits for little.
//! - References to cached metadata are not visible, but those that the command has to read itself are. A command that
//!   goes elsewhere is noticed when it reads the first directory or inode there, before it opens a file.
//!
//! Bytes are limited by frames, which follow from disk time (`risk.rs`, `ledger.rs`). A server gives `frames_min +
//! growth * used` instead (`follow.rs`).

use std::collections::HashSet;

use headstart_types::Nanos;
use rustc_hash::FxBuildHasher;

use super::queue::HALVINGS_MAX;

/// How long nothing is started after pages of an unhinted file have come: an arm serves a read of the command and the
/// few in flight in less.
pub const SUSPICION: Nanos = Nanos(50_000_000);
/// Suspicions allowed before one has proved right, and per suspicion that has.
const SUSPECTED_MIN: u64 = 4;
const SUSPECTED_PER_FOUNDED: u64 = 2;
/// Maximum number of files remembered.
const SUSPECTED_MAX: usize = 1 << 16;

/// Frames that earn one of eight reads.
const FRAMES_PER_READ: u32 = 256;
const READS: u32 = 8;

/// The pace, from the command's recent references.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    halvings: u32,
}

impl Pace {
    /// One read in eight: nothing is known.
    pub const SLOWEST: Self = Self { halvings: HALVINGS_MAX - 1 };
    /// All reads.
    pub const FULL: Self = Self { halvings: 0 };

    /// A reference was hinted.
    pub fn right(&mut self) {
        self.halvings = self.halvings.saturating_sub(1);
    }

    /// A reference was not hinted.
    pub fn wrong(&mut self) {
        self.halvings = HALVINGS_MAX;
    }

    /// The command has gone nowhere else for a while.
    pub fn rested(&mut self) {
        self.halvings = self.halvings.min(Self::SLOWEST.halvings);
    }

    /// How often the limit of reads in flight is halved with `frames` frames; [`HALVINGS_MAX`]: no reads.
    #[must_use]
    pub fn halvings(self, frames: u32) -> u32 {
        let is_earned = |halvings: &u32| frames >= (READS * FRAMES_PER_READ) >> halvings;
        self.halvings.max((0..Self::SLOWEST.halvings).find(is_earned).unwrap_or(Self::SLOWEST.halvings))
    }
}

/// Unhinted files of which pages have come: either the command reads them, which is known once it has the pages, or
/// they are written.
#[derive(Debug, Default)]
pub struct Suspicions {
    open: HashSet<(u64, u64), FxBuildHasher>,
    all: u64,
    founded: u64,
}

impl Suspicions {
    /// Pages of `file` have come. Returns whether to assume that it is read: once per file, and not if too many such
    /// files proved to be written.
    pub fn open(&mut self, file: (u64, u64)) -> bool {
        let is_new = self.open.len() < SUSPECTED_MAX && self.open.insert(file);
        self.all += u64::from(is_new);
        is_new && self.all <= SUSPECTED_MIN + SUSPECTED_PER_FOUNDED * self.founded
    }

    /// `file` is read.
    pub fn confirm(&mut self, file: (u64, u64)) {
        self.founded += u64::from(self.open.remove(&file));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::depth;

    fn under_way(pace: Pace, frames: u32) -> usize {
        let halvings = pace.halvings(frames);
        if halvings < HALVINGS_MAX {
            depth(true) >> halvings
        } else {
            0
        }
    }

    #[test]
    fn a_wrong_reference_stops_it_and_right_ones_bring_it_back() {
        let mut pace = Pace::SLOWEST;
        (0..100).for_each(|_| pace.right());
        let delays: Vec<usize> = (0..6)
            .map(|_| {
                let reads = under_way(pace, u32::MAX);
                pace.wrong();
                reads
            })
            .collect();
        assert_eq!(delays, [8, 0, 0, 0, 0, 0]);
        let again: Vec<usize> = (0..5)
            .map(|_| {
                pace.right();
                under_way(pace, u32::MAX)
            })
            .collect();
        assert_eq!(again, [1, 2, 4, 8, 8]);
    }

    #[test]
    fn hints_that_are_half_wrong_are_not_followed() {
        let most = |wrong_of: usize| {
            let mut pace = Pace::SLOWEST;
            let reads = (1..200).map(|at| {
                if at % wrong_of == 0 {
                    pace.wrong();
                } else {
                    pace.right();
                }
                under_way(pace, u32::MAX)
            });
            reads.skip(20).max()
        };
        assert_eq!([2, 3, 4, 5, 9].map(most), [1, 2, 4, 8, 8].map(Some));
    }

    #[test]
    fn few_frames_and_a_rest_allow_one_read() {
        let mut pace = Pace::SLOWEST;
        (0..9).for_each(|_| pace.right());
        assert_eq!([0, 511, 512, 1024, 2047, 2048].map(|frames| under_way(pace, frames)), [1, 1, 2, 4, 4, 8]);
        pace.wrong();
        pace.rested();
        assert_eq!(under_way(pace, u32::MAX), 1);
    }

    #[test]
    fn files_that_are_written_are_not_suspected_for_long() {
        let mut suspicions = Suspicions::default();
        let read = (0..100).filter(|file| {
            let suspected = suspicions.open((1, *file));
            suspicions.confirm((1, *file));
            suspected
        });
        assert_eq!(read.count(), 100);
        let mut suspicions = Suspicions::default();
        let written = (0..100).filter(|file| suspicions.open((1, *file)) && !suspicions.open((1, *file)));
        assert_eq!(written.count(), 4);
    }
}
