//! How much is read at a time for hints: as a sender's window in TCP, grown by what proves right and cut by what proves wrong.
//!
//! A read that is under way delays a read of the command by its own time, on a disk with an arm by some 6 ms. That is all that
//! wrong hints cost, as the command waits for nothing else of ours. So the reads under way are what has to be limited:
//!
//! - After a reference of the command that no hint names, which is *wrong*, nothing is begun; each one that hints name is *right* and
//!   allows one read, then twice as many, up to the disk's depth `d`. Thus hints are followed where four references or more are right for
//!   each that is wrong. On a disk with an arm they begin to gain near there: a read in the order of places takes some 4.5 ms of the
//!   7.5 ms of one in the command's own, so that one in vain undoes the gain of one and a half.
//! - What is under way when hints turn wrong delays the command's reads from then on by at most `d` reads, 8 with an arm, whatever the
//!   length of the list and the place where it turns wrong. Where none at all has come for a while one read is begun again: a command
//!   that computes is not delayed.
//! - A read of the command is seen when it has its pages, and behind a sweep of the arm it may wait for as long as the scheduler lets it.
//!   Pages that come into the page cache are seen before: those of a file that no hint names stop everything for [`SUSPICION`], until
//!   it is known whether they are read or written.
//! - A reference that hints of another command name far from where the command is in them is wrong, too: the two have modules in common
//!   that they load in different orders, and what the other loaded next this one does not.
//! - A page that the command reads itself while it waits to be prefetched is right: prefetches are on their way through the list in the
//!   disk's order, which costs the first references some time and saves more.
//! - Of hints of another command the reads are no more than the frames have earned (`machine.rs`), one for each [`FRAMES_PER_READ`]: little
//!   is known at first.
//! - Reads are cut as much smaller as there are fewer, so that a read of the command waits for little.
//! - References to cached metadata are not seen, but those that the command has to read itself are. A command that goes elsewhere
//!   is noticed when it reads the first directory or inode there, before it has opened a file.
//!
//! The bytes are limited by frames, which follow from the disk's time (`risk.rs`, `ledger.rs`). A server gives `frames_min + growth * used`
//! in place of that (`follow.rs`).

use std::collections::HashSet;

use headstart_types::Nanos;
use rustc_hash::FxBuildHasher;

use super::queue::HALVINGS_MAX;

/// So long nothing is begun when pages come of a file that no hint names: an arm serves a read of the command and the few that are under
/// way in less.
pub const SUSPICION: Nanos = Nanos(50_000_000);
/// Files that are suspected before one has proved to be read, and for each one that has.
const SUSPECTED_MIN: u64 = 4;
const SUSPECTED_PER_FOUNDED: u64 = 2;
/// Files that are remembered.
const SUSPECTED_MAX: usize = 1 << 16;

/// Frames that earn a read, of eight.
const FRAMES_PER_READ: u32 = 256;
const READS: u32 = 8;

/// By what the command has referenced lately.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    halvings: u32,
}

impl Pace {
    /// One read in eight: nothing is known.
    pub const SLOWEST: Self = Self { halvings: HALVINGS_MAX - 1 };
    /// All of them.
    pub const FULL: Self = Self { halvings: 0 };

    /// Hints name what the command has referenced.
    pub fn right(&mut self) {
        self.halvings = self.halvings.saturating_sub(1);
    }

    /// No hint does.
    pub fn wrong(&mut self) {
        self.halvings = HALVINGS_MAX;
    }

    /// The command has gone nowhere else for a while.
    pub fn rested(&mut self) {
        self.halvings = self.halvings.min(Self::SLOWEST.halvings);
    }

    /// How often the reads under way are halved when there are so many frames; [`HALVINGS_MAX`]: there are none.
    #[must_use]
    pub fn halvings(self, frames: u32) -> u32 {
        let is_earned = |halvings: &u32| frames >= (READS * FRAMES_PER_READ) >> halvings;
        self.halvings.max((0..Self::SLOWEST.halvings).find(is_earned).unwrap_or(Self::SLOWEST.halvings))
    }
}

/// Files that no hint names, of which pages have come: read by the command, which is then known when it has them, or written.
#[derive(Debug, Default)]
pub struct Suspicions {
    open: HashSet<(u64, u64), FxBuildHasher>,
    all: u64,
    founded: u64,
}

impl Suspicions {
    /// Pages of `file` have come. Whether it is to be taken for read: once, and not where files proved to be written before.
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
