//! libCacheSim's probability graph (aa0fc40, October 2024), reproduced to its exact counts.
//!
//! Differences from [`probability_graph`](super::probability_graph):
//! - an arc is counted when its source leaves the window of `lookahead` references, once for each reference in the
//!   window, in the order of its slots;
//! - nodes are blocks, and counts never fade: once nodes and arcs of 32 bytes each have used up their share of memory,
//!   nothing new is learned; from then on a reference to an unknown arc ends the scan of the window;
//! - candidates come from a heap and are issued in reverse order, so that the likeliest is inserted last;
//! - two bugs: an arc whose count grows moves down the heap, never up, which breaks the heap order; and the first arc
//!   that is found too unlikely is removed and not put back. Later increments of its count restore the heap from the
//!   root. `version = "libcachesim-fixed"` sorts instead: the block issued last has the highest count, and among equals
//!   the highest number.
//!
//! libCacheSim treats ids as 32-bit signed numbers and ignores block 0; here these are ordinary blocks.

use hashbrown::HashMap;
use headstart_types::Nanos;
use rustc_hash::FxBuildHasher;

use super::{name, places, FileBlock, Version};
use crate::readahead::{Asked, Cached, Found, ReadAhead, Run};

/// Memory charged for a node or an arc.
const ENTRY_BYTES: u64 = 32;

#[derive(Debug)]
struct Arc {
    block: FileBlock,
    count: u64,
    /// Its current or last slot in the heap.
    at: usize,
}

/// A node: its arcs, and a binary heap of them whose root is slot 1. Slot 0 is unused.
#[derive(Debug)]
struct Node {
    total: u64,
    arcs: Vec<Arc>,
    arc_of: HashMap<FileBlock, usize, FxBuildHasher>,
    heap: Vec<usize>,
}

impl Node {
    fn new() -> Self {
        Self { total: 0, arcs: Vec::new(), arc_of: HashMap::default(), heap: vec![usize::MAX] }
    }

    fn count(&self, slot: usize) -> u64 {
        self.arcs[self.heap[slot]].count
    }

    fn put(&mut self, slot: usize, arc: usize) {
        self.heap[slot] = arc;
        self.arcs[arc].at = slot;
    }

    fn push(&mut self, arc: usize) {
        self.heap.push(arc);
        let mut slot = self.heap.len() - 1;
        while slot > 1 && self.count(slot / 2) < self.arcs[arc].count {
            self.put(slot, self.heap[slot / 2]);
            slot /= 2;
        }
        self.put(slot, arc);
    }

    fn sift_down(&mut self, mut slot: usize) {
        if slot >= self.heap.len() {
            return;
        }
        let arc = self.heap[slot];
        loop {
            let left = 2 * slot;
            if left >= self.heap.len() {
                break;
            }
            let right = left + 1 < self.heap.len() && self.count(left) < self.count(left + 1);
            let child = left + usize::from(right);
            if self.arcs[arc].count >= self.count(child) {
                break;
            }
            self.put(slot, self.heap[child]);
            slot = child;
        }
        self.put(slot, arc);
    }

    fn pop(&mut self) -> Option<usize> {
        if self.heap.len() == 1 {
            return None;
        }
        let root = self.heap.swap_remove(1);
        self.sift_down(1);
        Some(root)
    }

    /// Removes the arcs above `chance` in heap order and puts them back; the next arc after them is lost (a bug of the
    /// original).
    fn take_likely(&mut self, chance: f64) -> Vec<usize> {
        let mut likely = Vec::new();
        while let Some(arc) = self.pop() {
            if self.arcs[arc].count as f64 / self.total as f64 <= chance {
                break;
            }
            likely.push(arc);
        }
        likely.iter().rev().for_each(|arc| self.push(*arc));
        likely
    }

    /// The arcs above `chance`, by descending count and number.
    fn likely(&self, chance: f64) -> Vec<usize> {
        let is_likely = |arc: &usize| self.arcs[*arc].count as f64 / self.total as f64 > chance;
        let mut likely: Vec<usize> = (0..self.arcs.len()).filter(is_likely).collect();
        likely.sort_by_key(|arc| std::cmp::Reverse((self.arcs[*arc].count, self.arcs[*arc].block)));
        likely
    }
}

/// The predictor of libCacheSim's versions of `probability-graph`.
#[derive(Debug)]
pub struct LibCacheSimGraph {
    version: Version,
    chance: f64,
    metadata_bytes: u64,
    nodes: HashMap<FileBlock, Node, FxBuildHasher>,
    entries: u64,
    learns: bool,
    window: Vec<Option<FileBlock>>,
    slot: usize,
}

impl LibCacheSimGraph {
    /// An empty graph that learns until it takes `metadata_bytes`.
    #[must_use]
    pub fn new(version: Version, lookahead: u32, chance: f64, metadata_bytes: u64) -> Self {
        Self {
            version,
            chance,
            metadata_bytes,
            nodes: HashMap::default(),
            entries: 0,
            learns: true,
            window: vec![None; lookahead as usize],
            slot: 0,
        }
    }

    fn learn(&mut self, block: FileBlock) {
        let left = self.window[self.slot].replace(block);
        self.slot = (self.slot + 1) % self.window.len();
        let Some(source) = left else { return };
        if !self.nodes.contains_key(&source) {
            if !self.learns {
                return;
            }
            self.nodes.insert(source, Node::new());
            self.entries += 1;
        }
        let Some(node) = self.nodes.get_mut(&source) else { return };
        for target in self.window.iter().copied().flatten() {
            node.total += 1;
            match node.arc_of.get(&target) {
                Some(arc) => {
                    node.arcs[*arc].count += 1;
                    if self.version == Version::LibCacheSim {
                        node.sift_down(node.arcs[*arc].at);
                    }
                }
                None if !self.learns => return,
                None => {
                    let arc = node.arcs.len();
                    node.arcs.push(Arc { block: target, count: 1, at: 0 });
                    node.arc_of.insert(target, arc);
                    if self.version == Version::LibCacheSim {
                        node.push(arc);
                    }
                    self.entries += 1;
                }
            }
        }
        if self.entries * ENTRY_BYTES >= self.metadata_bytes {
            self.learns = false;
        }
    }
}

impl ReadAhead for LibCacheSimGraph {
    fn asked(&mut self, _: Nanos, asked: &Asked, _: &[Found], _: &dyn Cached, prefetch: &mut Vec<Run>) {
        for block in places(asked) {
            self.learn(block);
            let Some(node) = self.nodes.get_mut(&block) else { continue };
            let likely = match self.version {
                Version::LibCacheSim => node.take_likely(self.chance),
                _ => node.likely(self.chance),
            };
            likely.iter().rev().for_each(|arc| name(node.arcs[*arc].block, prefetch));
        }
    }

    fn order_max(&self) -> u32 {
        self.version.order_max()
    }

    fn one_by_one(&self) -> bool {
        true
    }

    fn remembered(&self) -> usize {
        self.entries as usize
    }
}
