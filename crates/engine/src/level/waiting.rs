//! Who waits for which block: a list for each block that is waited for, found by the block's number.
//!
//! Cost: constant per waiter, and for each that waits for the same block already. Memory: four bytes a block of the level's
//! universe once anybody waits, and a node for each of the most waiters that there have been.

use headstart_types::{Block, Nanos, Outcome, Position};

/// A block of a request that is waited for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Waiter {
    /// Slot of the request.
    pub slot: usize,
    pub position: Position,
    pub process: u32,
    pub outcome: Outcome,
    pub compute: Nanos,
    pub since: Nanos,
    /// The request bypassed the policy, which is not told that the block is handed over.
    pub silent: bool,
}

/// Stands where there is no node.
const NONE: u32 = u32::MAX;

/// Lists of waiters by block.
#[derive(Default)]
pub(super) struct Waiting {
    /// By block: the node of the one that asked first plus one, or zero.
    first_of: Vec<u32>,
    /// Waiters, each with the node of the one that asked after it.
    nodes: Vec<(Waiter, u32)>,
    /// Nodes that are nobody's.
    free: Vec<u32>,
}

impl Waiting {
    /// Whether nobody waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.free.len() == self.nodes.len()
    }

    /// The node of the one that asked first for `block`.
    #[inline]
    fn first(&self, block: Block) -> u32 {
        self.first_of.get(block.index()).map_or(NONE, |first| first.wrapping_sub(1))
    }

    /// Who waits for `block`, in the order in which they asked.
    #[inline]
    pub fn of(&self, block: Block) -> impl Iterator<Item = &Waiter> {
        let mut at = self.first(block);
        std::iter::from_fn(move || {
            let (waiter, next) = self.nodes.get(at as usize)?;
            at = *next;
            Some(waiter)
        })
    }

    /// One more waits for `block`.
    #[inline]
    pub fn push(&mut self, block: Block, waiter: Waiter) {
        let node = self.free.pop().unwrap_or(self.nodes.len() as u32);
        match self.nodes.get_mut(node as usize) {
            Some(free) => *free = (waiter, NONE),
            None => self.nodes.push((waiter, NONE)),
        }
        if block.index() >= self.first_of.len() {
            self.first_of.resize((block.index() + 1).next_power_of_two(), 0);
        }
        let mut last = self.first(block);
        if last == NONE {
            self.first_of[block.index()] = node + 1;
            return;
        }
        while self.nodes[last as usize].1 != NONE {
            last = self.nodes[last as usize].1;
        }
        self.nodes[last as usize].1 = node;
    }

    /// Takes the one that asked first for `block`, if anybody waits.
    #[inline]
    pub fn pop(&mut self, block: Block) -> Option<Waiter> {
        let node = self.first(block);
        let (waiter, next) = *self.nodes.get(node as usize)?;
        self.first_of[block.index()] = next.wrapping_add(1);
        self.free.push(node);
        Some(waiter)
    }
}
