//! The reads that a disk has been given and has not begun, and which of them goes next.
//!
//! A disk with an arm takes them in the order of their addresses, from where it last was upward and then again from the start; one
//! without takes them in the order in which they are needed. Neighbours in a file are one read, also where they are not needed one after
//! another, and across holes that cost less to read than to leave out. Metadata goes first: the places of files are read from it.

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
    /// The keys of the same, by file and page.
    by_page: BTreeMap<(u32, u64), (u64, u32)>,
    head: (u64, u32),
}

impl Pieces {
    fn key(cut: Cut, placed: &Placed) -> (u64, u32) {
        (if cut.by_address { placed.address } else { u64::from(placed.block.0) }, placed.block.0)
    }

    /// Adds a page.
    pub fn add(&mut self, cut: Cut, placed: Placed) {
        let key = Self::key(cut, &placed);
        self.waiting.insert(key, placed);
        self.by_page.insert((placed.file, placed.page), key);
    }

    /// How many pages wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Takes a page out that is not to be read any more.
    pub fn cancel(&mut self, cut: Cut, placed: &Placed) -> bool {
        self.by_page.remove(&(placed.file, placed.page));
        self.waiting.remove(&Self::key(cut, placed)).is_some()
    }

    /// The next read. Holes of `holes_left` pages at most are read with it.
    pub fn next(&mut self, cut: Cut, holes_left: u64) -> Option<Piece> {
        let from = self.waiting.range((Bound::Included(self.head), Bound::Unbounded)).next();
        let (key, first) = from.or_else(|| self.waiting.iter().next())?;
        self.head = *key;
        let mut run = Run { first: *first, last: *first, pages: vec![*first], holes: 0 };
        let (file, page) = (first.file, first.page);
        for (_, key) in self.by_page.range((file, page + 1)..=(file, u64::MAX)) {
            if !run.extend(cut, holes_left, self.waiting[key]) {
                break;
            }
        }
        if cut.by_address {
            self.head = Self::key(cut, &run.last);
        } else {
            for (_, key) in self.by_page.range((file, 0)..(file, page)).rev() {
                if !run.extend(cut, holes_left, self.waiting[key]) {
                    break;
                }
            }
            run.pages.sort_unstable_by_key(|placed| placed.page);
        }
        for placed in &run.pages {
            self.cancel(cut, placed);
        }
        Some(Piece { pages: run.pages })
    }
}

/// A read while it grows.
struct Run {
    first: Placed,
    last: Placed,
    pages: Vec<Placed>,
    holes: u64,
}

impl Run {
    /// Takes in the next page of the file in either direction, if it can be of the same read.
    fn extend(&mut self, cut: Cut, holes_left: u64, next: Placed) -> bool {
        let (low, high) = if next.page > self.last.page { (self.last, next) } else { (next, self.first) };
        let hole = high.page - low.page - 1;
        let count = self.last.page.max(next.page) - self.first.page.min(next.page) + 1;
        // Where they are apart on the disk they are two reads whatever their pages are.
        let apart = high.address.wrapping_sub(low.address) != high.page - low.page;
        if apart || hole > cut.hole_max || self.holes + hole > holes_left || count > cut.pages_max {
            return false;
        }
        self.holes += hole;
        self.pages.push(next);
        *(if next.page > self.last.page { &mut self.last } else { &mut self.first }) = next;
        true
    }
}
