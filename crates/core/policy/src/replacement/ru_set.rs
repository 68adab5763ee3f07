//! RU-set: blocks that no process has used recently may be evicted.
//!
//! Source: D. Kotz and C. S. Ellis, "Prefetching in File Systems for MIMD Multiprocessors" (RAPID Transit), sections 3
//! and 5.4: each process has a list of the `size` blocks that it used last; blocks that are in no list may be replaced.
//! With a size of 1 a block is tossed as soon as all of its readers go on to another block.
//!
//! ```text
//! process waits for or reads a block:  to the back of its list; beyond `size`, the front one drops out
//! a block drops out of the last list that it is in:  to the back of the tossed
//! victim:  the front of the tossed
//! ```
//!
//! The list takes a block as soon as its process requests it, so that `size` frames per process and those for
//! prefetched blocks always suffice. A prefetched and unused block is in no list, and is spared nevertheless. The paper
//! does not say what happens with fewer frames; here the oldest unused block is evicted then, and as a last resort the
//! least recently used one. The order of the tossed blocks is open as well (theirs is a set): here the one tossed first
//! is evicted first. With one process and no read-ahead this is LRU.
//!
//! Cost: `size` per event. Memory: 16 bytes per resident block, 8 per block of the universe, 4 per list entry. Not for
//! programs that return to their blocks: only the length of a list keeps them.

use headstart_types::{keys, Block, KeyTable, Outcome, Position, TypedKeys};

use crate::lists::Lists;
use crate::row::{Context, ReplacementRow};
use crate::{Replacement, View};

/// Its row in the registry.
pub static ROW: ReplacementRow = ReplacementRow {
    name: "ru-set",
    summary: "evict blocks that are in no process's list of recently used blocks (for parallel programs)",
    source: "Kotz and Ellis, RAPID Transit, sections 3 and 5.4",
    hinted: false,
    keys: KeyTable::of::<RuSetKeys>(),
    build: &|keys, context| Ok(Box::new(make(keys, context))),
    join: &|keys, context, beside| Ok(beside.join(make(keys, context), context.frames)),
};

keys! {
    /// Keys of `ru-set`.
    pub struct RuSetKeys {
        /// Length of each process's list, in blocks.
        #[schemars(range(min = 1, max = 1024))]
        pub size: u32 = 1,
    }
}

fn make(keys: &TypedKeys, context: &Context) -> RuSet {
    let RuSetKeys { size } = *keys.get();
    RuSet::new(size as usize, &context.initial, context.disk_of.len())
}

/// Marks an empty entry of a list.
const NONE: Block = Block(u32::MAX);

const TOSSED: usize = 0;
const UNUSED: usize = 1;
const HELD: usize = 2;

/// The RU-set policy.
#[derive(Debug)]
pub struct RuSet {
    /// Length of a process's list, at least 1.
    size: usize,
    /// For each process `size` blocks: those that it used last, the latest at the end, [`NONE`] in empty entries. Some
    /// may have been evicted.
    recent: Vec<Block>,
    /// For each block: the number of lists that contain it.
    holders: Vec<u32>,
    /// Resident blocks that are in no list, never used, or in some list; each in the order in which they became so.
    residents: Lists<3>,
}

impl RuSet {
    /// A cache that holds `initial`, oldest first, all tossed.
    #[must_use]
    pub fn new(size: usize, initial: &[Block], blocks: usize) -> Self {
        let mut ru_set = Self { size, recent: Vec::new(), holders: Vec::new(), residents: Lists::new() };
        ru_set.grow(blocks);
        initial.iter().for_each(|block| ru_set.residents.push_back(TOSSED, *block));
        ru_set
    }

    /// Makes `block` the latest in the list of `process`.
    fn take(&mut self, process: u32, block: Block) {
        let (begin, end) = (process as usize * self.size, (process as usize + 1) * self.size);
        if end > self.recent.len() {
            self.recent.resize(end, NONE);
        }
        let list = &mut self.recent[begin..end];
        let listed = list.iter().position(|other| *other == block);
        let dropped = std::mem::replace(&mut list[listed.unwrap_or(0)], block);
        list[listed.unwrap_or(0)..].rotate_left(1);
        if listed.is_none() {
            self.holders[block.index()] += 1;
            if dropped != NONE {
                self.drop_out(dropped);
            }
        }
    }

