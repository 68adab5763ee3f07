//! The set of blocks that a decision has named.

use headstart_types::Block;

use crate::lists::GROWTH;
use crate::Fetch;

/// The blocks named by the fetches of the current decision. A lookup takes constant time.
#[derive(Debug, Default)]
pub(crate) struct Named {
    /// For each block: the decision that named it last.
    decision_of: Vec<u32>,
    /// Number of the current decision, from 1.
    decision: u32,
    /// Number of this decision's fetches that have been recorded.
    seen: usize,
    /// Fetches recorded and blocks looked up so far.
    #[cfg(test)]
    pub steps: std::cell::Cell<usize>,
}

impl Named {
    /// Starts another decision if the fetches of the last one have been carried out.
    pub fn restart(&mut self, fetches: &[Fetch]) {
        if !fetches.is_empty() && fetches.len() >= self.seen {
            return;
        }
        self.seen = 0;
        if self.decision == u32::MAX {
            self.decision_of.fill(0);
            self.decision = 0;
        }
        self.decision += 1;
    }

    /// Records the fetches added since the last call.
    pub fn follow(&mut self, fetches: &[Fetch]) {
        for fetch in &fetches[self.seen..] {
            self.step();
            let at = fetch.block.index();
            if at >= self.decision_of.len() {
                self.decision_of.resize((at + 1).next_multiple_of(GROWTH), 0);
            }
            self.decision_of[at] = self.decision;
        }
        self.seen = fetches.len();
    }

    pub fn holds(&self, block: Block) -> bool {
        self.step();
        self.decision_of.get(block.index()).is_some_and(|decision| *decision == self.decision)
    }

    #[inline]
    fn step(&self) {
        #[cfg(test)]
        self.steps.set(self.steps.get() + 1);
    }
}
