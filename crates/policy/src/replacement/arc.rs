//! ARC: two recency lists, one for blocks seen once, one for blocks seen again, and a target that learns.
//!
//! Source: N. Megiddo and D. S. Modha, "ARC: A Self-Tuning, Low Overhead Replacement Cache", FAST 2003, Figure 4.
//!
//! ```text
//! hit in T1 or T2:  move to the back of T2
//! miss, in B1:      target += max(1, |B2|/|B1|), replace, insert into T2
//! miss, in B2:      target -= max(1, |B1|/|B2|), replace, insert into T2
//! miss, elsewhere:  trim B1 or B2 so that |T1|+|B1| <= c and all <= 2c, replace, insert into T1
//! replace:          the front of T1 (to B1) if |T1| > target, or = target on a B2 hit; else of T2 (to B2)
//! ```
//!
//! What differs: the paper has no time. Here the victim leaves when the fetch is issued and the block enters
//! T1 or T2 when it arrives; the reference that missed is served then and is not a second one. The paper's
//! ratios are whole numbers here (integer division, as in the authors' released code). When the preferred
//! list has no evictable block (all pinned) the other one gives. A block that enters into a free frame is
//! looked up in the ghost lists too, though they are empty until the cache has been full once.
//! Cost: constant per event; 16 bytes a listed block, 4 a block of the universe.

use headstart_types::{Block, Outcome, Position};

use crate::lists::Lists;
use crate::{Replacement, View};

const T1: usize = 0;
const T2: usize = 1;
const B1: usize = 2;
const B2: usize = 3;

/// Adaptive replacement cache.
#[derive(Debug)]
pub struct Arc {
    lists: Lists<4>,
    frames: usize,
    /// The paper's p: how many frames T1 should have, 0 to `frames`.
    target: usize,
    /// Blocks in flight that were in a ghost list when their fetch was issued: they enter T2.
    returning: Vec<Block>,
}

impl Arc {
    /// A cache of `frames` frames that holds `initial`, oldest first, each seen once.
    #[must_use]
    pub fn new(frames: u32, initial: &[Block], blocks: usize) -> Self {
        let mut arc = Self { lists: Lists::new(), frames: frames as usize, target: 0, returning: Vec::new() };
        arc.grow(blocks);
        initial.iter().for_each(|block| arc.inserted(*block));
        arc
    }

    /// The front-most evictable block of `list`.
    fn oldest(&self, list: usize, view: &View<'_>) -> Option<Block> {
        self.lists.iter(list).find(|block| view.state(*block).is_evictable())
    }

    /// The paper's REPLACE: evicts into a ghost list.
    fn replace(&mut self, in_b2: bool, view: &View<'_>) -> Option<Block> {
        let t1 = self.lists.len(T1);
        let from_t1 = t1 > 0 && (t1 > self.target || (in_b2 && t1 == self.target));
        let order = if from_t1 { [(T1, B1), (T2, B2)] } else { [(T2, B2), (T1, B1)] };
        order.into_iter().find_map(|(list, ghost)| {
            let victim = self.oldest(list, view)?;
            self.lists.move_to_back(ghost, victim);
            Some(victim)
        })
    }

    /// Case IV of the paper: `incoming` is in no list.
    fn make_room_for_new(&mut self, view: &View<'_>) -> Option<Block> {
        let l1 = self.lists.len(T1) + self.lists.len(B1);
        let all = l1 + self.lists.len(T2) + self.lists.len(B2);
        if l1 >= self.frames {
            if self.lists.len(T1) < self.frames {
                self.lists.pop_front(B1);
            } else {
                let victim = self.oldest(T1, view)?;
                self.lists.remove(victim);
                return Some(victim);
            }
        } else if all >= 2 * self.frames {
            self.lists.pop_front(B2);
        }
        self.replace(false, view)
    }
}

impl Replacement for Arc {
    fn grow(&mut self, blocks: usize) {
        self.lists.grow(blocks);
    }

    fn warm(&self, blocks: &[Block]) {
        self.lists.warm(blocks);
    }

    fn victim(&mut self, incoming: Block, view: &View<'_>) -> Option<Block> {
        let (b1, b2) = (self.lists.len(B1), self.lists.len(B2));
        match self.lists.list_of(incoming) {
            Some(B1) => {
                self.target = (self.target + (b2 / b1).max(1)).min(self.frames);
                self.lists.remove(incoming);
                self.returning.push(incoming);
                self.replace(false, view)
            }
            Some(B2) => {
                self.target = self.target.saturating_sub((b1 / b2).max(1));
                self.lists.remove(incoming);
                self.returning.push(incoming);
                self.replace(true, view)
            }
            _ => self.make_room_for_new(view),
        }
    }

    fn inserted(&mut self, block: Block) {
        let ghost = self.lists.remove(block).is_some();
        let returning = self.returning.iter().position(|other| *other == block);
        if let Some(index) = returning {
            self.returning.swap_remove(index);
        }
        self.lists.push_back(if ghost || returning.is_some() { T2 } else { T1 }, block);
    }

    fn referenced(&mut self, _position: Position, block: Block, outcome: Outcome) {
        if outcome != Outcome::Miss {
            self.lists.move_to_back(T2, block);
        }
    }
}
