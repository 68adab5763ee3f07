//! Blocks that leave before any that a replacement would choose, whatever the replacement.
//!
//! A coordinator marks a block that the cache can do without: under DU (as in zhang-pfc, section 4.3) one that has
//! just been sent to the level above. The marked block that was marked last goes first. A mark ends when its block is
//! referenced or leaves; a marked block that is not evictable is passed over and keeps its mark.
//! Cost: constant per event; 16 bytes a marked block, 4 a block of the universe once one has been marked.

use headstart_types::{Block, Outcome, Position};

use crate::lists::Lists;
use crate::{Replacement, View};

/// A replacement with first victims.
#[derive(Debug)]
pub struct FirstVictims<R> {
    replacement: R,
    /// The front leaves first.
    marked: Lists<1>,
    blocks: usize,
}

impl<R: Replacement> FirstVictims<R> {
    /// No block is marked yet. `blocks` is what `replacement` has been grown to.
    #[must_use]
    pub fn new(replacement: R, blocks: usize) -> Self {
        Self { replacement, marked: Lists::new(), blocks }
    }

    /// Makes the resident `block` the first victim.
    pub fn mark(&mut self, block: Block) {
        self.marked.grow(self.blocks);
        self.marked.remove(block);
        self.marked.insert_after(None, 0, block);
    }

    fn unmark(&mut self, block: Block) {
        if self.marked.len(0) > 0 {
            self.marked.remove(block);
        }
    }
}

impl<R: Replacement> Replacement for FirstVictims<R> {
    fn grow(&mut self, blocks: usize) {
        self.blocks = self.blocks.max(blocks);
        if self.marked.len(0) > 0 {
            self.marked.grow(blocks);
        }
        self.replacement.grow(blocks);
    }

    fn warm(&self, blocks: &[Block]) {
        self.replacement.warm(blocks);
    }

    fn victim(&mut self, incoming: Block, view: &View<'_>) -> Option<Block> {
        let marked = self.marked.iter(0).find(|block| view.state(*block).is_evictable());
        match marked {
            None => self.replacement.victim(incoming, view),
            Some(block) => {
                self.removed(block);
                marked
            }
        }
    }

    fn inserted(&mut self, block: Block) {
        self.replacement.inserted(block);
    }

    fn referenced(&mut self, position: Position, block: Block, outcome: Outcome) {
        self.unmark(block);
        self.replacement.referenced(position, block, outcome);
    }

    fn removed(&mut self, block: Block) {
        self.unmark(block);
        self.replacement.removed(block);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replacement::Lru;
    use crate::BlockState;

    #[test]
    fn the_last_marked_goes_first_and_a_reference_ends_the_mark() {
        // Oldest first: 0 1 2 3. Marked 2, then 3; 3 is referenced again, so 2 is the first victim, then LRU's 0.
        let mut replacement = FirstVictims::new(Lru::new(&[0, 1, 2, 3].map(Block), 8), 8);
        let mut states = [BlockState::resident(); 8];
        let mut victim = |replacement: &mut FirstVictims<Lru>, pinned: Option<usize>| {
            let mut now = states;
            if let Some(pinned) = pinned {
                now[pinned] = now[pinned].pinned(true);
            }
            let view = View { cursor: 0, free: 0, blocks: &now, outstanding: &[], disk_of: &[] };
            let victim = replacement.victim(Block(7), &view)?;
            states[victim.index()] = BlockState::ABSENT;
            Some(victim.0)
        };
        replacement.mark(Block(2));
        replacement.mark(Block(3));
        replacement.mark(Block(1));
        replacement.referenced(0, Block(3), Outcome::HitReady);
        assert_eq!(victim(&mut replacement, Some(1)), Some(2), "1 was marked later, but is pinned");
        assert_eq!(victim(&mut replacement, None), Some(1), "its mark has lasted");
        assert_eq!(victim(&mut replacement, None), Some(0), "no mark is left: LRU");
        replacement.mark(Block(3));
        replacement.removed(Block(3));
        assert_eq!(victim(&mut replacement, None), None, "nothing is left");
    }
}
