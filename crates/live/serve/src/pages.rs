//! The pages of an export as the machine's blocks: numbered when they are first named, and forgotten when there are too many.
//!
//! A block costs the machine some 60 bytes, whether it is cached or not. An export may have a hundred million of them, so that
//! numbers are given again: of pages that are not cached and that nothing waits for. What a policy remembers of the page
//! before (a ghost in ARC, say) then counts for the new one, which is why many more pages stay numbered than have frames.

use std::cell::RefCell;

use headstart_policy::BlockMap;
use headstart_types::{Block, Disk};
use rustc_hash::FxHashMap;

/// Pages that stay numbered, for each frame.
const NUMBERED_PER_FRAME: usize = 4;
/// And this many beside them, so that small caches remember something too.
const NUMBERED_MIN: usize = 1 << 14;

/// Pages that follow one another and are found together: a stream then looks for each of them once in a table that is larger than a processor's
/// cache. More of them would cost random reads more memory than the level's bound has room for.
const RUN: u64 = 4;
const NONE: u32 = u32::MAX;

/// Pages that are looked at in one go: where all are needed, none could be forgotten however many are looked at.
const LOOKS_MAX: usize = 4096;

/// The pages of one export, which is one file of the machine.
#[derive(Debug)]
pub struct Pages {
    count: u64,
    numbered_max: usize,
    numbering: RefCell<Numbering>,
}

#[derive(Debug, Default)]
struct Numbering {
    /// By the number of a run: the blocks of its pages, or `NONE`; runs without any are left out.
    runs: FxHashMap<u64, [u32; RUN as usize]>,
    /// Pages that have a number.
    numbered: usize,
    /// By block; of free numbers, the last page that they stood for.
    page_of: Vec<u64>,
    free: Vec<Block>,
    /// Where the search for pages to forget goes on.
    hand: u32,
}

impl Pages {
    /// `count` pages before `frames` frames.
    #[must_use]
    pub fn new(count: u64, frames: u32) -> Self {
        let numbered_max = (frames as usize).saturating_mul(NUMBERED_PER_FRAME).saturating_add(NUMBERED_MIN);
        Self { count, numbered_max, numbering: RefCell::default() }
    }

    /// From now on at most `pages` stay numbered, beside those that are needed.
    pub fn number_at_most(&mut self, pages: usize) {
        self.numbered_max = pages;
    }

    /// The numbered pages of `first..end`, in no order.
    #[must_use]
    pub fn known_within(&self, first: u64, end: u64) -> Vec<Block> {
        let numbering = self.numbering.borrow();
        if end - first < numbering.numbered as u64 {
            return (first..end).filter_map(|page| numbering.known(page)).collect();
        }
        let pages = numbering.runs.iter().flat_map(|(run, blocks)| (run * RUN..).zip(blocks));
        let within = pages.filter(|(page, block)| **block != NONE && (first..end).contains(page));
        within.map(|(_, block)| Block(*block)).collect()
    }

    /// The numbers that stand for no page and are given again.
    #[must_use]
    pub fn free(&self) -> Vec<Block> {
        self.numbering.borrow().free.clone()
    }

    /// Forgets pages for which `is_unneeded` holds, until few enough are numbered or many have been looked at.
    pub fn forget(&self, is_unneeded: impl Fn(Block) -> bool) {
        let mut numbering = self.numbering.borrow_mut();
        let numbering = &mut *numbering;
        let mut looks = numbering.page_of.len().min(LOOKS_MAX);
        while numbering.numbered > self.numbered_max && looks > 0 {
            looks -= 1;
            let block = Block(numbering.hand);
            numbering.hand = (numbering.hand + 1) % numbering.page_of.len() as u32;
            let page = numbering.page_of[block.index()];
            if numbering.known(page) == Some(block) && is_unneeded(block) {
                numbering.forget(page);
                numbering.free.push(block);
            }
        }
    }
}

impl Numbering {
    fn known(&self, page: u64) -> Option<Block> {
        let block = self.runs.get(&(page / RUN))?[(page % RUN) as usize];
        (block != NONE).then_some(Block(block))
    }

    fn number(&mut self, page: u64) -> Block {
        let block = &mut self.runs.entry(page / RUN).or_insert([NONE; RUN as usize])[(page % RUN) as usize];
        if *block == NONE {
            self.numbered += 1;
            *block = match self.free.pop() {
                Some(free) => {
                    self.page_of[free.index()] = page;
                    free.0
                }
                None => {
                    self.page_of.push(page);
                    self.page_of.len() as u32 - 1
                }
            };
        }
        Block(*block)
    }

    fn forget(&mut self, page: u64) {
        let Some(blocks) = self.runs.get_mut(&(page / RUN)) else { return };
        blocks[(page % RUN) as usize] = NONE;
        self.numbered -= 1;
        if *blocks == [NONE; RUN as usize] {
            self.runs.remove(&(page / RUN));
        }
    }
}

impl BlockMap for Pages {
    fn block(&self, _file: u32, index: u64) -> Option<Block> {
        (index < self.count).then(|| self.numbering.borrow_mut().number(index))
    }

    fn known(&self, _file: u32, index: u64) -> Option<Block> {
        self.numbering.borrow().known(index)
    }

    fn place(&self, block: Block) -> (u32, u64) {
        (0, self.numbering.borrow().page_of[block.index()])
    }

    fn file_blocks(&self, _file: u32) -> Option<u64> {
        Some(self.count)
    }

    fn disk(&self, _block: Block) -> Disk {
        Disk(0)
    }

    fn blocks(&self) -> usize {
        self.numbering.borrow().page_of.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_forgotten_pages_are_given_again() {
        let pages = Pages::new(1 << 40, 0);
        let numbered = |page| pages.block(0, page).expect("there is such a page");
        let many = NUMBERED_MIN as u64 + 100;
        for page in 0..many {
            assert_eq!(numbered(page * 7), Block(page as u32));
        }
        // 3 is needed; the hand passes it and forgets the 100 that are too many.
        pages.forget(|block| block != Block(3));
        assert_eq!(
            (pages.known(0, 14), pages.known(0, 21), pages.known(0, 101 * 7)),
            (None, Some(Block(3)), Some(Block(101)))
        );
        assert_eq!(pages.known_within(0, 22), [Block(3)]);
        let again = numbered(1);
        assert!(again.0 <= 100 && pages.place(again) == (0, 1), "{again:?}");
        assert_eq!((pages.blocks(), pages.block(0, 1 << 40)), (many as usize, None));
        // Nothing can be forgotten: it gives up after one look at each.
        pages.forget(|_| false);
        // What can be forgotten is, until few enough are left.
        (0..90).for_each(|page| _ = numbered(1_000_000 + page));
        (0..10).for_each(|_| pages.forget(|block| block.0 >= 200));
        let known = pages.known_within(0, 1 << 40);
        assert_eq!((known.len(), pages.numbering.borrow().numbered), (NUMBERED_MIN, NUMBERED_MIN));
        assert!(known.iter().all(|block| pages.known(0, pages.place(*block).1) == Some(*block)));
        assert_eq!(pages.known_within(1_000_000, 1_000_100).len(), 90);
    }
}
