//! The reads that a disk has been given and has not started, and their order.
//!
//! A disk with an arm takes them in address order, from its last position upward and then again from the start; one
//! without takes them in the order of need. Neighbours in a file become one read, even if they are not needed in
//! sequence, and across holes that are cheaper to read than to leave out. Metadata goes first: the places of files are
//! read from it.

use std::collections::BTreeMap;
use std::ops::Bound;

use headstart_types::Block;

/// A page to be read, and its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Placed {
    /// The block.
    pub block: Block,
    /// Its file.
    pub file: u32,
    /// Its page number in the file.
    pub page: u64,
    /// Its page number on the device; equal to `page` if unknown.
    pub address: u64,
}

/// One read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// Its pages, ascending in one file, possibly with holes between them.
    pub pages: Vec<Placed>,
}

impl Piece {
    /// First page in the file.
    #[must_use]
    pub fn first(&self) -> u64 {
        self.pages[0].page
    }

    /// Number of pages, holes included.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.pages[self.pages.len() - 1].page - self.first() + 1
    }
}

/// How reads are cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// In address order: there is an arm.
    pub by_address: bool,
    /// Maximum pages of a hole.
    pub hole_max: u64,
    /// Maximum pages of a read.
    pub pages_max: u64,
}

/// Waiting reads, in order.
#[derive(Debug, Default)]
pub struct Pieces {
    /// By address or block; the block also separates two pages of one address.
    waiting: BTreeMap<(u64, u32), Placed>,
    /// The keys of the same pages, by file and page.
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

    /// The number of waiting pages.
    #[must_use]
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Removes a page that is not to be read any more.
    pub fn cancel(&mut self, cut: Cut, placed: &Placed) -> bool {
        self.by_page.remove(&(placed.file, placed.page));
        self.waiting.remove(&Self::key(cut, placed)).is_some()
    }

    /// The next read, including at most `holes_left` pages of holes.
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

/// A growing read.
struct Run {
    first: Placed,
    last: Placed,
    pages: Vec<Placed>,
    holes: u64,
}

impl Run {
    /// Adds the next page of the file in either direction, if it fits into the same read.
    fn extend(&mut self, cut: Cut, holes_left: u64, next: Placed) -> bool {
        let (low, high) = if next.page > self.last.page { (self.last, next) } else { (next, self.first) };
        let hole = high.page - low.page - 1;
        let count = self.last.page.max(next.page) - self.first.page.min(next.page) + 1;
        // Pages that are not adjacent on the disk need two reads, even if they are adjacent in the file.
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
