//! The reads that a disk has been given and has not begun, and which of them goes next.
//!
//! A disk with an arm takes them in the order of their addresses, from where it last was upward and then again from the start; one
//! without takes them in the order in which they are needed. Neighbours in a file are one read, across holes that cost less to
//! read than to leave out. Metadata goes first: the places of files are read from it.

use std::collections::BTreeMap;
use std::ops::Bound;

use headstart_types::Block;

/// A page to be read, and where it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Placed {
    /// The block.
    pub block: Block,
    /// Its file.
    pub file: u32,
    /// Which of the file's pages.
    pub page: u64,
    /// Its page of the device; the same as `page` where that is not known.
    pub address: u64,
}

/// One read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// Its pages, ascending in one file; between them may be holes.
    pub pages: Vec<Placed>,
}

impl Piece {
    /// First page of the file.
    #[must_use]
    pub fn first(&self) -> u64 {
        self.pages[0].page
    }

    /// Pages, holes included.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.pages[self.pages.len() - 1].page - self.first() + 1
    }
}

/// How reads are cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// In the order of addresses: there is an arm.
    pub by_address: bool,
    /// Pages of a hole at most.
    pub hole_max: u64,
    /// Pages of a read at most.
    pub pages_max: u64,
}

/// Reads in order.
#[derive(Debug, Default)]
pub struct Pieces {
    /// By address, or by block; and by block, so that two of one address are two.
    waiting: BTreeMap<(u64, u32), Placed>,
    head: (u64, u32),
}

impl Pieces {
    fn key(cut: Cut, placed: &Placed) -> (u64, u32) {
        (if cut.by_address { placed.address } else { u64::from(placed.block.0) }, placed.block.0)
    }

    /// Adds a page.
    pub fn add(&mut self, cut: Cut, placed: Placed) {
        self.waiting.insert(Self::key(cut, &placed), placed);
    }

    /// How many pages wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Takes a page out that is not to be read any more.
    pub fn cancel(&mut self, cut: Cut, placed: &Placed) -> bool {
        self.waiting.remove(&Self::key(cut, placed)).is_some()
    }

    /// The next read. Holes of `holes_left` pages at most are read with it.
    pub fn next(&mut self, cut: Cut, holes_left: u64) -> Option<Piece> {
        let from = self.waiting.range((Bound::Included(self.head), Bound::Unbounded)).next();
        let (_, first) = from.or_else(|| self.waiting.iter().next())?;
        let first = *first;
        let (mut pages, mut holes) = (vec![first], 0);
        let start = Self::key(cut, &first);
        for (_, next) in self.waiting.range((Bound::Excluded(start), Bound::Unbounded)) {
            let last = pages[pages.len() - 1];
            let follows = next.file == first.file && next.page > last.page;
            // Where they are apart on the disk they are two reads whatever their pages are.
            if !follows || next.address.wrapping_sub(first.address) != next.page - first.page {
                break;
            }
            let hole = next.page - last.page - 1;
            if hole > cut.hole_max || holes + hole > holes_left || next.page - first.page >= cut.pages_max {
                break;
            }
            holes += hole;
            pages.push(*next);
        }
        for page in &pages {
            self.waiting.remove(&Self::key(cut, page));
        }
        self.head = Self::key(cut, &pages[pages.len() - 1]);
        Some(Piece { pages })
    }
}
