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
//!   whatever the length of the list and the place where it turns wrong.
//! - If hints are of another command, a hinted reference far from the command's position in them is wrong, too: the two
//!   commands load common modules in different orders, and what the other one loaded next this one does not.
//! - A page that the command itself reads while it waits to be prefetched is right: prefetches pass through the list in
//!   the disk's order, which costs the first references some time and saves more.
//! - The fewer the reads, the smaller they are cut, so that a read of the command waits for little.
//! - References to cached metadata are not visible, but those that the command has to read itself are. A command that
//!   goes elsewhere is noticed when it reads the first directory or inode there, before it opens a file.
//!
//! Bytes are limited by frames, which follow from disk time (`account.rs`). A server gives `frames_min + growth * used`
//! instead (`follow.rs`).

use super::queue::HALVINGS_MAX;

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

    /// How often the limit of reads in flight is halved; [`HALVINGS_MAX`]: no reads.
    #[must_use]
    pub fn halvings(self) -> u32 {
        self.halvings
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::depth;

    fn under_way(pace: Pace) -> usize {
        let halvings = pace.halvings();
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
                let reads = under_way(pace);
                pace.wrong();
                reads
            })
            .collect();
        assert_eq!(delays, [8, 0, 0, 0, 0, 0]);
        let again: Vec<usize> = (0..5)
            .map(|_| {
                pace.right();
                under_way(pace)
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
                under_way(pace)
            });
            reads.skip(20).max()
        };
        assert_eq!([2, 3, 4, 5, 9].map(most), [1, 2, 4, 8, 8].map(Some));
    }
}
