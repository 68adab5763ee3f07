//! Resident blocks ordered by their next disclosed reference.
//!
//! An ordered bitmap over positions (`IndexSet`) has a bit for each resident block with a known next reference, at that
//! position; the last bit is the furthest block. Blocks without a known next reference are in a recency list and count
//! as furthest, least recently used first. Cost: a few words per event. Memory: 4 bytes per reference for the next-use
//! index, computed once, and 16 per block.
//!
//! Several processes may serve the positions of one string, each its own, in any order. A position that is served
//! before a lower one is *early*: it no longer counts as a next use, and is remembered until the cursor, the lowest
//! position not served, has passed it. With one process no position is early.

use std::sync::Arc;

use hashbrown::HashSet;
use headstart_types::{Block, IndexSet, Position, NEVER};
use rustc_hash::FxBuildHasher;

use crate::lists::Lists;
use crate::{Hints, View};

/// The resident blocks of a level and what is disclosed about their next references.
#[derive(Debug)]
pub struct Residents {
    hints: Arc<Hints>,
    /// For each position: the next disclosed reference of the same block, or `NEVER`.
    next: Vec<Position>,
    /// For each block: its next visible disclosed reference at or after the cursor, or `NEVER`.
    next_use: Vec<Position>,
    /// Next uses of the resident blocks that have one.
    known: IndexSet,
    /// The maximum of `known`.
    last: Option<Position>,
    /// Resident blocks without a known next use, least recently used first.
    unknown: Lists<1>,
    /// First position not yet visible.
    horizon: Position,
    /// The lowest position not served.
    cursor: Position,
    /// Positions above the cursor that have been served.
    early: HashSet<Position, FxBuildHasher>,
}

impl Residents {
    /// Starts without resident blocks. Under `Disclosure::Window` nothing is visible before [`Self::disclose`].
    #[must_use]
    pub fn new(hints: Arc<Hints>, blocks: usize) -> Self {
        let references = hints.blocks.len();
        let mut next = vec![NEVER; references];
        let mut next_use = vec![NEVER; blocks];
        for at in (0..references).rev() {
            let block = hints.blocks[at].index();
            next[at] = next_use[block];
            if hints.is_disclosed(at as Position) {
                next_use[block] = at as Position;
            }
        }
        let horizon = match hints.disclosure {
            crate::Disclosure::Window(_) => {
                next_use.fill(NEVER);
                0
            }
            _ => references as Position,
        };
        let mut unknown = Lists::new();
        unknown.grow(blocks);
        let known = IndexSet::new(references);
        Self { hints, next, next_use, known, last: None, unknown, horizon, cursor: 0, early: HashSet::default() }
    }

    /// The lowest position not served.
    #[inline]
    #[must_use]
    pub fn cursor(&self) -> Position {
        self.cursor
    }

    /// Next visible disclosed use of `block`, resident or not; `NEVER` if there is none.
    #[inline]
    #[must_use]
    pub fn next_use(&self, block: Block) -> Position {
        self.next_use[block.index()]
    }

    /// The next disclosed reference of the block that is referenced at `position`, or `NEVER`.
    #[inline]
    #[must_use]
    pub fn next_after(&self, position: Position) -> Position {
        self.next[position as usize]
    }

    /// The hints.
    #[must_use]
    pub fn hints(&self) -> &Arc<Hints> {
        &self.hints
    }

    /// Whether `block` is resident.
    #[inline]
    #[must_use]
    pub fn contains(&self, block: Block) -> bool {
        match self.next_use[block.index()] {
            NEVER => self.unknown.list_of(block).is_some(),
            position => self.known.contains(position),
        }
    }

    /// Notes that a resident block has its next use at `position`.
    #[inline]
    fn know(&mut self, position: Position) {
        self.known.insert(position);
        self.last = self.last.max(Some(position));
    }

    /// Notes that no resident block has its next use at `position` any more.
    #[inline]
    fn forget(&mut self, position: Position) {
        self.known.remove(position);
        if self.last == Some(position) {
            self.last = self.known.previous(position);
        }
    }

    /// Called when `block` has become resident.
    #[inline]
    pub fn insert(&mut self, block: Block) {
        match self.next_use[block.index()] {
            NEVER => self.unknown.push_back(0, block),
            position => self.know(position),
        }
    }

    /// Called when the resident `block` has been evicted; returns its next use.
    #[inline]
    pub fn remove(&mut self, block: Block) -> Position {
        let position = self.next_use[block.index()];
        match position {
            NEVER => {
                self.unknown.remove(block);
            }
            _ => self.forget(position),
        }
        position
    }

