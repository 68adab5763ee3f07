//! Large folios in `linux`: where a window ends, which folios it consists of, and which blocks carry its mark.
//!
//! Source: Linux 6.18 (the same in 6.17), mm/readahead.c: page_cache_async_ra and page_cache_ra_order. A file system
//! whose page cache has folios of several pages (XFS, since 6.16 also ext4) gets larger ones the longer a stream is: a
//! window at an absent block has single pages, each window at a mark has folios two orders larger than the last. Since
//! 6.17 such a window ends at a multiple of its folio size, which shortens it. A mark is on a folio: every page of it
//! is marked, and reading continues from its first page.

use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

use super::recent::Recent;

/// Largest order of a folio: 2 MiB with pages of 4 KiB, as in ext4 and XFS (MAX_PAGECACHE_ORDER on x86-64).
const ORDER_MAX: u32 = 9;

/// The folio order that a window at a mark requests, where `order` is that of the previous window, and the length to
/// which `size` blocks from `start` are cut. `max` is the maximum window.
pub fn aligned(order: u32, start: u64, size: u64, max: u64) -> (u32, u64) {
    let order = order + 2;
    let align = 1u64 << order.min(max.max(1).trailing_zeros());
    let end = start.saturating_add(size);
    let aligned_end = end - end % align;
    let size = if aligned_end > start { aligned_end - start } else { size };
    (order.min(ORDER_MAX).min(size.max(1).ilog2()), size)
}

/// The order of the folio at `start` in a window that ends at `end` and prefers folios of order `order`. The folio must
/// fit, and its size must divide `start`.
pub fn fitting(order: u32, start: u64, end: u64) -> u32 {
    let order = order.min(start.trailing_zeros());
    (0..=order).rev().find(|order| 1 << order <= end.saturating_sub(start)).unwrap_or(0)
}

/// The possible first blocks of a folio that contains `index`: the block itself, then those of ever larger folios.
fn firsts(index: u64) -> impl Iterator<Item = u64> {
    let larger = move |order: u32| ((index >> order) & 1 > 0).then_some((index >> order >> 1) << 1 << order);
    std::iter::once(index).chain((0..ORDER_MAX).filter_map(larger))
}

/// Pages of a leaf of the kernel's page cache; see [`holes`](super::holes).
pub const LEAF_BLOCKS: u64 = 64;
/// The order of a leaf.
pub const LEAF_ORDER: u32 = LEAF_BLOCKS.trailing_zeros();

/// Orders of large folios, by file and block.
#[derive(Debug)]
pub struct Folios {
    /// By file and number of the leaf, its folios: a bit for each place in the tree of halves, of which 1 is the whole.
    leaves: Recent<(u32, u64), u64>,
    /// Orders of folios that are larger than a leaf, by file and first block.
    larger: Recent<(u32, u64), u32>,
}

/// The bit of the folio of 2^`order` blocks that contains `index`, in the word of its leaf.
fn bit(index: u64, order: u32) -> u64 {
    1 << ((LEAF_BLOCKS + index % LEAF_BLOCKS) >> order)
}

/// The bits of all folios of a leaf that begin at `index`.
fn beginning(index: u64) -> u64 {
    (1..=LEAF_ORDER.min(index.trailing_zeros())).map(|order| bit(index, order)).sum()
}

impl Folios {
    /// For at most `blocks` cached blocks; the folios set longest ago are forgotten.
    pub fn new(blocks: usize) -> Self {
        Self { leaves: Recent::new(blocks / 2), larger: Recent::new(blocks.div_ceil(2 * LEAF_BLOCKS as usize)) }
    }

    /// Records that the 2^`order` blocks of `file` from `first` on are one folio; `order` is at least 1.
    pub fn set(&mut self, file: u32, first: u64, order: u32) {
        self.evicted(file, first);
        if order > LEAF_ORDER {
            *self.larger.get_or_default((file, first)) = order;
        } else {
            *self.leaves.get_or_default((file, first / LEAF_BLOCKS)) |= bit(first, order);
        }
    }

    /// The first block and the order of the folio that contains `index`; the block itself and 0 if it is in no large
    /// folio.
    pub fn of(&self, file: u32, index: u64) -> (u64, u32) {
        let leaf = self.leaves.peek((file, index / LEAF_BLOCKS)).copied().unwrap_or(0);
        let is_larger = |order: &u32| self.larger.peek((file, index >> order << order)) == Some(order);
        let found = (1..=LEAF_ORDER).find(|order| leaf & bit(index, *order) > 0);
        let found = found.or_else(|| (LEAF_ORDER + 1..=ORDER_MAX).find(is_larger));
        found.map_or((index, 0), |order| (index >> order << order, order))
    }

