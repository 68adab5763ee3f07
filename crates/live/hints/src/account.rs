//! The account of a command: how much disk time prefetching may spend on pages that are not yet seen to be used.
//!
//! A useless read delays the command by at most the time that the disk spends on it. Therefore this time must be
//! limited, not bytes: a page among thousands of adjacent ones takes a twentieth of a millisecond, a single one some 5
//! ms.
//!
//! - A read that ends puts the time that the disk spent on it *at risk*: since the disk's last prefetch ended, or since
//!   this one began. Reads of the command in between are included: prefetching delays them. Without an arm, it is at
//!   most the time of the read when it waits for no other one, from the waits of the recorded run: a read behind a long
//!   one of the command takes long without delaying anything.
//! - A page that the command references is proved right, and its share is no longer at risk but *proved*. References to
//!   cached metadata are not visible: metadata is proved when the command is seen beyond it in the hints.
//! - What is at risk, including reads in flight, stays below the allowance: a share of the command's time, [`ARM_SHARE`]
//!   or [`FLASH_SHARE`], and for hints of the same command as much as has been proved, up to [`PROVED_SHARE`] of its
//!   time. The time is the time so far, or the recorded time if that is longer. Useless reads stay at risk for ever.
//!
//! Thus hints that turn wrong, wherever and however often, take at most the allowance of the disk's time plus one read,
//! as each read is counted when it has ended. The command may lose more if prefetching disturbs it in other ways: a
//! drive's buffer serves sequential reads, and with prefetches between them each becomes a seek; and the kernel's
//! read-ahead would have brought pages beside the hinted ones, which are used later. It may also lose more if wrong
//! metadata stands between right hints.
//!
//! Frames are limited by it, too: orders are read in address order, near and far ones alike, and are proved late if
//! more is ordered than can be paid for.

use std::collections::BTreeSet;

use hashbrown::HashMap;
use headstart_types::{Block, Nanos};
use rustc_hash::FxBuildHasher;

use super::list::REQUEST_PAGES;
use super::queue::PIECE_PAGES;

/// Shares of the command's time with an arm and without one. Scanned in forecasts of ten commands and some 1,400 wrong
/// lists: with an arm, 0.12 costs right hints 2 points more, and 0.2 costs more wrong lists a fifth of the plain time.
const ARM_SHARE: f64 = 0.16;
const FLASH_SHARE: f64 = 0.03;
/// What proved time pays for at most, scanned likewise: without it right hints gain 6 points less, with 0.2 the worst of
/// the wrong lists take 1.7 of the plain time in place of 1.45.
const PROVED_SHARE: f64 = 0.1;
/// Assumed time of a read in address order (`pace.rs`) and its pages, and the number of such reads assumed before any
/// was measured.
const ARM_READ: Nanos = Nanos(4_500_000);
const ARM_PAGES: u64 = 2;
/// Pages of a read without an arm.
const FLASH_PAGES: u64 = 4;
const TYPICALS: u64 = 2;
/// Without an arm: minimum time per page of a read, 1 GB/s, and the time assumed if the recording does not tell.
const PAGE_MIN: Nanos = Nanos(4_000);
const PAGE_UNKNOWN: Nanos = Nanos(7_000);

/// The disk time at risk, and what may be.
#[derive(Debug, Default)]
pub struct Account {
    /// Duration of the recorded command; `None` if it was another one.
    recorded: Option<Nanos>,
    /// By block: its share of the time, until it is proved right.
    unproved: HashMap<Block, Nanos, FxBuildHasher>,
    metadata: BTreeSet<Block>,
    at_risk: Nanos,
    proved: Nanos,
    /// By disk: when its last read ended.
    ended: Vec<Nanos>,
    /// The time of all reads, their number, and their pages.
    took: Nanos,
    reads: u64,
    pages: u64,
    arm: bool,
    /// Without an arm: maximum disk time per page of a read; a request counts as [`REQUEST_PAGES`] more.
    page: Nanos,
}

impl Account {
    /// For a command that took `recorded`, `None` if the hints are another command's; for disks with or without an arm,
    /// on which the recorded command has `waited` so long for each page.
    #[must_use]
    pub fn new(recorded: Option<Nanos>, arm: bool, waited: Option<Nanos>) -> Self {
        let page = waited.map_or(PAGE_UNKNOWN, |waited| waited.max(PAGE_MIN));
        Self { recorded, arm, page, ..Self::default() }
    }

    /// The time of a disk without an arm for a read of `pages` pages that waits for no other one.
    fn service(&self, pages: u64) -> Nanos {
        Nanos(self.page.0 * (pages + REQUEST_PAGES))
    }

    /// A read of `blocks` has ended on a disk, and began `took` ago. Each block comes with whether it is metadata, and
    /// whether the command has referenced it meanwhile.
    pub fn read(&mut self, now: Nanos, disk: usize, took: Nanos, blocks: impl Iterator<Item = (Block, bool, bool)>) {
        if self.ended.len() <= disk {
            self.ended.resize(disk + 1, Nanos::ZERO);
        }
        let before = std::mem::replace(&mut self.ended[disk], now);
        let blocks: Vec<_> = blocks.collect();
        let pages = blocks.len() as u64;
        let mut spent = now.saturating_sub(before.max(now.saturating_sub(took)));
        if !self.arm {
            // Behind reads of the command it waits longer, but delays them by no more than its own service time.
            spent = spent.min(self.service(pages));
        }
        self.took += spent;
        self.reads += 1;
        self.pages += pages;
        let each = Nanos(spent.0 / pages.max(1));
        for (block, is_metadata, is_referenced) in blocks {
            if is_referenced {
                self.proved += each;
                continue;
            }
            if self.unproved.insert(block, each).is_some() {
                continue;
            }
            self.at_risk += each;
            if is_metadata {
                self.metadata.insert(block);
            }
        }
    }

