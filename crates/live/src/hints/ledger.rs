//! What prefetching costs the command, and what it gains: measured beside the recorded run, whatever the reasons are.
//!
//! Each page that hints name has the time that the recorded run took to come to it from the page before. The pages that the command
//! references between two looks at its trace add up to its *progress*: the time that the recorded run took for as much. Progress beyond
//! the time that went by is a gain, and less of it a loss. Both count where prefetching had a hand in them:
//!
//! - A loss is never more than the time that the disks have spent on prefetches since the last look. A processor that is slower today, or
//!   a read that no hint names, is no loss of ours while no disk reads for us.
//! - Where no disk has read for us, a gain is never more than the recorded times of the pages that had been prefetched.
//!
//! This is for disks without an arm. With one, a prefetch costs more than the time of its read: the arm has to go back, and the drive's
//! buffer begins anew. There `risk.rs` alone sets the limit.
//!
//! The *balance* begins with a share of the recorded time, and gains and losses go into it. What the disks have spent since the last look
//! is a loss as long as nothing else is known. While the balance less that is positive, reads go on: as many at a time, and as many pages,
//! as it can pay for. So right hints pay for more and more, and wrong ones spend what right ones have gained and the share.
//!
//! Bound: what is counted as lost is at most the share, the gains, and the reads that were under way when the balance was spent. What is lost
//! later is not counted: pages that the kernel's read-around would have brought beside those that hints name.
//!
//! References to cached metadata are not seen: a page of metadata counts when the command is seen beyond it in the hints. Wrong metadata
//! costs what it costs, and is not followed for long.

use headstart_types::{Block, Nanos};

use super::machine::Machine;

/// What hints may cost, as a share of the recorded time. Chosen after a scan from 0.01 to 0.05 with some of the forecasts of
/// docs/hints-study.md, between what right hints gain and what the worst wrong ones cost.
const LOSS: f64 = 0.03;

/// The account of a command.
#[derive(Debug)]
pub struct Ledger {
    balance_ns: i64,
    /// What disks have spent since the last look.
    spent: Nanos,
    /// Since the last look: whether a reference was seen, the command's progress, and the part of it on pages that were prefetched.
    seen: bool,
    progress: Nanos,
    prefetched: Nanos,
    settled: Nanos,
    counted: Vec<bool>,
    /// All metadata before this position counts.
    metadata_until: u32,
}

impl Ledger {
    /// For a command that took `recorded`, whose hints name so many `blocks`.
    #[must_use]
    pub fn new(recorded: Nanos, blocks: usize) -> Self {
        let share = Nanos((recorded.0 as f64 * LOSS) as u64);
        Self {
            balance_ns: signed(share),
            spent: Nanos::ZERO,
            seen: false,
            progress: Nanos::ZERO,
            prefetched: Nanos::ZERO,
            settled: Nanos::ZERO,
            counted: vec![false; blocks],
            metadata_until: 0,
        }
    }

    /// A disk has spent so much time on a prefetch.
    pub fn spend(&mut self, spent: Nanos) {
        self.spent += spent;
    }

    /// The command has referenced `block`, which hints name; `near`: about where it is in them.
    pub fn referenced(&mut self, machine: &Machine, block: Block, near: bool) {
        self.seen = true;
        self.count(machine, block);
        if near {
            for before in (self.metadata_until..block.0).map(Block) {
                if machine.universe().is_metadata(before) {
                    self.count(machine, before);
                }
            }
            self.metadata_until = self.metadata_until.max(block.0);
        }
    }

    /// It has referenced what no hint names.
    pub fn elsewhere(&mut self) {
        self.seen = true;
    }

    fn count(&mut self, machine: &Machine, block: Block) {
        if !std::mem::replace(&mut self.counted[block.index()], true) {
            let passed = machine.universe().passed(block);
            self.progress += passed;
            if machine.has_read(block) {
                self.prefetched += passed;
            }
        }
    }

    /// The trace has been looked at.
    pub fn settle(&mut self, now: Nanos) {
        if !std::mem::take(&mut self.seen) {
            return;
        }
        let gained = signed(self.progress) - signed(now.saturating_sub(self.settled));
        // What is lost while no disk has read for us is not lost to us.
        self.balance_ns += if self.spent > Nanos::ZERO {
            gained.max(-signed(self.spent))
        } else {
            gained.clamp(0, signed(self.prefetched))
        };
        self.settled = now;
        (self.spent, self.progress, self.prefetched) = (Nanos::ZERO, Nanos::ZERO, Nanos::ZERO);
    }

    /// What may be spent.
    #[must_use]
    pub fn left(&self) -> Nanos {
        Nanos(u64::try_from(self.balance_ns - signed(self.spent)).unwrap_or(0))
    }
}

fn signed(time: Nanos) -> i64 {
    i64::try_from(time.0).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: i64 = 1_000_000;

    /// A look at which a reference was seen, after so much progress, some of it on pages that were prefetched.
    fn look(ledger: &mut Ledger, at_ms: i64, progress_ms: i64, prefetched_ms: i64, spent_ms: i64) -> i64 {
        let time = |ms: i64| Nanos((ms * MS) as u64);
        ledger.spend(time(spent_ms));
        (ledger.seen, ledger.progress, ledger.prefetched) = (true, time(progress_ms), time(prefetched_ms));
        ledger.settle(time(at_ms));
        ledger.balance_ns / MS
    }

    #[test]
    fn gains_and_losses_by_hand() {
        // 3 % of a second. Nothing has been read: a slow processor is no loss, and the command's own luck no gain.
        let mut ledger = Ledger::new(Nanos(1_000_000_000), 0);
        assert_eq!([look(&mut ledger, 10, 2, 0, 0), look(&mut ledger, 12, 20, 0, 0)], [30, 30]);
        // 20 ms for what took 12: a loss of 8, of which 5 can be ours.
        assert_eq!(look(&mut ledger, 32, 12, 0, 5), 25);
        // 2 ms for what took 30, 10 of them on pages that were prefetched.
        assert_eq!(look(&mut ledger, 34, 30, 10, 0), 35);
        ledger.spend(Nanos(15_000_000));
        assert_eq!(ledger.left(), Nanos(20_000_000));
        ledger.settle(Nanos(60_000_000));
        assert_eq!(ledger.left(), Nanos(20_000_000), "nothing was seen");
    }

    proptest! {
        /// Whatever the command does: all that reads have cost is what they were begun for, of the share and the gains, and
        /// the last of them.
        #[test]
        fn losses_are_bounded(looks in prop::collection::vec((1..50i64, 0..50i64, 0..20i64), 1..200)) {
            let mut ledger = Ledger::new(Nanos(1_000_000_000), 0);
            let (mut now, mut gains) = (0, 0);
            for (passed, progress, read) in looks {
                now += passed;
                // A read is begun only where there is something left.
                let spent = if ledger.left() > Nanos::ZERO { read.min(passed) } else { 0 };
                let before = ledger.balance_ns / MS;
                let after = look(&mut ledger, now, progress, 0, spent);
                gains += (after - before).max(0);
                prop_assert!(before - after <= spent, "a loss is at most what was spent");
                prop_assert!(after >= -20, "only the last read is in debt");
                prop_assert!(30 + gains - after <= 30 + gains + 20);
            }
        }
    }
}