    /// Called when the block has left the cache. A folio leaves as a whole, with its first block.
    #[inline]
    pub fn evicted(&mut self, file: u32, index: u64) {
        if !index.is_multiple_of(2) {
            return;
        }
        let key = (file, index / LEAF_BLOCKS);
        if let Some(leaf) = self.leaves.peek_mut(key) {
            *leaf &= !beginning(index);
            if *leaf == 0 {
                self.leaves.remove(key);
            }
        }
        if index.is_multiple_of(2 * LEAF_BLOCKS) {
            self.larger.remove((file, index));
        }
    }

    /// Number of places remembered.
    pub fn len(&self) -> usize {
        self.leaves.len() + self.larger.len()
    }
}

/// A marked folio.
#[derive(Debug, Clone, Copy, Default)]
pub struct Folio {
    /// Its first block of the file.
    pub first: u64,
    /// Number of its pages.
    pub pages: u64,
}

/// The marks of some consecutive blocks of a file.
#[derive(Debug, Default)]
struct Leaf {
    /// By block: whether it is marked. It may not be any more if a mark was removed and another is left.
    blocks: u64,
    /// Number of marked folios.
    marks: u32,
}

/// Marked folios, found through any of their blocks.
#[derive(Debug)]
pub struct Marks {
    /// Number of pages, by file and first block.
    marks: Recent<(u32, u64), u64>,
    /// By file and number of the leaf; each has a mark.
    leaves: HashMap<(u32, u64), Leaf, FxBuildHasher>,
}

impl Marks {
    /// For at most `folios` folios; the marks set longest ago are dropped.
    pub fn new(folios: usize) -> Self {
        Self { marks: Recent::new(folios), leaves: HashMap::with_hasher(FxBuildHasher) }
    }

    /// Marks a folio of `file`.
    pub fn set(&mut self, file: u32, folio: Folio) {
        self.remove(file, folio.first);
        if self.marks.is_full() {
            if let Some(((file, first), pages)) = self.marks.pop_oldest() {
                self.forgotten(file, Folio { first, pages });
            }
        }
        *self.marks.get_or_default((file, folio.first)) = folio.pages;
        let within = u64::MAX >> (LEAF_BLOCKS - folio.pages.min(LEAF_BLOCKS)) << (folio.first % LEAF_BLOCKS);
        for number in leaves(folio) {
            let leaf = self.leaves.entry((file, number)).or_default();
            leaf.blocks |= within;
            leaf.marks += 1;
        }
    }

    /// The first block from `index` on that may be marked, or a block before it from which on to look again.
    #[inline]
    pub fn next(&self, file: u32, index: u64) -> u64 {
        match self.leaves.get(&(file, index / LEAF_BLOCKS)).map_or(0, |leaf| leaf.blocks >> (index % LEAF_BLOCKS)) {
            0 => (index | (LEAF_BLOCKS - 1)).saturating_add(1),
            blocks => index + u64::from(blocks.trailing_zeros()),
        }
    }

    /// Removes and returns the mark of the folio that contains the block, if it has one.
    pub fn take(&mut self, file: u32, index: u64) -> Option<Folio> {
        let folio = self.find(file, index)?;
        self.remove(file, folio.first);
        Some(folio)
    }

    fn find(&self, file: u32, index: u64) -> Option<Folio> {
        if self.next(file, index) != index {
            return None;
        }
        let folio = |first| self.marks.peek((file, first)).map(|pages| Folio { first, pages: *pages });
        firsts(index).filter_map(folio).find(|folio| index - folio.first < folio.pages)
    }

    /// Whether the block carries a mark.
    pub fn has(&self, file: u32, index: u64) -> bool {
        self.find(file, index).is_some()
    }

    /// Called when the block has left the cache. A folio leaves as a whole, with its first block.
    #[inline]
    pub fn evicted(&mut self, file: u32, index: u64) {
        if self.next(file, index) == index {
            self.remove(file, index);
        }
    }

    fn remove(&mut self, file: u32, first: u64) {
        if let Some(pages) = self.marks.remove((file, first)) {
            self.forgotten(file, Folio { first, pages });
        }
    }

    fn forgotten(&mut self, file: u32, folio: Folio) {
        for number in leaves(folio) {
            if let Some(leaf) = self.leaves.get_mut(&(file, number)) {
                leaf.marks -= 1;
                if leaf.marks == 0 {
                    self.leaves.remove(&(file, number));
                }
            }
        }
    }

    /// Number of marked folios.
    pub fn len(&self) -> usize {
        self.marks.len()
    }
}

