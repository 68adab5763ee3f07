//! The reads ordered from a disk and not started, and what it does next. It has no thread and no file: `disk.rs` has
//! real ones, a forecast (`crate::forecast`) simulated ones.
//!
//! Metadata is read first, and nothing else meanwhile: opening files needs it. Then files are placed; an arm's order is
//! known once all of them are. Then their pages are read, piece by piece.

use std::collections::BTreeMap;

use headstart_types::Block;
use rustc_hash::FxBuildHasher;

use super::pieces::{Cut, Piece, Pieces, Placed};

/// Maximum pages of a read: 1 MiB.
pub const PIECE_PAGES: u64 = 256;
/// With an arm: reading a hole of 128 KiB takes about 2 ms, less than half a turn.
const ARM_HOLE_PAGES: u64 = 32;
/// Without an arm: a hole of 16 KiB costs less than a request.
const FLASH_HOLE_PAGES: u64 = 4;
/// Maximum reads in flight. The command's own reads interrupt them, each at the cost of two seeks: an arm with only one
/// or two reads to choose from spends its time moving between both.
const ARM_DEPTH: usize = 8;
const FLASH_DEPTH: usize = 16;
/// From this many halvings on (`pace.rs`) nothing is started.
pub const HALVINGS_MAX: u32 = 4;
/// Without an arm: pages waiting to be read at which no further file is opened.
const PLACED_ENOUGH: usize = 256;

/// The number of reads that a disk serves at the same time.
#[must_use]
pub fn depth(arm: bool) -> usize {
    if arm {
        ARM_DEPTH
    } else {
        FLASH_DEPTH
    }
}

/// A piece of work.
#[derive(Debug)]
pub enum Work {
    /// Find the places of these pages of a file, and report them with [`Queue::place`].
    Place(u32, Vec<(Block, u64)>),
    /// Read a piece; `true`: of metadata. Report its end with [`Queue::read`].
    Read(Piece, bool),
}

/// The waiting reads of a disk.
#[derive(Debug)]
pub struct Queue {
    arm: bool,
    /// Work in flight, and how often its limit has been halved.
    active: usize,
    halvings: u32,
    metadata: Pieces,
    /// Reads of metadata in flight, and files that are being placed.
    metadata_active: usize,
    placing: usize,
    /// Blocks and pages of files whose places are not known yet.
    unplaced: BTreeMap<u32, Vec<(Block, u64)>>,
    data: Pieces,
    /// The places of waiting blocks.
    placed: hashbrown::HashMap<Block, Placed, FxBuildHasher>,
    holes_left: u64,
    /// Maximum reads in flight, and maximum pages of each.
    reads_max: usize,
    pages_max: u64,
}

impl Queue {
    /// For a disk with or without an arm.
    #[must_use]
    pub fn new(arm: bool) -> Self {
        Self {
            arm,
            active: 0,
            halvings: 0,
            metadata: Pieces::default(),
            metadata_active: 0,
            placing: 0,
            unplaced: BTreeMap::new(),
            data: Pieces::default(),
            placed: hashbrown::HashMap::default(),
            holes_left: 0,
            reads_max: usize::MAX,
            pages_max: PIECE_PAGES,
        }
    }

    fn cut(&self) -> Cut {
        let hole_max = if self.arm { ARM_HOLE_PAGES } else { FLASH_HOLE_PAGES };
        Cut { by_address: self.arm, hole_max, pages_max: self.pages_max.min(PIECE_PAGES >> self.halvings) }
    }

    /// Adds a page to be read; for metadata, `page` is its place.
    pub fn add(&mut self, block: Block, file: u32, page: u64, is_metadata: bool) {
        if is_metadata {
            let cut = Cut { by_address: true, ..self.cut() };
            self.metadata.add(cut, Placed { block, file, page, address: page });
        } else {
            self.unplaced.entry(file).or_default().push((block, page));
        }
    }

