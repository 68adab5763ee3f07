//! Large folios in `linux`: where a window ends, and which blocks carry its mark.
//!
//! Source: Linux 6.17 (the same in 6.18), mm/readahead.c: page_cache_async_ra and page_cache_ra_order. A file system
//! whose page cache has folios of several pages (XFS, since 6.16 ext4 too) gets larger ones the longer a stream is: a
//! window at an absent block has single pages, each window at a mark folios two orders larger than the last. Since 6.17
//! such a window ends at a multiple of its folio, and is shorter for that. A mark is on a folio: any page of it is
//! marked, and what goes on begins with its first.

use super::recent::Recent;

/// Pages of the largest folio, as a power of two: 2 MiB of pages of 4 KiB, as ext4 has it (and MAX_PAGECACHE_ORDER on
/// x86-64). Windows that long are rare: alignment never exceeds what divides `read_ahead`.
const ORDER_MAX: u32 = 9;

/// The order that a window at a mark asks for, `order` being that of the window before; and the blocks that are left of
/// `size` from `start`, where windows have `max` blocks.
pub fn aligned(order: u32, start: u64, size: u64, max: u64) -> (u32, u64) {
    let order = order + 2;
    let align = 1u64 << order.min(max.max(1).trailing_zeros());
    let end = start.saturating_add(size);
    let aligned_end = end - end % align;
    let size = if aligned_end > start { aligned_end - start } else { size };
    (order.min(ORDER_MAX).min(size.max(1).ilog2()), size)
}

/// Pages of the first folio of a window from `start` to `end` whose folios are of order `order` where they fit: one at
/// `start` can only be as large as what divides `start`.
pub fn first_folio(order: u32, start: u64, end: u64) -> u64 {
    let order = order.min(start.trailing_zeros());
    (0..=order).rev().map(|order| 1 << order).find(|pages| start.saturating_add(*pages) <= end).unwrap_or(1)
}

/// A marked folio.
#[derive(Debug, Clone, Copy, Default)]
pub struct Folio {
    /// Its first block of the file.
    pub first: u64,
    /// How many it has.
    pub pages: u64,
}

/// Marked folios, found by file and any of their blocks. Few blocks are marked: those of most stretches need no look-up.
#[derive(Debug)]
pub struct Marks {
    capacity: usize,
    marks: Recent<(u32, u64), Folio>,
    /// Marked blocks by stretch of a file; several stretches share a number.
    near: Vec<u32>,
}

/// Numbers of marked blocks: for some hundred streams most stretches have one of their own.
const STRETCHES: u64 = 1024;
/// Blocks of a stretch: those of a window.
const STRETCH_BLOCKS: u64 = 32;

fn stretch(file: u32, index: u64) -> usize {
    // An odd factor, so that the same stretches of different files differ.
    (index / STRETCH_BLOCKS).wrapping_add(u64::from(file).wrapping_mul(0x9E37_79B9)) as usize % STRETCHES as usize
}

impl Marks {
    /// For so many blocks at most; the marks that were set longest ago make way.
    pub fn new(blocks: usize) -> Self {
        Self { capacity: blocks.max(1), marks: Recent::new(blocks), near: vec![0; STRETCHES as usize] }
    }

    /// Marks a folio of `file`.
    pub fn set(&mut self, file: u32, folio: Folio) {
        for index in folio.first..folio.first.saturating_add(folio.pages) {
            if self.marks.peek((file, index)).is_none() {
                if self.marks.len() == self.capacity {
                    if let Some(((file, index), _)) = self.marks.pop_oldest() {
                        self.near[stretch(file, index)] -= 1;
                    }
                }
                self.near[stretch(file, index)] += 1;
            }
            *self.marks.get_or_default((file, index)) = folio;
        }
    }

    /// Takes the mark off the folio that holds the block, if it has one.
    #[inline]
    pub fn take(&mut self, file: u32, index: u64) -> Option<Folio> {
        let folio = self.forget(file, index)?;
        for other in folio.first..folio.first.saturating_add(folio.pages) {
            self.forget(file, other);
        }
        Some(folio)
    }

    /// The block has left the cache.
    #[inline]
    pub fn evicted(&mut self, file: u32, index: u64) {
        self.forget(file, index);
    }

    #[inline]
    fn forget(&mut self, file: u32, index: u64) -> Option<Folio> {
        let near = &mut self.near[stretch(file, index)];
        if *near == 0 {
            return None;
        }
        let folio = self.marks.remove((file, index))?;
        *near -= 1;
        Some(folio)
    }

    /// Marked blocks.
    pub fn len(&self) -> usize {
        self.marks.len()
    }
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
    fn the_first_folio_fits_where_it_begins_and_ends() {
        assert_eq!(first_folio(4, 32, 64), 16);
        assert_eq!(first_folio(4, 36, 64), 4);
        assert_eq!(first_folio(4, 37, 64), 1);
        assert_eq!(first_folio(4, 32, 44), 8);
        assert_eq!(first_folio(9, 0, 3), 2);
        assert_eq!(first_folio(0, 32, 64), 1);
    }

    #[test]
    fn the_marks_that_were_set_longest_ago_make_way() {
        let mut marks = Marks::new(3);
        marks.set(1, Folio { first: 8, pages: 2 });
        // Set again, 8 is younger than 9.
        marks.set(1, Folio { first: 8, pages: 1 });
        marks.set(2, Folio { first: 70, pages: 2 });
        assert_eq!((marks.len(), marks.take(1, 9).is_some(), marks.take(1, 8).is_some()), (3, false, true));
        marks.evicted(2, 70);
        assert_eq!((marks.take(2, 70).is_some(), marks.take(2, 71).is_some(), marks.len()), (false, true, 0));
        assert!(marks.near.iter().all(|near| *near == 0));
    }

    #[test]
    fn a_mark_is_taken_off_as_a_whole() {
        let mut marks = Marks::new(100);
        marks.set(1, Folio { first: 8, pages: 4 });
        assert_eq!((marks.len(), marks.take(2, 8).is_none(), marks.take(1, 12).is_none()), (4, true, true));
        assert_eq!(marks.take(1, 10).map(|folio| (folio.first, folio.pages)), Some((8, 4)));
        assert_eq!((marks.len(), marks.take(1, 8).is_none()), (0, true));
    }
}
