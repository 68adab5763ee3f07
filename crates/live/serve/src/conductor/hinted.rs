//! Prefetches the pages named by hints (`headstart_hints`): they go to the level as if its read-ahead had requested
//! them.
//!
//! The level's own policy continues as without hints, so wrong hints cost only the pages they fetched.

use std::ops::Range;

use headstart_hints::Follower;
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
        let Some(mut hints) = self.hints.take() else { return };
        let mut runs = Vec::new();
        for _ in 0..ROUNDS_MAX {
            hints.act(self.now, &mut runs);
            if runs.is_empty() {
                break;
            }
            runs.drain(..).for_each(|run| self.expect(&mut hints, run));
        }
        self.hints = Some(hints);
        self.follow(actions);
    }

    fn expect(&mut self, hints: &mut Follower, run: Range<u64>) {
        let of = |page| self.machine.pages().block(0, page).map(|block| (page, block));
        let blocks: Vec<(u64, Block)> = run.clone().filter_map(of).collect();
        let (absent, here): (Vec<_>, Vec<_>) =
            blocks.into_iter().partition(|(_, block)| self.machine.level().is_unknown(*block));
        here.into_iter().for_each(|(page, _)| hints.unneeded(self.now, page));
        let wanted: Vec<Block> = absent.iter().map(|(_, block)| *block).collect();
        self.machine.expect(self.now, &wanted);
        for (page, block) in absent {
            // Without a free frame, the page stays where it is.
            if !self.machine.level().state(block).is_in_flight() {
                hints.unneeded(self.now, page);
            }
        }
    }
}
