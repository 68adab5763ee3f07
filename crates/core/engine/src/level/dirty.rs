//! Dirty blocks and their due times: write-back with a delay, like the update daemon of Unix.
//!
//! A block is due a fixed time after the write that made it dirty; further writes do not postpone that, so no block
//! stays dirty longer. Cost: logarithmic in the dirty blocks, and nothing without writes.

use std::collections::{BTreeMap, BTreeSet};

use headstart_types::{Block, Nanos};

/// The dirty blocks of a level.
#[derive(Debug, Clone, Default)]
pub(crate) struct Dirty {
    due: BTreeMap<Block, Nanos>,
    order: BTreeSet<(Nanos, Block)>,
    /// The first time in `order`, kept here because it is read at every instant.
    first: Option<Nanos>,
}

impl Dirty {
    /// Marks a block as dirty and due at `at`, unless it is dirty already.
    pub fn mark(&mut self, block: Block, at: Nanos) {
        if let std::collections::btree_map::Entry::Vacant(entry) = self.due.entry(block) {
            entry.insert(at);
            self.order.insert((at, block));
            self.look_first();
        }
    }

    /// Marks a block as clean; returns false if it was clean.
    #[inline]
    pub fn clean(&mut self, block: Block) -> bool {
        !self.due.is_empty() && self.remove(block)
    }

    #[inline(never)]
    fn remove(&mut self, block: Block) -> bool {
        let removed = self.due.remove(&block).is_some_and(|at| self.order.remove(&(at, block)));
        self.look_first();
        removed
    }

    fn look_first(&mut self) {
        self.first = self.order.first().map(|(at, _)| *at);
    }

    /// The earliest due time.
    #[inline]
    pub fn due(&self) -> Option<Nanos> {
        self.first
    }

    /// Cleans and returns the first block that is due at `now`.
    pub fn take_due(&mut self, now: Nanos) -> Option<Block> {
        let (at, block) = *self.order.first()?;
        (at <= now && self.clean(block)).then_some(block)
    }

    pub fn contains(&self, block: Block) -> bool {
        self.due.contains_key(&block)
    }

    pub fn len(&self) -> usize {
        self.due.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_due_a_delay_after_it_became_dirty() {
        let mut dirty = Dirty::default();
        dirty.mark(Block(7), Nanos(30));
        dirty.mark(Block(3), Nanos(35));
        // Written again at 10: still due at 30.
        dirty.mark(Block(7), Nanos(40));
        assert_eq!((dirty.due(), dirty.len()), (Some(Nanos(30)), 2));
        assert_eq!(dirty.take_due(Nanos(29)), None);
        assert_eq!(dirty.take_due(Nanos(36)), Some(Block(7)));
        // Evicted before it is due; dirty again later, with a new due time.
        assert!(dirty.clean(Block(3)) && !dirty.clean(Block(3)));
        dirty.mark(Block(3), Nanos(90));
        assert_eq!((dirty.due(), dirty.take_due(Nanos(36))), (Some(Nanos(90)), None));
    }
}
