//! Doubly linked lists of blocks in flat arrays: the building stone of recency and ghost lists.
//!
//! Each block is in at most one of `LISTS` lists. Every operation is constant time; 12 bytes a block.

use headstart_types::Block;

const NONE: u32 = u32::MAX;

#[derive(Debug, Clone, Copy)]
struct Node {
    previous: u32,
    next: u32,
    /// The list that the block is in; `NONE` if none.
    list: u32,
}

const LOOSE: Node = Node { previous: NONE, next: NONE, list: NONE };

/// `LISTS` lists over the same blocks, each from its front (oldest) to its back (newest).
#[derive(Debug, Clone)]
pub(crate) struct Lists<const LISTS: usize> {
    nodes: Vec<Node>,
    front: [u32; LISTS],
    back: [u32; LISTS],
    len: [usize; LISTS],
}

impl<const LISTS: usize> Lists<LISTS> {
    pub fn new() -> Self {
        Self { nodes: Vec::new(), front: [NONE; LISTS], back: [NONE; LISTS], len: [0; LISTS] }
    }

    /// Makes room for block numbers below `blocks`.
    pub fn grow(&mut self, blocks: usize) {
        if blocks > self.nodes.len() {
            self.nodes.resize(blocks, LOOSE);
        }
    }

    pub fn len(&self, list: usize) -> usize {
        self.len[list]
    }

    /// The list that `block` is in.
    #[inline]
    pub fn list_of(&self, block: Block) -> Option<usize> {
        let list = self.nodes[block.index()].list;
        (list != NONE).then_some(list as usize)
    }

    #[inline]
    pub fn front(&self, list: usize) -> Option<Block> {
        (self.front[list] != NONE).then_some(Block(self.front[list]))
    }

    /// From the front to the back.
    pub fn iter(&self, list: usize) -> impl Iterator<Item = Block> + '_ {
        let mut at = self.front[list];
        std::iter::from_fn(move || {
            let block = (at != NONE).then_some(Block(at))?;
            at = self.nodes[block.index()].next;
            Some(block)
        })
    }

    /// Appends `block`, which is in no list.
    #[inline]
    pub fn push_back(&mut self, list: usize, block: Block) {
        debug_assert!(self.list_of(block).is_none(), "{block:?} is in a list already");
        let back = self.back[list];
        self.nodes[block.index()] = Node { previous: back, next: NONE, list: list as u32 };
        match back {
            NONE => self.front[list] = block.0,
            _ => self.nodes[back as usize].next = block.0,
        }
        self.back[list] = block.0;
        self.len[list] += 1;
    }

    /// Takes `block` out of the list that it is in, if any; says which.
    #[inline]
    pub fn remove(&mut self, block: Block) -> Option<usize> {
        let list = self.list_of(block)?;
        let Node { previous, next, .. } = std::mem::replace(&mut self.nodes[block.index()], LOOSE);
        match previous {
            NONE => self.front[list] = next,
            _ => self.nodes[previous as usize].next = next,
        }
        match next {
            NONE => self.back[list] = previous,
            _ => self.nodes[next as usize].previous = previous,
        }
        self.len[list] -= 1;
        Some(list)
    }

    /// Makes `block` the newest of `list`, wherever it was.
    #[inline]
    pub fn move_to_back(&mut self, list: usize, block: Block) {
        if self.back[list] != block.0 {
            self.remove(block);
            self.push_back(list, block);
        }
    }

    pub fn pop_front(&mut self, list: usize) -> Option<Block> {
        let block = self.front(list)?;
        self.remove(block);
        Some(block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    proptest! {
        #[test]
        fn behaves_like_two_queues(steps in prop::collection::vec((0u8..4, 0u32..12, 0usize..2), 1..200)) {
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
                    _ => prop_assert_eq!(fast.pop_front(list), naive[list].pop_front()),
                }
                for (list, queue) in naive.iter().enumerate() {
                    prop_assert!(fast.iter(list).eq(queue.iter().copied()));
                    prop_assert_eq!(fast.len(list), queue.len());
                }
            }
        }
    }
}