/// The numbers of the leaves that a folio covers, or the one that it is in; it begins at a multiple of its size.
fn leaves(folio: Folio) -> impl Iterator<Item = u64> {
    let first = folio.first / LEAF_BLOCKS;
    first..first + folio.pages.div_ceil(LEAF_BLOCKS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_end_at_multiples_of_their_folios() {
        // max 32: two orders more than 0 are folios of 4: 17 + 16 = 33, cut to 32.
        assert_eq!(aligned(0, 17, 16, 32), (2, 15));
        // Order 4, folios of 16: 32 + 33 = 65, cut to 64.
        assert_eq!(aligned(2, 32, 33, 32), (4, 32));
        // max = 200 = 8 * 25: ends are multiples of 8 at most, folios larger all the same.
        assert_eq!(aligned(4, 7, 200, 200), (6, 193));
        // Nothing would be left: the window stays. No folio is larger than its window.
        assert_eq!(aligned(2, 1, 5, 32), (2, 5));
        // 2 MiB at most.
        assert_eq!(aligned(9, 0, 4096, 4096), (9, 4096));
    }

    #[test]
    fn a_folio_fits_where_it_begins_and_ends() {
        assert_eq!(fitting(4, 32, 64), 4);
        assert_eq!(fitting(4, 36, 64), 2);
        assert_eq!(fitting(4, 37, 64), 0);
        assert_eq!(fitting(4, 32, 44), 3);
        assert_eq!(fitting(9, 0, 3), 1);
        assert_eq!(fitting(0, 32, 64), 0);
    }

    #[test]
    fn folios_are_found_by_their_blocks_and_leave_with_the_first() {
        let mut folios = Folios::new(100);
        folios.set(1, 32, 3);
        folios.set(1, 40, 1);
        assert_eq!(
            [31, 32, 39, 41, 42].map(|index| folios.of(1, index)),
            [(31, 0), (32, 3), (32, 3), (40, 1), (42, 0)]
        );
        assert_eq!(folios.of(2, 33), (33, 0));
        folios.evicted(1, 33);
        assert_eq!(folios.of(1, 34), (32, 3));
        folios.evicted(1, 32);
        assert_eq!((folios.of(1, 34), folios.len()), ((34, 0), 1));
    }

    #[test]
    fn the_marks_that_were_set_longest_ago_make_way() {
        let mut marks = Marks::new(2);
        marks.set(1, Folio { first: 8, pages: 2 });
        marks.set(1, Folio { first: 64, pages: 64 });
        // Set again, 8 is younger than 64.
        marks.set(1, Folio { first: 8, pages: 1 });
        marks.set(2, Folio { first: 70, pages: 2 });
        assert_eq!((marks.len(), marks.take(1, 100).is_some(), marks.take(1, 8).is_some()), (2, false, true));
        marks.evicted(2, 71);
        assert!(marks.has(2, 71));
        marks.evicted(2, 70);
        assert_eq!((marks.take(2, 70).is_some(), marks.take(2, 71).is_some(), marks.len()), (false, false, 0));
        assert!(marks.leaves.is_empty());
    }

    #[test]
    fn a_mark_is_taken_off_as_a_whole() {
        let mut marks = Marks::new(100);
        marks.set(1, Folio { first: 8, pages: 4 });
        assert_eq!((marks.len(), marks.take(2, 8).is_none(), marks.take(1, 12).is_none()), (1, true, true));
        assert_eq!(marks.take(1, 11).map(|folio| (folio.first, folio.pages)), Some((8, 4)));
        assert_eq!((marks.len(), marks.take(1, 8).is_none()), (0, true));
    }

    #[test]
    fn the_next_mark_is_found_or_where_to_look_again() {
        let mut marks = Marks::new(100);
        marks.set(1, Folio { first: 8, pages: 4 });
        marks.set(1, Folio { first: 128, pages: 128 });
        let next = [0, 8, 11, 12, 64, 127, 128, 255, 256].map(|index| marks.next(1, index));
        assert_eq!(next, [8, 8, 11, 64, 128, 128, 128, 255, 320]);
        assert_eq!((marks.next(2, 8), marks.next(1, u64::MAX)), (64, u64::MAX));
    }

    #[test]
    fn what_holds_a_block_begins_at_one_of_few_numbers() {
        // 2 MiB: 512 pages. 1000 = 512 + 256 + 128 + 64 + 32 + 8.
        assert_eq!(firsts(1000).collect::<Vec<_>>(), [1000, 992, 960, 896, 768, 512]);
        assert_eq!(firsts(512).collect::<Vec<_>>(), [512]);
    }
}
