//! Doubly linked lists of blocks, used for recency and ghost lists.
//!
//! Each block is in at most one of `LISTS` lists. Every operation takes constant time. The nodes are in a slab as large
//! as the lists have ever been, found through 4 bytes per block: with a cache much smaller than the universe, the nodes
//! stay in the processor's cache.

use headstart_types::Block;
use prefetch_index::prefetch_index;

use crate::View;

const NONE: u32 = u32::MAX;

/// Number of blocks by which tables grow at a time.
pub(crate) const GROWTH: usize = 256;

#[derive(Debug, Clone, Copy)]
struct Node {
    previous: u32,
    next: u32,
    block: Block,
    list: u16,
    /// A value that the owner keeps with the block.
    tag: u16,
}

/// `LISTS` lists over the same blocks, each from its front (oldest) to its back (newest).
#[derive(Debug, Clone)]
pub(crate) struct Lists<const LISTS: usize> {
    /// For each block: its node; `NONE` if it is in no list.
    node_of: Vec<u32>,
    nodes: Vec<Node>,
    /// Nodes that hold no block.
    unused: Vec<u32>,
    front: [u32; LISTS],
    back: [u32; LISTS],
    len: [usize; LISTS],
    /// Number of nodes linked and unlinked so far, for tests that count work.
    #[cfg(test)]
    pub steps: u64,
}

impl<const LISTS: usize> Lists<LISTS> {
    pub fn new() -> Self {
        Self {
            node_of: Vec::new(),
            nodes: Vec::new(),
            unused: Vec::new(),
            front: [NONE; LISTS],
            back: [NONE; LISTS],
            len: [0; LISTS],
            #[cfg(test)]
            steps: 0,
        }
    }

    /// Makes room for block numbers below `blocks`, and for some more because blocks are often named one by one.
    #[inline]
    pub fn grow(&mut self, blocks: usize) {
        if blocks > self.node_of.len() {
            self.node_of.resize(blocks.next_multiple_of(GROWTH), NONE);
        }
    }

    pub fn len(&self, list: usize) -> usize {
        self.len[list]
    }

    /// The list that contains `block`.
    #[inline]
    pub fn list_of(&self, block: Block) -> Option<usize> {
        let node = self.node_of[block.index()];
        (node != NONE).then(|| self.nodes[node as usize].list as usize)
    }

    /// Whether `block`, for which there need not be room yet, is in a list.
    pub fn contains(&self, block: Block) -> bool {
        self.node_of.get(block.index()).is_some_and(|node| *node != NONE)
    }

    /// The list that contains `block`, and its tag.
    #[inline]
    pub fn find(&self, block: Block) -> Option<(usize, u16)> {
        let node = self.nodes.get(self.node_of[block.index()] as usize)?;
        Some((node.list as usize, node.tag))
    }

    /// The tag of `block`, which is in a list. It is 0 when a block enters and moves with it from list to list.
    #[inline]
    pub fn tag(&mut self, block: Block) -> &mut u16 {
        let at = self.node_of[block.index()];
        &mut self.nodes[at as usize].tag
    }

    /// The next newer block after `block`, which is in a list.
    #[inline]
    pub fn after(&self, block: Block) -> Option<Block> {
        let next = self.nodes[self.node_of[block.index()] as usize].next;
        self.nodes.get(next as usize).map(|node| node.block)
    }

    /// The next older block before `block`, which is in a list.
    #[inline]
    pub fn before(&self, block: Block) -> Option<Block> {
        let previous = self.nodes[self.node_of[block.index()] as usize].previous;
        self.nodes.get(previous as usize).map(|node| node.block)
    }

    #[inline]
    pub fn front(&self, list: usize) -> Option<Block> {
        (self.front[list] != NONE).then(|| self.nodes[self.front[list] as usize].block)
    }

    #[inline]
    pub fn back(&self, list: usize) -> Option<Block> {
        (self.back[list] != NONE).then(|| self.nodes[self.back[list] as usize].block)
    }