    /// The command has referenced `block` for the first time; `near`: it is near that position in the hints.
    pub fn referenced(&mut self, block: Block, near: bool) {
        self.prove(block);
        while let Some(before) = self.metadata.first().copied().filter(|before| near && *before < block) {
            self.prove(before);
        }
    }

    fn prove(&mut self, block: Block) {
        if let Some(share) = self.unproved.remove(&block) {
            self.at_risk = self.at_risk.saturating_sub(share);
            self.proved += share;
            self.metadata.remove(&block);
        }
    }

    /// The time that may be put at risk in addition.
    #[must_use]
    pub fn left(&self, now: Nanos) -> Nanos {
        let time = self.recorded.map_or(now, |recorded| now.max(recorded));
        let share = |share: f64| Nanos((time.0 as f64 * share) as u64);
        let proved = self.recorded.map_or(Nanos::ZERO, |_| self.proved.min(share(PROVED_SHARE)));
        (share(if self.arm { ARM_SHARE } else { FLASH_SHARE }) + proved).saturating_sub(self.at_risk)
    }

    /// The time of a read and its pages, assumed before any was measured.
    fn typical(&self) -> (Nanos, u64) {
        if self.arm {
            (ARM_READ, ARM_PAGES)
        } else {
            (self.service(FLASH_PAGES), FLASH_PAGES)
        }
    }

    /// The number of reads that `left` pays for.
    #[must_use]
    pub fn reads_in(&self, left: Nanos) -> usize {
        let each = (self.took.0 + TYPICALS * self.typical().0 .0) / (self.reads + TYPICALS);
        usize::try_from(left.0 / each.max(1)).unwrap_or(usize::MAX)
    }

    /// The maximum pages of a read that `left` pays for.
    #[must_use]
    pub fn longest_in(&self, left: Nanos) -> u64 {
        if self.arm {
            return PIECE_PAGES;
        }
        (left.0 / self.page.0.max(1)).saturating_sub(REQUEST_PAGES).clamp(FLASH_PAGES, PIECE_PAGES)
    }

    /// The number of pages that `left` pays for: without an arm as a single read, since pages are read in the order of
    /// need, and no more than it pays for.
    #[must_use]
    pub fn pages_in(&self, left: Nanos) -> u64 {
        if !self.arm {
            return left.0 / self.page.0.max(1);
        }
        let (read, pages) = self.typical();
        let each = (self.took.0 + TYPICALS * read.0) / (self.pages + TYPICALS * pages);
        left.0 / each.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn most(account: &Account) -> (usize, u64) {
        let left = account.left(Nanos(0));
        (account.reads_in(left), account.pages_in(left))
    }

    fn read(account: &mut Account, now_ms: u64, took_ms: u64, blocks: &[u32], is_metadata: bool) {
        let blocks = blocks.iter().map(|block| (Block(*block), is_metadata, false));
        account.read(Nanos(now_ms * MS), 0, Nanos(took_ms * MS), blocks);
    }

    #[test]
    fn time_is_at_risk_until_it_is_proved_by_hand() {
        // 16 % of a second; a read is assumed to take 4.5 ms, a page half of it.
        let mut account = Account::new(Some(Nanos(1000 * MS)), true, None);
        assert_eq!(most(&account), (160 / 9 * 2 + 1, 71));
        // Two reads at once: the second has had the disk since the first ended, 10 ms. The mean of four is 9.75 ms.
        read(&mut account, 30, 20, &[0, 1], false);
        read(&mut account, 40, 30, &[2, 3, 4, 5], false);
        assert_eq!(account.at_risk, Nanos(30 * MS));
        assert_eq!(most(&account), (13, 33));
        account.referenced(Block(0), true);
        assert_eq!(account.at_risk, Nanos(20 * MS));
        // What is proved pays for as much again. Twice the time, twice the share.
        assert_eq!(account.left(Nanos(2000 * MS)), Nanos((320 + 10 - 20) * MS));
        // The command has referenced it meanwhile.
        account.read(Nanos(50 * MS), 0, Nanos(10 * MS), [(Block(9), false, true)].into_iter());
        assert_eq!((account.at_risk, account.proved), (Nanos(20 * MS), Nanos(20 * MS)));
        // A tenth of the time at most.
        (7..20)
            .for_each(|at| account.read(Nanos(at * 10 * MS), 0, Nanos(10 * MS), [(Block(9), false, true)].into_iter()));
        assert_eq!(account.left(Nanos(0)), Nanos((160 + 100 - 20) * MS));
        // Hints of another command.
        let mut other = Account::new(None, true, None);
        other.read(Nanos(50 * MS), 0, Nanos(10 * MS), [(Block(9), false, true)].into_iter());
        assert_eq!(other.left(Nanos(500 * MS)), Nanos(80 * MS));
        // Nothing is left.
        read(&mut account, 500, 250, &[6], false);
        assert_eq!(most(&account), (0, 0));
    }

    #[test]
    fn metadata_is_proved_by_what_comes_behind_it_in_the_hints() {
        let mut account = Account::new(None, true, None);
        read(&mut account, 10, 10, &[3, 4, 8], true);
        read(&mut account, 12, 2, &[5, 6], false);
        let mut after = |block, near| {
            account.referenced(Block(block), near);
            account.at_risk.0
        };
        let third = 10 * MS / 3;
        assert_eq!([after(7, false), after(4, false)], [3 * third + 2 * MS, 2 * third + 2 * MS]);
        assert_eq!([after(7, true), after(5, true), after(9, true)], [third + 2 * MS, third + MS, MS]);
    }
}