    /// Called when the resident `block` has been referenced at `position`.
    #[inline]
    pub fn served(&mut self, position: Position, block: Block) {
        let at = self.next_use[block.index()];
        if at == NEVER {
            self.unknown.move_to_back(0, block);
        } else if at == position {
            self.forget(position);
            self.look_further(position, block);
            self.insert(block);
        }
        self.advance(position);
    }

    /// The block that a wrong hint names at `position`, where `block` was referenced instead. The caller must call
    /// [`Self::skipped`] for the hint before [`Self::served`] for `block`.
    #[inline]
    #[must_use]
    pub fn wrongly_expected(&self, position: Position, block: Block) -> Option<Block> {
        let hinted = *self.hints.blocks.get(position as usize)?;
        (hinted != block && self.next_use[hinted.index()] == position).then_some(hinted)
    }

    /// Called when `block`, resident or not, will not be referenced at `position`. Without another known use it counts
    /// as used now, so that a late reference finds it as long as there are blocks used earlier. Returns its new next
    /// use if that has changed.
    pub fn skipped(&mut self, position: Position, block: Block, resident: bool) -> Option<Position> {
        let expected = self.next_use[block.index()] == position;
        if expected {
            if resident {
                self.forget(position);
            }
            self.look_further(position, block);
            if resident {
                self.insert(block);
            }
        }
        self.advance(position);
        expected.then(|| self.next_use[block.index()])
    }

    /// Sets the next use of `block` to its next one after `position`.
    #[inline]
    fn look_further(&mut self, position: Position, block: Block) {
        let mut next = self.next[position as usize];
        while self.is_early(next) {
            next = self.next[next as usize];
        }
        self.next_use[block.index()] = if next < self.horizon { next } else { NEVER };
    }

    /// Notes that `position` has been served: advances the cursor, or remembers the position as early. `NEVER` is the
    /// position of processes without hints.
    #[inline]
    fn advance(&mut self, position: Position) {
        if position != self.cursor {
            // A skipped reference may still happen.
            if position > self.cursor && position != NEVER {
                self.early.insert(position);
            }
            return;
        }
        self.cursor += 1;
        while !self.early.is_empty() && self.early.remove(&self.cursor) {
            self.cursor += 1;
        }
    }

    #[inline]
    fn is_early(&self, position: Position) -> bool {
        !self.early.is_empty() && self.early.contains(&position)
    }

    /// Makes visible what may be known at the cursor. Calls `absent` for each block that is not resident and whose next
    /// use has just become known.
    #[inline]
    pub fn disclose(&mut self, mut absent: impl FnMut(Block, Position)) {
        let horizon = self.hints.horizon(self.cursor);
        while self.horizon < horizon {
            let position = self.horizon;
            self.horizon += 1;
            let block = self.hints.blocks[position as usize];
            if self.next_use[block.index()] != NEVER || position < self.cursor || self.is_early(position) {
                continue;
            }
            self.next_use[block.index()] = position;
            if self.unknown.remove(block).is_some() {
                self.know(position);
            } else {
                absent(block, position);
            }
        }
    }

    /// The next use of the furthest block, evictable or not: an upper bound for [`Self::furthest`].
    #[inline]
    #[must_use]
    pub fn furthest_use(&self) -> Position {
        if self.unknown.len(0) > 0 {
            return NEVER;
        }
        self.last.unwrap_or(0)
    }

    /// The evictable block whose next use is furthest away, and that use (`NEVER` if none is known).
    #[inline]
    #[must_use]
    pub fn furthest(&self, view: &View<'_>) -> Option<(Block, Position)> {
        if self.unknown.len(0) > 0 {
            if let Some(block) = self.unknown.iter(0).find(|block| view.state(*block).is_evictable()) {
                return Some((block, NEVER));
            }
        }
        self.furthest_known(view)
    }

    /// Among the evictable blocks with a known next use, the one whose use is furthest away, and that use.
    #[inline]
    #[must_use]
    pub fn furthest_known(&self, view: &View<'_>) -> Option<(Block, Position)> {
        let mut candidate = self.last;
        while let Some(position) = candidate {
            let block = self.hints.blocks[position as usize];
            if view.state(block).is_evictable() {
                return Some((block, position));
            }
            candidate = self.known.previous(position);
        }
        None
    }
}
