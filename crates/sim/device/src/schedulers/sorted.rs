//! An ordered set that supports removal from the middle: a treap in one array.
//!
//! A binary search tree by key in which each node also has a pseudo-random priority that is at most its parent's
//! (Seidel and Aragon, "Randomized search trees", Algorithmica 16, 1996): the tree is as deep as one built in random
//! order, regardless of the order of arrival. Priorities come from a counter, so the same operations give the same
//! tree. Find, insert and remove cost O(log n); freed nodes are reused, so nothing is allocated after warm-up, which a
//! `BTreeMap` does not offer.

/// The sort key: a sector or another number, then the order of arrival.
pub(super) type Key = (u64, u64);

/// The null node. Its second child is the root.
const NONE: u32 = 0;

#[derive(Debug, Clone)]
struct Node<T> {
    key: Key,
    priority: u32,
    children: [u32; 2],
    value: T,
}

/// Values sorted by their keys, which are unique.
#[derive(Debug, Clone)]
pub(super) struct Sorted<T> {
    /// The first is [`NONE`].
    nodes: Vec<Node<T>>,
    /// Head of the list of unused nodes, linked by their first child.
    unused: u32,
    len: usize,
    counter: u64,
}

impl<T: Copy + Default> Default for Sorted<T> {
    fn default() -> Self {
        let none = Node { key: (0, 0), priority: 0, children: [NONE; 2], value: T::default() };
        Self { nodes: vec![none], unused: NONE, len: 0, counter: 0 }
    }
}

impl<T: Copy> Sorted<T> {
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    #[inline]
    fn node(&self, index: u32) -> &Node<T> {
        &self.nodes[index as usize]
    }

    #[inline]
    fn child(&self, (parent, side): (u32, usize)) -> u32 {
        self.nodes[parent as usize].children[side]
    }

    #[inline]
    fn hang(&mut self, (parent, side): (u32, usize), index: u32) {
        self.nodes[parent as usize].children[side] = index;
    }

    /// Adds `value`. The caller guarantees that no member has this key.
    pub(super) fn insert(&mut self, key: Key, value: T) {
        let new = self.unused_node(key, value);
        let priority = self.node(new).priority;
        // Descend to the first node with a lower priority, and insert there.
        let mut place = (NONE, 1);
        let mut at = self.child(place);
        while at != NONE && self.node(at).priority >= priority {
            debug_assert_ne!(self.node(at).key, key);
            place = (at, usize::from(self.node(at).key < key));
            at = self.child(place);
        }
        self.hang(place, new);
        // Split the subtree below into the new node's two sides.
        let (mut less, mut more) = ((new, 0), (new, 1));
        while at != NONE {
            if self.node(at).key < key {
                self.hang(less, at);
                less = (at, 1);
                at = self.child(less);
            } else {
                self.hang(more, at);
                more = (at, 0);
                at = self.child(more);
            }
        }
        self.hang(less, NONE);
        self.hang(more, NONE);
        self.len += 1;
    }

    fn unused_node(&mut self, key: Key, value: T) -> u32 {
        // The upper half of a linear congruential generator (Knuth's MMIX) is random enough to balance a tree.
        self.counter = self.counter.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let node = Node { key, priority: (self.counter >> 32) as u32, children: [NONE; 2], value };
        if self.unused == NONE {
            self.nodes.push(node);
            return (self.nodes.len() - 1) as u32;
        }
        let index = self.unused;
        self.unused = self.child((index, 0));
        self.nodes[index as usize] = node;
        index
    }

    /// Removes the member with this key.
    pub(super) fn remove(&mut self, key: Key) -> Option<T> {
        let mut place = (NONE, 1);
        let mut at = self.child(place);
        while at != NONE && self.node(at).key != key {
            place = (at, usize::from(self.node(at).key < key));
            at = self.child(place);
        }
        if at == NONE {
            return None;
        }
        let [mut less, mut more] = self.node(at).children;
        while less != NONE && more != NONE {
            if self.node(less).priority > self.node(more).priority {
                self.hang(place, less);
                place = (less, 1);
                less = self.child(place);
            } else {
                self.hang(place, more);
                place = (more, 0);
                more = self.child(place);
            }
        }
        self.hang(place, if less == NONE { more } else { less });
        self.hang((at, 0), self.unused);
        self.unused = at;
        self.len -= 1;
        Some(self.node(at).value)
    }

    /// The first member whose key is at least `key`.
    #[inline]
    pub(super) fn at_or_after(&self, key: Key) -> Option<(Key, T)> {
        let (mut at, mut found) = (self.child((NONE, 1)), NONE);
        while at != NONE {
            let node = self.node(at);
            if node.key < key {
                at = node.children[1];
            } else {
                found = at;
                at = node.children[0];
            }
        }
        (found != NONE).then(|| (self.node(found).key, self.node(found).value))
    }

    /// The last member whose key is less than `key`.
    #[inline]
    pub(super) fn before(&self, key: Key) -> Option<(Key, T)> {
        let (mut at, mut found) = (self.child((NONE, 1)), NONE);
        while at != NONE {
            let node = self.node(at);
            if node.key < key {
                found = at;
                at = node.children[1];
            } else {
                at = node.children[0];
            }
        }
        (found != NONE).then(|| (self.node(found).key, self.node(found).value))
    }

    /// The member with the smallest key.
    #[inline]
    pub(super) fn first(&self) -> Option<(Key, T)> {
        self.at_or_after((0, 0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::btree_map::{BTreeMap, Entry};

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// Behaves like the standard library's map, and never has more nodes than it had members at once.
        #[test]
        fn does_as_an_ordered_map(steps in prop::collection::vec((0u64..12, 0u64..4, 0u8..3), 0..400)) {
            let (mut sorted, mut map) = (Sorted::default(), BTreeMap::new());
            let mut most = 0;
            for (index, (sector, sequence, what)) in steps.into_iter().enumerate() {
                let key = (sector, sequence);
                if what == 0 {
                    prop_assert_eq!(sorted.remove(key), map.remove(&key));
                } else if let Entry::Vacant(vacant) = map.entry(key) {
                    sorted.insert(key, index);
                    vacant.insert(index);
                }
                most = most.max(map.len());
                prop_assert_eq!(sorted.len(), map.len());
                prop_assert_eq!(sorted.is_empty(), map.is_empty());
                let owned = |(key, value): (&Key, &usize)| (*key, *value);
                prop_assert_eq!(sorted.first(), map.iter().next().map(owned));
                prop_assert_eq!(sorted.at_or_after(key), map.range(key..).next().map(owned));
                prop_assert_eq!(sorted.before(key), map.range(..key).next_back().map(owned));
            }
            prop_assert_eq!(sorted.nodes.len(), most + 1);
        }
    }

    #[test]
    fn rising_keys_do_not_make_a_list() {
        let mut sorted = Sorted::default();
        for sector in 0..4096 {
            sorted.insert((sector, 0), ());
        }
        fn depth(sorted: &Sorted<()>, index: u32) -> u32 {
            if index == NONE {
                return 0;
            }
            let [less, more] = sorted.node(index).children;
            1 + depth(sorted, less).max(depth(sorted, more))
        }
        // A random tree of 4096 is about 28 deep; the minimum is 12 levels.
        let depth = depth(&sorted, sorted.child((NONE, 1)));
        assert!((12..45).contains(&depth), "{depth}");
    }
}
