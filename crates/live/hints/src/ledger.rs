//! What prefetching gains for the command, and what may be spent in return, measured against the recorded run.
//!
//! Each hinted page has the time that the recorded run took to reach it from the page before. The pages that the
//! command references between two looks at its trace add up to its *progress*: the time that the recorded run took for
//! them. Progress beyond the elapsed time is a gain, as far as prefetching contributed: if no disk has read for the
//! command since the last look, a gain is at most the recorded times of the pages that had been prefetched.
//!
//! The *balance* is a share of the recorded time plus all gains. What may be spent is the balance less what is at risk:
//! the disk time spent on pages that have not been referenced (`risk.rs`). While it is positive, reads go on, as many
//! and as long as it can pay for. Thus right hints pay for more and more reads, and wrong ones spend the share and what
//! right ones have gained.
//!
//! Bound: at most the share, the gains, and the reads in flight when the balance was spent are wasted. This holds from
//! the first read on: hints of the same command need not be confirmed first. Less progress than recorded is no loss:
//! otherwise a processor that is slower today would end the prefetching of right hints. Costs of wrong hints beyond
//! disk time are not counted: pages that the kernel's read-around would have brought beside the hinted ones.
//!
//! This is for disks without an arm. With an arm, a prefetch costs more than the time of its read: the arm must return,
//! and the drive's buffer starts anew. There `risk.rs` alone sets the limit.
//!
//! References to cached metadata are not visible: a page of metadata counts when the command is seen beyond it in the
//! hints. Wrong metadata costs what it costs, and is not followed for long.

use headstart_types::{Block, Nanos};

use super::machine::Machine;

/// What hints may cost, as a share of the recorded time. Chosen after a scan from 0.01 to 0.05 with some of the
/// forecasts of docs/hints-study.md, between what right hints gain and what the worst wrong ones cost.
const LOSS: f64 = 0.03;

/// The balance of a command.
#[derive(Debug)]
pub struct Ledger {
    balance: Nanos,
    /// Since the last look: whether a disk has read for the command, whether a reference was seen, the command's
    /// progress, and its part on prefetched pages.
    has_read: bool,
    seen: bool,
    progress: Nanos,
    prefetched: Nanos,
    settled: Nanos,
    counted: Vec<bool>,
    /// All metadata before this position counts.
    metadata_until: u32,
}

impl Ledger {
    /// For a command that took `recorded`, with `blocks` hinted blocks.
    #[must_use]
    pub fn new(recorded: Nanos, blocks: usize) -> Self {
        Self {
            balance: Nanos((recorded.0 as f64 * LOSS) as u64),
            has_read: false,
            seen: false,
            progress: Nanos::ZERO,
            prefetched: Nanos::ZERO,
            settled: Nanos::ZERO,
            counted: vec![false; blocks],
            metadata_until: 0,
        }
    }

    /// A disk has read for the command.
    pub fn read(&mut self) {
        self.has_read = true;
    }

    /// The command has referenced a hinted `block`; `near`: it is near that position in the hints.
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

    /// The command has made an unhinted reference.
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

    /// Ends a look at the trace.
    pub fn settle(&mut self, now: Nanos) {
        if !std::mem::take(&mut self.seen) {
            return;
        }
        let gained = self.progress.saturating_sub(now.saturating_sub(self.settled));
        self.balance += if std::mem::take(&mut self.has_read) { gained } else { gained.min(self.prefetched) };
        self.settled = now;
        (self.progress, self.prefetched) = (Nanos::ZERO, Nanos::ZERO);
    }

    /// What may be spent beside what is `at_risk`.
    #[must_use]
    pub fn left(&self, at_risk: Nanos) -> Nanos {
        self.balance.saturating_sub(at_risk)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// A look that saw a reference, after `progress_ms`, of which `prefetched_ms` were on prefetched pages.
    fn look(ledger: &mut Ledger, at_ms: u64, progress_ms: u64, prefetched_ms: u64, has_read: bool) -> u64 {
        let time = |ms: u64| Nanos(ms * MS);
        (ledger.seen, ledger.has_read) = (true, has_read);
        (ledger.progress, ledger.prefetched) = (time(progress_ms), time(prefetched_ms));
        ledger.settle(time(at_ms));
        ledger.balance.0 / MS
    }

    #[test]
    fn gains_by_hand() {
        // 3 % of a second. Nothing has been read: a slow processor is no loss, and the command's own luck no gain.
        let mut ledger = Ledger::new(Nanos(1000 * MS), 0);
        assert_eq!([look(&mut ledger, 10, 2, 0, false), look(&mut ledger, 12, 20, 0, false)], [30, 30]);
        // 20 ms for what took 12 is no loss, 20 ms for what took 27 a gain of 7.
        assert_eq!([look(&mut ledger, 32, 12, 0, true), look(&mut ledger, 52, 27, 0, true)], [30, 37]);
        // 2 ms for what took 30, 10 of them on pages that were prefetched.
        assert_eq!(look(&mut ledger, 54, 30, 10, false), 47);
        assert_eq!([0, 40, 47, 90].map(|at_risk| ledger.left(Nanos(at_risk * MS)).0 / MS), [47, 7, 0, 0]);
        ledger.settle(Nanos(80 * MS));
        assert_eq!(ledger.settled, Nanos(54 * MS), "nothing was seen");
    }
}