    /// The blocks from front to back.
    pub fn iter(&self, list: usize) -> impl Iterator<Item = Block> + '_ {
        let mut at = self.front[list];
        std::iter::from_fn(move || {
            let node = (at != NONE).then(|| self.nodes[at as usize])?;
            at = node.next;
            Some(node.block)
        })
    }

    /// The blocks from back to front.
    pub fn iter_back(&self, list: usize) -> impl Iterator<Item = Block> + '_ {
        let mut at = self.back[list];
        std::iter::from_fn(move || {
            let node = (at != NONE).then(|| self.nodes[at as usize])?;
            at = node.previous;
            Some(node.block)
        })
    }

    /// Prefetches the nodes of `blocks` and their neighbours into the processor's cache, in rounds: each round reads
    /// what the one before has requested.
    pub fn warm(&self, blocks: &[Block]) {
        blocks.iter().for_each(|block| prefetch_index(&self.node_of, block.index()));
        let places = || blocks.iter().map(|block| self.node_of[block.index()]).filter(|at| *at != NONE);
        places().for_each(|at| prefetch_index(&self.nodes, at as usize));
        for at in places() {
            let Node { previous, next, .. } = self.nodes[at as usize];
            prefetch_index(&self.nodes, previous as usize);
            prefetch_index(&self.nodes, next as usize);
        }
    }

    /// Appends `block`, which is in no list.
    #[inline]
    pub fn push_back(&mut self, list: usize, block: Block) {
        let at = self.node(block);
        self.link_back(list, at);
    }

    /// Inserts `block`, which is in no list, right after `anchor`, which is in one. Without an anchor, at the front of
    /// `list`.
    pub fn insert_after(&mut self, anchor: Option<Block>, list: usize, block: Block) {
        let at = self.node(block);
        let (previous, next) = match anchor.map(|anchor| self.node_of[anchor.index()]) {
            None => (NONE, self.front[list]),
            Some(previous) => (previous, self.nodes[previous as usize].next),
        };
        let node = &mut self.nodes[at as usize];
        (node.previous, node.next, node.list) = (previous, next, list as u16);
        match previous {
            NONE => self.front[list] = at,
            _ => self.nodes[previous as usize].next = at,
        }
        match next {
            NONE => self.back[list] = at,
            _ => self.nodes[next as usize].previous = at,
        }
        self.len[list] += 1;
    }

    /// A node for `block`, which is in no list.
    #[inline]
    fn node(&mut self, block: Block) -> u32 {
        debug_assert!(self.list_of(block).is_none(), "{block:?} is in a list already");
        let fresh = Node { previous: NONE, next: NONE, block, list: 0, tag: 0 };
        let at = match self.unused.pop() {
            Some(at) => {
                self.nodes[at as usize] = fresh;
                at
            }
            None => {
                self.nodes.push(fresh);
                self.nodes.len() as u32 - 1
            }
        };
        self.node_of[block.index()] = at;
        at
    }

    /// Removes `block` from its list, if it is in one, and returns that list.
    #[inline]
    pub fn remove(&mut self, block: Block) -> Option<usize> {
        let at = std::mem::replace(&mut self.node_of[block.index()], NONE);
        if at == NONE {
            return None;
        }
        self.unused.push(at);
        Some(self.unlink(at))
    }

    /// Makes `block` the newest of `list`; it may be in any list or none.
    #[inline]
    pub fn move_to_back(&mut self, list: usize, block: Block) {
        let at = self.node_of[block.index()];
        if at == NONE {
            self.push_back(list, block);
        } else if self.back[list] != at {
            self.unlink(at);
            self.link_back(list, at);
        }
    }

    /// Removes the oldest evictable block of `list`. Prefetches the block after it, the likely next victim, into the
    /// processor's cache.
    #[inline]
    pub fn take_victim(&mut self, list: usize, view: &View<'_>) -> Option<Block> {
        let victim = self.iter(list).find(|block| view.state(*block).is_evictable())?;
        self.remove(victim);
        if let Some(Node { block, next, .. }) = self.nodes.get(self.front[list] as usize) {
            prefetch_index(view.blocks, block.index());
            prefetch_index(&self.node_of, block.index());
            prefetch_index(&self.nodes, *next as usize);
        }
        Some(victim)
    }

    pub fn pop_front(&mut self, list: usize) -> Option<Block> {
        let block = self.front(list)?;
        self.remove(block);
        Some(block)
    }

    #[inline]
    fn link_back(&mut self, list: usize, at: u32) {
        #[cfg(test)]
        {
            self.steps += 1;
        }
        let back = self.back[list];
        let node = &mut self.nodes[at as usize];
        (node.previous, node.next, node.list) = (back, NONE, list as u16);
        match back {
            NONE => self.front[list] = at,
            _ => self.nodes[back as usize].next = at,
        }
        self.back[list] = at;
        self.len[list] += 1;
    }

    #[inline]
    fn unlink(&mut self, at: u32) -> usize {
        #[cfg(test)]
        {
            self.steps += 1;
        }
        let Node { previous, next, list, .. } = self.nodes[at as usize];
        let list = list as usize;
        match previous {
            NONE => self.front[list] = next,
            _ => self.nodes[previous as usize].next = next,
        }
        match next {
            NONE => self.back[list] = previous,
            _ => self.nodes[next as usize].previous = previous,
        }
        self.len[list] -= 1;
        list
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    proptest! {
        #[test]
        fn behaves_like_two_queues(steps in prop::collection::vec((0u8..6, 0u32..12, 0usize..2), 1..200)) {
            let mut fast = Lists::<2>::new();
            fast.grow(12);
            let mut naive = [VecDeque::new(), VecDeque::new()];
            for (what, number, list) in steps {
                let block = Block(number);
                let home = naive.iter().position(|queue| queue.contains(&block));
                prop_assert_eq!(fast.list_of(block), home);
                match what {
                    0 if home.is_none() => { fast.push_back(list, block); naive[list].push_back(block); }
                    1 => { fast.remove(block); naive.iter_mut().for_each(|queue| queue.retain(|other| *other != block)); }
                    2 => {
                        fast.move_to_back(list, block);
                        naive.iter_mut().for_each(|queue| queue.retain(|other| *other != block));
                        naive[list].push_back(block);
                    }
                    3 if home.is_none() => {
                        fast.insert_after(None, list, block);
                        naive[list].push_front(block);
                    }
                    4 if home.is_none() && !naive[list].is_empty() => {
                        let anchor = number as usize % naive[list].len();
                        fast.insert_after(Some(naive[list][anchor]), list, block);
                        naive[list].insert(anchor + 1, block);
                        prop_assert_eq!(*fast.tag(block), 0, "a tag does not outlive its stay");
                    }
                    _ => prop_assert_eq!(fast.pop_front(list), naive[list].pop_front()),
                }
                for (list, queue) in naive.iter().enumerate() {
                    prop_assert!(fast.iter(list).eq(queue.iter().copied()));
                    prop_assert!(fast.iter_back(list).eq(queue.iter().rev().copied()));
                    prop_assert_eq!((fast.front(list), fast.back(list)), (queue.front().copied(), queue.back().copied()));
                    prop_assert_eq!(fast.len(list), queue.len());
                    for (at, block) in queue.iter().enumerate() {
                        prop_assert_eq!(fast.after(*block), queue.get(at + 1).copied());
                        prop_assert_eq!(fast.before(*block), at.checked_sub(1).map(|at| queue[at]));
                        *fast.tag(*block) = block.0 as u16;
                        prop_assert_eq!(fast.find(*block), Some((list, block.0 as u16)));
                    }
                }
            }
        }
    }
}
