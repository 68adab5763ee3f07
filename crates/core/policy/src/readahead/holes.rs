//! Finds holes among cached blocks in the way the kernel does.
//!
//! Source: Linux 6.18, mm/filemap.c (page_cache_next_miss, page_cache_prev_miss) and lib/xarray.c (xas_load, xas_next,
//! xas_prev). The cache of a file is a tree of nodes with 64 slots. A folio of up to 32 pages occupies slots of a leaf,
//! a larger one slots of the node above. A search has an index and a slot. It begins at the folio that contains the
//! first page: the slot is that of the folio's head, the index is the page's. From there both move in steps of one, so
//! within a leaf the search looks at one page, takes it for a later one, and finds a hole that much too late. At the
//! edge of a leaf the slot partly follows the index again: see [`cross`].

use super::folios::{Folios, LEAF_BLOCKS, LEAF_ORDER};

/// Direction of the search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Towards {
    /// page_cache_prev_miss.
    Start,
    /// page_cache_next_miss.
    End,
}

impl Towards {
    fn next(self, number: u64) -> u64 {
        match self {
            Towards::Start => number.wrapping_sub(1),
            Towards::End => number.wrapping_add(1),
        }
    }

    /// Whether the next slot is in another node.
    fn is_edge(self, slot: u64) -> bool {
        slot % LEAF_BLOCKS == if self == Towards::Start { 0 } else { LEAF_BLOCKS - 1 }
    }
}

/// The blocks of a file: which ones are cached, and in which folios.
pub struct Blocks<'a, C> {
    pub file: u32,
    pub is_cached: C,
    pub folios: &'a Folios,
}

impl<C: Fn(u64) -> bool> Blocks<'_, C> {
    /// The index at which the kernel sees a hole when it searches at most `most` blocks from block `from` on. Without a
    /// hole: the last block searched (towards the start), or one past it (towards the end). `u64::MAX`: all blocks from
    /// the start of the file on are cached.
    pub fn hole(&self, from: u64, most: u64, towards: Towards) -> u64 {
        if !(self.is_cached)(from) {
            return from;
        }
        let (first, order) = self.folios.of(self.file, from);
        let mut shift = order / LEAF_ORDER * LEAF_ORDER;
        let (mut index, mut slot) = (from, first >> shift);
        for _ in 1..most {
            index = towards.next(index);
            if shift == 0 && !towards.is_edge(slot) {
                slot = towards.next(slot);
                if !(self.is_cached)(slot) {
                    return index;
                }
            } else {
                match self.cross(slot, shift, index, towards) {
                    Some(found) => (slot, shift) = found,
                    None => return index,
                }
            }
        }
        match towards {
            Towards::Start => index,
            Towards::End => index.wrapping_add(1),
        }
    }

    /// The slot after `slot`, of a node whose slots have 2^`shift` blocks, if that is in another node or not in a leaf.
    /// The search goes up to the first node with a next slot and down again to the index. A slot that already
    /// corresponds to the index stays. `None`: nothing is cached there.
    fn cross(&self, mut slot: u64, mut shift: u32, index: u64, towards: Towards) -> Option<(u64, u32)> {
        if slot % LEAF_BLOCKS != (index >> shift) % LEAF_BLOCKS {
            while towards.is_edge(slot) {
                slot >>= LEAF_ORDER;
                shift += LEAF_ORDER;
                if shift >= u64::BITS {
                    return None;
                }
            }
            slot = towards.next(slot);
        }
        loop {
            if shift == 0 {
                return (self.is_cached)(slot).then_some((slot, shift));
            }
            if self.folios.of(self.file, slot << shift).1 >= shift {
                return Some((slot, shift));
            }
            shift -= LEAF_ORDER;
            slot = (slot << LEAF_ORDER) | ((index >> shift) % LEAF_BLOCKS);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hole(cached: &[(u64, u32)], from: u64, most: u64, towards: Towards) -> u64 {
        let mut folios = Folios::new(10_000);
        cached.iter().filter(|(_, order)| *order > 0).for_each(|(first, order)| folios.set(7, *first, *order));
        let is_cached =
            |index: u64| cached.iter().any(|(first, order)| index >= *first && index - *first < 1 << *order);
        Blocks { file: 7, is_cached, folios: &folios }.hole(from, most, towards)
    }

    #[test]
    fn single_pages_have_holes_where_they_are() {
        let pages: Vec<(u64, u32)> = (60..70).map(|page| (page, 0)).collect();
        assert_eq!(hole(&pages, 69, 32, Towards::Start), 59);
        assert_eq!(hole(&pages, 60, 32, Towards::End), 70);
        assert_eq!(hole(&pages, 75, 32, Towards::End), 75);
        // Of four pages none is a hole: before, the last of them; after, the one beyond.
        assert_eq!(hole(&pages, 69, 4, Towards::Start), 66);
        assert_eq!(hole(&pages, 60, 4, Towards::End), 64);
        // To the start of the file.
        assert_eq!(hole(&[(0, 0), (1, 0)], 1, 3, Towards::Start), u64::MAX);
        assert_eq!(hole(&[(0, 0), (1, 0)], 1, 2, Towards::Start), 0);
    }

    #[test]
    fn within_a_folio_they_are_found_late_by_the_way_to_its_head() {
        // Folios 8..12 and 12..16, absent from 16 on. From 10 the slot begins at 8: index 11 is slot 9 and so on, slot
        // 16 index 18.
        let folios = [(8, 2), (12, 2)];
        assert_eq!(hole(&folios, 10, 32, Towards::End), 18);
        assert_eq!(hole(&folios, 8, 32, Towards::End), 16);
        // Back from 15 of 12..16: the slot is 12, three before; slot 7 is index 10.
        assert_eq!(hole(&folios, 15, 32, Towards::Start), 10);
    }

    #[test]
    fn at_the_edge_of_a_leaf_the_slot_goes_where_the_index_points() {
        // 56..64 as a folio, then single pages 64 to 66. From 60 the slot is four behind: slot 63 is index 67. One on,
        // the leaf of 64 is entered where index 68 points: slot 68, which is absent.
        let mut pages = vec![(56, 3)];
        pages.extend((64..67).map(|page| (page, 0)));
        assert_eq!(hole(&pages, 60, 32, Towards::End), 68);
        // Had the search begun at 57, one behind: slot 63 is index 64, and index 65 is slot 65: there; 67 is the hole.
        assert_eq!(hole(&pages, 57, 32, Towards::End), 67);
    }

    #[test]
    fn larger_folios_lie_in_the_node_above() {
        // 128 pages from 128 on; from 200 the slot is the folio's first, of 128 to 191. At index 201 it is not where
        // the index points, so it moves on, and stays there until index 256: the leaf of 256 is empty.
        assert_eq!(hole(&[(128, 7)], 200, 100, Towards::End), 256);
        assert_eq!(hole(&[(128, 7)], 200, 20, Towards::End), 220);
        // Back from 200: slot 128 is left at once, as index 199 points to 192, for that before it: the leaf of 64, at
        // 64 + 199 % 64.
        assert_eq!(hole(&[(128, 7)], 200, 100, Towards::Start), 199);
        assert_eq!(hole(&[(128, 7), (64, 5)], 200, 100, Towards::Start), 191);
    }
}