    /// Whether nothing is waiting.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.unplaced.is_empty() && self.data.len() == 0 && self.metadata.len() == 0
    }

    /// Whether nothing is in flight.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.active == 0
    }

    /// Withdraws `block`; false if its read has begun or it has no place yet.
    pub fn cancel(&mut self, block: Block) -> bool {
        let Some(placed) = self.placed.remove(&block) else { return false };
        let cut = self.cut();
        self.data.cancel(cut, &placed)
    }

    /// Allows `pages` more pages of holes.
    pub fn allow_holes(&mut self, pages: u64) {
        self.holes_left += pages;
    }

    /// Halves the limit of work in flight `halvings` times, and the size of pieces likewise; from [`HALVINGS_MAX`] on
    /// nothing is started. Returns whether something may start that could not before.
    pub fn slow(&mut self, halvings: u32) -> bool {
        let was_held = self.is_held();
        let is_more = std::mem::replace(&mut self.halvings, halvings) > halvings;
        was_held && is_more && !self.is_empty()
    }

    /// Limits the reads in flight, and the pages of each. Returns the same as [`slow`](Self::slow).
    pub fn limit(&mut self, reads: usize, pages: u64) -> bool {
        self.pages_max = pages;
        let was_held = !self.may_read();
        let is_more = std::mem::replace(&mut self.reads_max, reads) < reads;
        was_held && is_more && !self.is_empty()
    }

    /// Whether nothing may start until work in flight ends or a limit is raised.
    fn is_held(&self) -> bool {
        self.halvings >= HALVINGS_MAX || self.active >= depth(self.arm) >> self.halvings
    }

    fn may_read(&self) -> bool {
        self.active - self.placing < self.reads_max
    }

    /// A file has been placed: `address` says on which page of the device a page of it is stored. Returns the blocks
    /// that are not stored.
    pub fn place(&mut self, file: u32, blocks: Vec<(Block, u64)>, address: impl Fn(u64) -> Option<u64>) -> Vec<Block> {
        self.active -= 1;
        self.placing -= 1;
        let cut = self.cut();
        let mut others = Vec::new();
        for (block, page) in blocks {
            let Some(address) = address(page) else {
                others.push(block);
                continue;
            };
            let placed = Placed { block, file, page, address };
            self.data.add(cut, placed);
            self.placed.insert(block, placed);
        }
        others
    }

    /// A read has ended; `metadata`: whether it was one of metadata.
    pub fn read(&mut self, metadata: bool) {
        self.active -= 1;
        self.metadata_active -= usize::from(metadata);
    }

    /// The next piece of work; `None`: nothing until the state changes.
    pub fn choose(&mut self) -> Option<Work> {
        if self.is_held() {
            return None;
        }
        let work = self.work();
        self.active += usize::from(work.is_some());
        work
    }

    fn work(&mut self) -> Option<Work> {
        let cut = self.cut();
        let may_read = self.may_read();
        if self.metadata.len() > 0 && !may_read {
            return None;
        }
        if let Some(piece) = self.metadata.next(Cut { by_address: true, ..cut }, u64::MAX) {
            self.metadata_active += 1;
            return Some(Work::Read(piece, true));
        }
        if self.metadata_active > 0 {
            return None;
        }
        // An arm's order improves with the number of known places; half of its threads go on reading meanwhile.
        let places = if self.arm {
            self.data.len() == 0 || self.placing < ARM_DEPTH / 2
        } else {
            self.data.len() < PLACED_ENOUGH
        };
        if places {
            if let Some((file, blocks)) = self.unplaced.pop_first() {
                self.placing += 1;
                return Some(Work::Place(file, blocks));
            }
        }
        if !may_read {
            return None;
        }
        let piece = self.data.next(cut, self.holes_left)?;
        self.holes_left -= piece.count() - piece.pages.len() as u64;
        for page in &piece.pages {
            self.placed.remove(&page.block);
        }
        Some(Work::Read(piece, false))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_waits_for_the_metadata_under_way_and_no_longer() {
        let mut queue = Queue::new(true);
        queue.add(Block(0), 7, 100, true);
        queue.add(Block(1), 3, 5, false);
        assert!(matches!(queue.choose(), Some(Work::Read(_, true))));
        assert!(queue.choose().is_none(), "where the data lies is read in it");
        queue.read(true);
        assert!(matches!(queue.choose(), Some(Work::Place(3, _))));
        assert_eq!(queue.place(3, vec![(Block(1), 5), (Block(2), 6)], |page| (page == 5).then_some(205)), [Block(2)]);
        assert!(matches!(queue.choose(), Some(Work::Read(_, false))));
        queue.read(false);
        assert!(queue.is_idle() && queue.is_empty());
    }
}
