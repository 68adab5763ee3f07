//! Prefetches the pages named by hints: the level that follows them (`headstart_hints`) says when, and they go to the
//! level in memory as if its read-ahead had requested them.
//!
//! That level's own policy continues as without hints, so wrong hints cost only the pages they fetched.

use std::ops::Range;

use headstart_policy::BlockMap;
use headstart_types::Block;

use super::Conductor;
use crate::queue::ReadQueue;
use crate::work::Action;

/// Maximum number of times per instant that hints are asked again, because pages need not be read.
const ROUNDS_MAX: usize = 64;

impl<Q: ReadQueue> Conductor<Q> {
    /// Orders the reads that the hints want now.
    pub(super) fn read_ahead_by_hints(&mut self, actions: &mut Vec<Action>) {
        let mut runs = Vec::new();
        for _ in 0..ROUNDS_MAX {
            let Some(hints) = self.machine.hints_mut() else { return };
            hints.act(self.now, &mut runs);
            self.take_out_unstored();
            if runs.is_empty() {
                break;
            }
            runs.drain(..).for_each(|run| self.expect(run));
        }
        self.follow(actions);
    }

    fn expect(&mut self, run: Range<u64>) {
        let absent = |page| {
            let block = self.machine.pages().block(0, page)?;
            self.machine.level().is_unknown(block).then_some(block)
        };
        let pages: Vec<(u64, Option<Block>)> = run.map(|page| (page, absent(page))).collect();
        let blocks: Vec<Block> = pages.iter().filter_map(|(_, block)| *block).collect();
        self.machine.expect(self.now, &blocks);
        for (page, block) in pages {
            // A page that is here, or has no free frame, stays where it is.
            let comes = block.is_some_and(|block| self.machine.level().state(block).is_in_flight());
            if let (false, Some(hints)) = (comes, self.machine.hints_mut()) {
                hints.unneeded(self.now, page);
            }
        }
    }
}
