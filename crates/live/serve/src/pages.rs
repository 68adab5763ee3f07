//! Numbers the pages of an export as the machine's blocks when they are first used, and forgets them when there are too
//! many.
//!
//! A block costs the machine some 60 bytes, cached or not. An export may have a hundred million pages, so the numbers
//! of pages that are neither cached nor waited for are reused. What a policy remembers of the old page (a ghost in ARC,
//! for example) then applies to the new one; therefore many more pages stay numbered than there are frames. Hinted pages
//! have the first numbers for good: a hinted policy knows them by these.

use std::cell::RefCell;

use headstart_hints::HintedSpace;
use headstart_policy::BlockMap;
use headstart_types::{Block, Disk};
use rustc_hash::FxHashMap;

/// Numbered pages per frame.
const NUMBERED_PER_FRAME: usize = 4;
/// Minimum in addition to that, so that small caches remember something, too.
const NUMBERED_MIN: usize = 1 << 14;

/// Adjacent pages that share a table entry: a stream then searches once per entry in a table larger than a processor's
/// cache. More of them would cost random reads more memory than the level's limit allows.
const RUN: u64 = 4;
const NONE: u32 = u32::MAX;

/// Maximum number of pages examined per call: if all are needed, examining more would not help.
const LOOKS_MAX: usize = 4096;

/// The pages of one export, which the machine sees as one file.
#[derive(Debug)]
pub struct Pages {
    count: u64,
    hinted: usize,
    numbered_max: usize,
    numbering: RefCell<Numbering>,
}

#[derive(Debug, Default)]
struct Numbering {
    /// Blocks of the pages of a run, or `NONE`, by number of the run; empty runs are left out.
    runs: FxHashMap<u64, [u32; RUN as usize]>,
    /// Pages that have a number.
    numbered: usize,
    /// Page of each block; for a free number, its last page.
    page_of: Vec<u64>,
    free: Vec<Block>,
    /// Where the search for pages to forget continues.
    hand: u32,
}

impl Pages {
    /// The pages of an export with a cache of `frames` and a spill file of `slots`, of which `hinted` are hinted, each
    /// named once.
    #[must_use]
    pub fn new(count: u64, frames: u32, slots: u32, hinted: &[u64]) -> Self {
        let numbered_max = (frames as usize).saturating_mul(NUMBERED_PER_FRAME).saturating_add(NUMBERED_MIN);
        let numbered_max = numbered_max.saturating_add(slots as usize).saturating_add(hinted.len());
        let mut numbering = Numbering { hand: hinted.len() as u32, ..Numbering::default() };
        for (at, page) in (0..).zip(hinted) {
            let block = numbering.number(*page);
            debug_assert_eq!(block, Block(at), "each page is named once");
        }
        Self { count, hinted: hinted.len(), numbered_max, numbering: RefCell::new(numbering) }
    }

    /// Limits the number of unneeded pages that stay numbered to `pages`, beside the hinted ones.
    pub fn number_at_most(&mut self, pages: usize) {
        self.numbered_max = pages.saturating_add(self.hinted);
    }

    /// The numbered pages of `first..end`, unordered.
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

    /// Numbers that stand for no page and will be reused.
    #[must_use]
    pub fn free(&self) -> Vec<Block> {
        self.numbering.borrow().free.clone()
    }

    /// Forgets pages for which `is_unneeded` holds, until few enough are numbered or enough were examined.
    pub fn forget(&self, is_unneeded: impl Fn(Block) -> bool) {
        let mut numbering = self.numbering.borrow_mut();
        let numbering = &mut *numbering;
        let mut looks = (numbering.page_of.len() - self.hinted).min(LOOKS_MAX);
        while numbering.numbered > self.numbered_max && looks > 0 {
            looks -= 1;
            let block = Block(numbering.hand);
            numbering.hand += 1;
            if numbering.hand as usize == numbering.page_of.len() {
                numbering.hand = self.hinted as u32;
            }
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

impl HintedSpace for Pages {
    fn hinted(&self) -> usize {
        self.hinted
    }

    fn file(&self, _identity: (u64, u64)) -> Option<u32> {
        Some(0)
    }

    fn last_page(&self, _file: u32) -> u64 {
        self.count.saturating_sub(1)
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
        let pages = Pages::new(1 << 40, 0, 0, &[]);
        let numbered = |page| pages.block(0, page).expect("there is such a page");
        let many = NUMBERED_MIN as u64 + 100;
        for page in 0..many {
            assert_eq!(numbered(page * 7), Block(page as u32));
        }
        // 3 is needed: the hand passes it and forgets the 100 surplus pages.
        pages.forget(|block| block != Block(3));
        assert_eq!(
            (pages.known(0, 14), pages.known(0, 21), pages.known(0, 101 * 7)),
            (None, Some(Block(3)), Some(Block(101)))
        );
        assert_eq!(pages.known_within(0, 22), [Block(3)]);
        let again = numbered(1);
        assert!(again.0 <= 100 && pages.place(again) == (0, 1), "{again:?}");
        assert_eq!((pages.blocks(), pages.block(0, 1 << 40)), (many as usize, None));
        // Nothing can be forgotten: it stops after examining each page once.
        pages.forget(|_| false);
        // Pages that can be forgotten are, until few enough are left.
        (0..90).for_each(|page| _ = numbered(1_000_000 + page));
        (0..10).for_each(|_| pages.forget(|block| block.0 >= 200));
        let known = pages.known_within(0, 1 << 40);
        assert_eq!((known.len(), pages.numbering.borrow().numbered), (NUMBERED_MIN, NUMBERED_MIN));
        assert!(known.iter().all(|block| pages.known(0, pages.place(*block).1) == Some(*block)));
        assert_eq!(pages.known_within(1_000_000, 1_000_100).len(), 90);
    }

    #[test]
    fn hinted_pages_have_the_first_numbers_for_good() {
        let pages = Pages::new(1 << 40, 0, 0, &[70, 7, 700]);
        let many = NUMBERED_MIN as u64 + 500;
        (1_000..1_000 + many).for_each(|page| _ = pages.block(0, page).expect("there is such a page"));
        (0..10).for_each(|_| pages.forget(|_| true));
        assert_eq!([70, 7, 700].map(|page| pages.hinted_block(0, page)), [0, 1, 2].map(|at| Some(Block(at))));
        assert_eq!(pages.numbering.borrow().numbered, NUMBERED_MIN + 3);
        let unhinted = pages.known_within(1_000, 1_000 + many);
        assert!(unhinted.iter().all(|block| pages.hinted_block(0, pages.place(*block).1).is_none()));
    }
}
