//! A bounded map that forgets the least recently used entry: the state of files, streams and marks.
//!
//! Every read-ahead keeps state for streams or blocks that it has seen; none may grow with the trace. The map holds at
//! most `capacity` entries in a slab, found through a hash table with a fixed hasher, in a list by last use. Nothing
//! depends on the order of the table, so results are reproducible.
//!
//! Cost: constant per operation. Memory: the key twice, the value and 12 bytes per entry, allocated as it fills.

use std::hash::Hash;

use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

const NONE: u32 = u32::MAX;

#[derive(Debug)]
struct Node<K, V> {
    key: K,
    value: V,
    older: u32,
    newer: u32,
}

/// At most `capacity` values by key; the least recently used is dropped for a new one.
#[derive(Debug)]
pub(crate) struct Recent<K, V> {
    capacity: usize,
    at: HashMap<K, u32, FxBuildHasher>,
    nodes: Vec<Node<K, V>>,
    unused: Vec<u32>,
    oldest: u32,
    newest: u32,
}

impl<K: Hash + Eq + Copy, V: Default> Recent<K, V> {
    /// An empty map for `capacity` entries, at least 1 and below 2^32 - 1.
    pub fn new(capacity: usize) -> Self {
        let capacity = capacity.clamp(1, NONE as usize - 1);
        let at = HashMap::with_hasher(FxBuildHasher);
        Self { capacity, at, nodes: Vec::new(), unused: Vec::new(), oldest: NONE, newest: NONE }
    }

    /// Mutable access to the value of `key`, without counting as a use.
    pub fn peek_mut(&mut self, key: K) -> Option<&mut V> {
        self.at.get(&key).map(|at| &mut self.nodes[*at as usize].value)
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.at.len()
    }

    /// Whether a new entry would drop the oldest one.
    pub fn is_full(&self) -> bool {
        self.at.len() == self.capacity
    }

    /// The value of `key`, without counting as a use.
    pub fn peek(&self, key: K) -> Option<&V> {
        self.at.get(&key).map(|at| &self.nodes[*at as usize].value)
    }

    /// The value of `key`, which becomes the most recently used.
    pub fn get(&mut self, key: K) -> Option<&mut V> {
        let at = *self.at.get(&key)?;
        self.make_newest(at);
        Some(&mut self.nodes[at as usize].value)
    }

    /// The value of `key`, which becomes the most recently used; inserts a default if there was none.
    pub fn get_or_default(&mut self, key: K) -> &mut V {
        if let Some(&at) = self.at.get(&key) {
            self.make_newest(at);
            return &mut self.nodes[at as usize].value;
        }
        if self.at.len() == self.capacity {
            let oldest = self.nodes[self.oldest as usize].key;
            self.remove(oldest);
        }
        let node = Node { key, value: V::default(), older: NONE, newer: NONE };
        let at = match self.unused.pop() {
            Some(at) => {
                self.nodes[at as usize] = node;
                at
            }
            None => {
                self.nodes.push(node);
                self.nodes.len() as u32 - 1
            }
        };
        self.at.insert(key, at);
        self.link_newest(at);
        &mut self.nodes[at as usize].value
    }

    /// Removes `key` and returns its value.
    pub fn remove(&mut self, key: K) -> Option<V> {
        let at = self.at.remove(&key)?;
        self.unlink(at);
        self.unused.push(at);
        Some(std::mem::take(&mut self.nodes[at as usize].value))
    }

    /// Removes and returns the least recently used entry.
    pub fn pop_oldest(&mut self) -> Option<(K, V)> {
        let key = self.nodes.get(self.oldest as usize)?.key;
        self.remove(key).map(|value| (key, value))
    }

    /// The keys, in unspecified order.
    pub fn keys(&self) -> impl Iterator<Item = K> + '_ {
        self.at.keys().copied()
    }

    /// The values, in unspecified order.
    pub fn values(&self) -> impl Iterator<Item = &V> + '_ {
        self.at.values().map(|at| &self.nodes[*at as usize].value)
    }

    fn make_newest(&mut self, at: u32) {
        if self.newest != at {
            self.unlink(at);
            self.link_newest(at);
        }
    }

    fn link_newest(&mut self, at: u32) {
        let node = &mut self.nodes[at as usize];
        (node.older, node.newer) = (self.newest, NONE);
        match self.newest {
            NONE => self.oldest = at,
            newest => self.nodes[newest as usize].newer = at,
        }
        self.newest = at;
    }

    fn unlink(&mut self, at: u32) {
        let (older, newer) = (self.nodes[at as usize].older, self.nodes[at as usize].newer);
        match older {
            NONE => self.oldest = newer,
            older => self.nodes[older as usize].newer = newer,
        }
        match newer {
            NONE => self.newest = older,
            newer => self.nodes[newer as usize].older = older,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn behaves_like_a_queue_of_pairs(
            capacity in 1usize..5, steps in prop::collection::vec((0u8..4, 0u32..8), 1..200),
        ) {
            let mut fast = Recent::<u32, u32>::new(capacity);
            let mut naive: Vec<(u32, u32)> = Vec::new();
            for (number, (what, key)) in steps.into_iter().enumerate() {
                let home = naive.iter().position(|(other, _)| *other == key);
                match what {
                    0 => {
                        let pair = home.map_or((key, 0), |home| naive.remove(home));
                        if naive.len() == capacity { naive.remove(0); }
                        naive.push((key, pair.1 + number as u32));
                        *fast.get_or_default(key) += number as u32;
                    }
                    1 => {
                        let pair = home.map(|home| naive.remove(home));
                        naive.extend(pair);
                        prop_assert_eq!(fast.get(key).copied(), pair.map(|pair| pair.1));
                    }
                    2 => prop_assert_eq!(fast.peek(key).copied(), home.map(|home| naive[home].1)),
                    _ => prop_assert_eq!(fast.remove(key), home.map(|home| naive.remove(home).1)),
                }
                prop_assert_eq!(fast.len(), naive.len());
                prop_assert!(fast.at.keys().copied().all(|key| naive.iter().any(|(other, _)| *other == key)));
                prop_assert!(naive.iter().all(|(key, value)| fast.peek(*key) == Some(value)));
                prop_assert!(fast.nodes.len() <= capacity);
            }
        }
    }
}
