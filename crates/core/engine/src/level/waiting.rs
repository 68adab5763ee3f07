//! Waiters for blocks: one list per awaited block, found by the block's number.
//!
//! Cost: constant per waiter, plus one step for each earlier waiter of the same block. Memory: four bytes per block of
//! the level's universe once any request waits, and a node for each of the maximum number of waiters at a time.

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
    /// Whether the request bypassed the policy, which is then not notified of the delivery.
    pub silent: bool,
}

/// Marks the absence of a node.
const NONE: u32 = u32::MAX;

/// Lists of waiters by block.
#[derive(Default)]
pub(super) struct Waiting {
    /// For each block: the node of its first waiter plus one, or zero.
    first_of: Vec<u32>,
    /// Waiters, each with the node of the next waiter of the same block.
    nodes: Vec<(Waiter, u32)>,
    /// Unused nodes.
    free: Vec<u32>,
}

impl Waiting {
    /// Whether no request waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.free.len() == self.nodes.len()
    }

    /// The node of the first waiter of `block`.
    #[inline]
    fn first(&self, block: Block) -> u32 {
        self.first_of.get(block.index()).map_or(NONE, |first| first.wrapping_sub(1))
    }

    /// The waiters of `block`, in FIFO order.
    #[inline]
    pub fn of(&self, block: Block) -> impl Iterator<Item = &Waiter> {
        let mut at = self.first(block);
        std::iter::from_fn(move || {
            let (waiter, next) = self.nodes.get(at as usize)?;
            at = *next;
            Some(waiter)
        })
    }

    /// Adds a waiter of `block`.
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

    /// Removes and returns the first waiter of `block`.
    #[inline]
    pub fn pop(&mut self, block: Block) -> Option<Waiter> {
        let node = self.first(block);
        let (waiter, next) = *self.nodes.get(node as usize)?;
        self.first_of[block.index()] = next.wrapping_add(1);
        self.free.push(node);
        Some(waiter)
    }
}
