//! Waiters for writes, found by block without scanning all waiters.

use std::collections::{BTreeMap, BTreeSet};

use headstart_types::Block;

/// Waiters for writes, by level and block. A waiter is a process or an open-loop request.
#[derive(Debug, Default)]
pub struct Writers {
    waiting: BTreeMap<(usize, Block), BTreeSet<u64>>,
    /// For each waiter: number of blocks not yet written.
    left: BTreeMap<u64, usize>,
}

impl Writers {
    /// Makes `waiter` wait until all of `blocks`, which are distinct, have been written by level `tier`.
    pub fn wait(&mut self, waiter: u64, tier: usize, blocks: &[Block]) {
        for block in blocks {
            self.waiting.entry((tier, *block)).or_default().insert(waiter);
        }
        self.left.insert(waiter, blocks.len());
    }

    /// Handles a written block, on behalf of its first waiter. Returns that waiter if it waits for no other block.
    pub fn written(&mut self, tier: usize, block: Block) -> Option<u64> {
        let waiters = self.waiting.get_mut(&(tier, block))?;
        let waiter = waiters.pop_first()?;
        if waiters.is_empty() {
            self.waiting.remove(&(tier, block));
        }
        let left = self.left.get_mut(&waiter)?;
        *left -= 1;
        if *left > 0 {
            return None;
        }
        self.left.remove(&waiter);
        Some(waiter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_waiter_gets_the_first_write() {
        let mut writers = Writers::default();
        writers.wait(8, 0, &[Block(3)]);
        writers.wait(5, 0, &[Block(3), Block(4)]);
        assert_eq!(writers.written(1, Block(3)), None, "another level's");
        assert_eq!(writers.written(0, Block(3)), None, "5 waits for 4 too");
        assert_eq!(writers.written(0, Block(4)), Some(5));
        assert_eq!(writers.written(0, Block(3)), Some(8));
        assert_eq!(writers.written(0, Block(3)), None);
    }
}
