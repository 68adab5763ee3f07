//! Who waits until which blocks have been written: found by block, not by asking everybody.

use std::collections::{BTreeMap, BTreeSet};

use headstart_types::Block;

/// Waiters for writes, by level and block. A waiter is a process, or an arrival by the clock.
#[derive(Debug, Default)]
pub struct Writers {
    waiting: BTreeMap<(usize, Block), BTreeSet<u64>>,
    /// By waiter: blocks that are not written.
    left: BTreeMap<u64, usize>,
}

impl Writers {
    /// `waiter` waits until all of `blocks`, which are different, have been written by level `tier`.
    pub fn wait(&mut self, waiter: u64, tier: usize, blocks: &[Block]) {
        for block in blocks {
            self.waiting.entry((tier, *block)).or_default().insert(waiter);
        }
        self.left.insert(waiter, blocks.len());
    }

    /// A block has been written: for the first that waits for it. Gives that one if it waits for no other.
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