    /// Handles a block that has dropped out of a list.
    fn drop_out(&mut self, block: Block) {
        self.holders[block.index()] -= 1;
        if self.holders[block.index()] == 0 && self.residents.list_of(block).is_some() {
            self.residents.move_to_back(TOSSED, block);
        }
    }
}

impl Replacement for RuSet {
    fn grow(&mut self, blocks: usize) {
        self.residents.grow(blocks);
        if blocks > self.holders.len() {
            self.holders.resize(blocks, 0);
        }
    }

    fn warm(&self, blocks: &[Block]) {
        self.residents.warm(blocks);
    }

    fn victim(&mut self, _incoming: Block, view: &View<'_>) -> Option<Block> {
        let oldest = |list| self.residents.iter(list).find(|block| view.state(*block).is_evictable());
        let victim = [TOSSED, UNUSED, HELD].into_iter().find_map(oldest)?;
        self.residents.remove(victim);
        Some(victim)
    }

    fn inserted(&mut self, block: Block) {
        let list = if self.holders[block.index()] > 0 { HELD } else { UNUSED };
        self.residents.push_back(list, block);
    }

    fn referenced(&mut self, position: Position, block: Block, outcome: Outcome) {
        self.referenced_by(0, position, block, outcome);
    }

    fn referenced_by(&mut self, process: u32, _position: Position, block: Block, _outcome: Outcome) {
        self.take(process, block);
        self.residents.move_to_back(HELD, block);
    }

    fn awaited_by(&mut self, process: u32, block: Block) {
        self.take(process, block);
    }

