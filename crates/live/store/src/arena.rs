//! Places in an address space that is far larger than the memory: what is free is a hole and takes no memory, so that
//! segments of any length fit without moving others.

use std::collections::BTreeMap;

/// Places begin at multiples of this, as mappings must.
pub const PAGE_BYTES: u64 = 4096;
/// Bytes of the address space.
pub const ARENA_BYTES: u64 = 1 << 40;

/// Bytes of the arena.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    pub offset: u64,
    /// A multiple of a page.
    pub length: u64,
}

impl Place {
    /// What `bytes` take.
    #[must_use]
    pub fn bytes_of(bytes: u64) -> u64 {
        bytes.next_multiple_of(PAGE_BYTES)
    }
}

/// Which places are taken.
#[derive(Debug, Default)]
pub struct Arena {
    /// Lengths by offset.
    taken: BTreeMap<u64, u64>,
    used: u64,
    /// Where the last place ended: the next one follows, so that a place is not taken again soon.
    next: u64,
}

impl Arena {
    /// Bytes of all places.
    #[must_use]
    pub fn used(&self) -> u64 {
        self.used
    }

    /// Takes a place for `bytes`; there is one as long as far less than the arena is used.
    pub fn take(&mut self, bytes: u64) -> Place {
        let length = Place::bytes_of(bytes);
        let mut at = if self.next + length > ARENA_BYTES { 0 } else { self.next };
        // Steps over what is still taken; at most once around.
        while let Some((start, other)) = self.taken.range(..at + length).next_back().filter(|(s, l)| *s + **l > at) {
            at = start + other;
            if at + length > ARENA_BYTES {
                at = 0;
            }
        }
        self.taken.insert(at, length);
        self.used += length;
        self.next = at + length;
        Place { offset: at, length }
    }

    /// Gives a place back.
    pub fn give_back(&mut self, place: Place) {
        let length = self.taken.remove(&place.offset);
        debug_assert_eq!(length, Some(place.length));
        self.used -= place.length;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_never_overlap_and_wrap_around() {
        let mut arena = Arena::default();
        let first = arena.take(5000);
        assert_eq!((first.offset, first.length), (0, 8192));
        arena.next = ARENA_BYTES - 4096;
        let second = arena.take(8192);
        assert_eq!(second.offset, 8192, "not over the end, and not over the first");
        arena.give_back(first);
        arena.next = ARENA_BYTES;
        assert_eq!(arena.take(1).offset, 0);
        assert_eq!(arena.take(4097).offset, 16384, "8192 bytes do not fit before the second");
        assert_eq!(arena.used(), 8192 + 4096 + 8192);
    }
}