    fn removed(&mut self, block: Block) {
        self.residents.remove(block);
        // Rare, and even rarer while a process has just used the block: a search through all lists is affordable.
        if std::mem::take(&mut self.holders[block.index()]) > 0 {
            for list in self.recent.chunks_mut(self.size) {
                if let Some(at) = list.iter().position(|other| *other == block) {
                    list[at] = NONE;
                    list[..=at].rotate_right(1);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replacement::by_hand::outcomes;
    use crate::{BlockState, NoSpace};
    use proptest::prelude::*;

    #[test]
    fn one_process_makes_it_lru() {
        // 3 frames: a b c, then d in place of a; b hits; e in place of c.
        assert_eq!(outcomes(RuSet::new(1, &[], 26), 3, "abcdbecb"), "MMMMHMMH");
        assert_eq!(outcomes(RuSet::new(2, &[], 26), 3, "abcdbecb"), "MMMMHMMH");
    }

    #[test]
    fn what_has_been_prefetched_is_spared() {
        // c comes ahead into the third frame; d takes the place of a, e that of b. c is still there.
        assert_eq!(outcomes(RuSet::new(1, &[], 26), 3, "ab +c d e c"), "MMMMH");
        // Nothing but unused blocks and the list's: +d takes the place of b, which is unused.
        assert_eq!(outcomes(RuSet::new(1, &[], 26), 2, "a +b +d a d b"), "MHHM");
    }

    /// A view in which all blocks of `resident` may be evicted.
    fn states(resident: &[u32]) -> [BlockState; 8] {
        let mut states = [BlockState::ABSENT; 8];
        resident.iter().for_each(|block| states[*block as usize] = BlockState::resident());
        states
    }

    fn victim(ru_set: &mut RuSet, states: &[BlockState]) -> Option<u32> {
        let space = &NoSpace;
        let view =
            View { cursor: 0, free: 0, blocks: states, outstanding: &[], disk_of: &[], space, asked: &[], found: &[] };
        ru_set.victim(Block(7), &view).map(|block| block.0)
    }

    #[test]
    fn a_block_stays_until_the_last_of_its_readers_goes_on() {
        let mut ru_set = RuSet::new(1, &[], 8);
        let read =
            |ru_set: &mut RuSet, process, block| ru_set.referenced_by(process, 0, Block(block), Outcome::HitReady);
        (0..3).for_each(|block| ru_set.inserted(Block(block)));
        // Processes 1 and 2 read block 0, then 1 reads block 1: 2 still has block 0.
        read(&mut ru_set, 1, 0);
        read(&mut ru_set, 2, 0);
        read(&mut ru_set, 1, 1);
        // Block 2 has not been used, and is evicted before the two that have just been used.
        assert_eq!(victim(&mut ru_set, &states(&[0, 1, 2])), Some(2));
        // 2 waits for block 3, which is absent: block 0 may go before it has come.
        ru_set.awaited_by(2, Block(3));
        assert_eq!(victim(&mut ru_set, &states(&[0, 1])), Some(0));
        // It comes, and is in the list of 2 already. So block 1 goes, used less recently; then block 3.
        ru_set.inserted(Block(3));
        assert_eq!(victim(&mut ru_set, &states(&[1, 3])), Some(1));
        assert_eq!(victim(&mut ru_set, &states(&[3])), Some(3));
        assert_eq!(victim(&mut ru_set, &states(&[])), None);
    }

    /// The same from the definition: each process's list, and for each block when it entered its present state.
    #[derive(Default)]
    struct Naive {
        lists: Vec<Vec<u32>>,
        resident: Vec<(u32, bool, usize)>,
        now: usize,
    }

    impl Naive {
        fn held(&self, block: u32) -> bool {
            self.lists.iter().any(|list| list.contains(&block))
        }

        fn touch(&mut self, block: u32, used: bool) {
            self.now += 1;
            for each in self.resident.iter_mut().filter(|(other, ..)| *other == block) {
                (each.1, each.2) = (each.1 || used, self.now);
            }
        }

        fn take(&mut self, size: usize, process: usize, block: u32) {
            self.lists[process].retain(|other| *other != block);
            self.lists[process].push(block);
            if self.lists[process].len() > size {
                let dropped = self.lists[process].remove(0);
                if !self.held(dropped) {
                    self.touch(dropped, true);
                }
            }
        }

        fn victim(&mut self, may: impl Fn(u32) -> bool) -> Option<u32> {
            let rank = |(block, used, since): &(u32, bool, usize)| match (self.held(*block), used) {
                (false, true) => (0, *since),
                (false, false) => (1, *since),
                (true, _) => (2, *since),
            };
            let victim = self.resident.iter().filter(|(block, ..)| may(*block)).min_by_key(|each| rank(each))?.0;
            self.resident.retain(|(block, ..)| *block != victim);
            Some(victim)
        }
    }

    proptest! {
        #[test]
        fn equals_the_definition(
            size in 1usize..4, steps in prop::collection::vec((0u8..6, 0usize..4, 0u32..7), 1..300),
        ) {
            let mut ru_set = RuSet::new(size, &[], 8);
            let mut naive = Naive { lists: vec![vec![]; 4], ..Naive::default() };
            let mut states = [BlockState::ABSENT; 8];
            for (what, process, block) in steps {
                let state = states[block as usize];
                match what {
                    0 if state.is_absent() => {
                        naive.take(size, process, block);
                        ru_set.awaited_by(process as u32, Block(block));
                    }
                    0 | 1 if state.is_absent() => {
                        states[block as usize] = BlockState::resident();
                        naive.now += 1;
                        naive.resident.push((block, false, naive.now));
                        ru_set.inserted(Block(block));
                    }
                    2 if !state.is_absent() => states[block as usize] = state.pinned(!state.is_pinned()),
                    3 => {
                        let expected = naive.victim(|block| states[block as usize].is_evictable());
                        prop_assert_eq!(victim(&mut ru_set, &states), expected);
                        expected.into_iter().for_each(|block| states[block as usize] = BlockState::ABSENT);
                    }
                    4 if state.is_evictable() => {
                        naive.resident.retain(|(other, ..)| *other != block);
                        naive.lists.iter_mut().for_each(|list| list.retain(|other| *other != block));
                        ru_set.removed(Block(block));
                        states[block as usize] = BlockState::ABSENT;
                    }
                    _ if !state.is_absent() => {
                        naive.take(size, process, block);
                        naive.touch(block, true);
                        ru_set.referenced_by(process as u32, 0, Block(block), Outcome::HitReady);
                    }
                    _ => {}
                }
            }
        }
    }
}
