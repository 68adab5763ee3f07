//! Prediction by partial match: contexts of several lengths, in partitions of bounded size.
//!
//! Source: T. M. Kroeger and D. D. E. Long, "Design and Implementation of a Predictive File Prefetching Algorithm",
//! USENIX 2001, sections 2.2 and 3: extended partitioned context modeling (EPCM). A context is a sequence of last
//! references; a trie counts what followed each context. The contexts that begin with one block share a partition of at
//! most `nodes` nodes. A full partition halves its counts and drops nodes with a count of 0; if there are none, nothing
//! is added. Each occurrence of a pattern adds at most one node, so a pattern grows by one block per occurrence. Blocks
//! that followed a context with a likelihood of at least `threshold` are prefetched, then those that followed these,
//! and so on.
//!
//! Differences: blocks instead of files; each client has its own contexts. The likelihood of a node is its count
//! divided by the sum of its and its siblings' counts. `order` is three quarters of the partition, the lower end of
//! what section 3 gives. `threshold` is our choice: it must be above 0.5 so that each context has at most one
//! successor.
//!
//! Cost: `order` contexts per block, each with a search among its children; `order` predictions per context of a
//! request. Memory: about 40 bytes for each of `entries` nodes; the least recently used partition is forgotten first.
//! Not for references that never repeat, nor where a first repetition must be hit: the chain grows with each pass.

use headstart_types::{keys, KeyError, KeyTable, Nanos};

use super::{family, name, places, FileBlock, CLIENTS, ENTRIES};
use crate::readahead::recent::Recent;
use crate::readahead::{Asked, Cached, Found, ReadAhead, Run};
use crate::row::PolicyRow;

/// Its row in the registry.
pub static ROW: PolicyRow = PolicyRow {
    name: "ppm",
    summary: "blocks that have followed the last blocks, in contexts of several lengths",
    source: "Kroeger and Long, USENIX 2001 (EPCM)",
    keys: KeyTable::of::<PpmKeys>(),
    default_replacement: Some("lru"),
    family: family(&|keys, _| Ok(Box::new(Ppm::new(keys.get())))),
};

keys! {
    /// Keys of `ppm`.
    pub struct PpmKeys {
        /// Maximum length of a context, in blocks.
        #[schemars(range(min = 1, max = 64))]
        pub order: u32 = 24,
        /// Minimum estimated probability of a prefetched block.
        #[schemars(range(min = 0.0, max = 1.0))]
        pub threshold: f64 = 0.6,
        /// Maximum number of nodes per partition.
        #[schemars(range(min = 2, max = 4096))]
        pub nodes: u32 = 32,
        /// Maximum number of nodes of all partitions together. At least `nodes`.
        #[schemars(range(min = 2))]
        pub entries: u32 = ENTRIES,
    }
    impl check = check;
}

fn check(keys: &PpmKeys) -> Result<(), KeyError> {
    if keys.entries >= keys.nodes {
        return Ok(());
    }
    let problem = format!("{} is below nodes, {}", keys.entries, keys.nodes);
    Err(KeyError::new("entries", problem, format!("at least {}", keys.nodes)))
}

#[derive(Debug, Clone)]
struct Node {
    block: FileBlock,
    count: u32,
    children: Vec<u32>,
}

/// The trie of the contexts that begin with one block; node 0 is that block.
#[derive(Debug, Default)]
struct Partition {
    nodes: Vec<Node>,
    /// A context of another generation points to nodes that have moved.
    generation: u64,
}

impl Partition {
    fn child(&self, node: u32, block: FileBlock) -> Option<u32> {
        let children = &self.nodes[node as usize].children;
        children.iter().copied().find(|child| self.nodes[*child as usize].block == block)
    }

    /// A node's children, each with its likelihood.
    fn children(&self, node: u32) -> impl Iterator<Item = (u32, f64)> + '_ {
        let children = &self.nodes[node as usize].children;
        let total: u64 = children.iter().map(|child| u64::from(self.nodes[*child as usize].count)).sum();
        children.iter().map(move |child| (*child, f64::from(self.nodes[*child as usize].count) / total as f64))
    }

    fn add(&mut self, node: u32, block: FileBlock, room: usize) {
        if self.nodes.len() >= room {
            self.halve();
            return;
        }
        let child = self.nodes.len() as u32;
        self.nodes.push(Node { block, count: 1, children: Vec::new() });
        self.nodes[node as usize].children.push(child);
    }

    /// Halves all counts and drops nodes with a count of 0, including their subtrees.
    fn halve(&mut self) {
        self.nodes.iter_mut().for_each(|node| node.count /= 2);
        let mut kept = vec![Node { children: Vec::new(), ..self.nodes[0].clone() }];
        let mut waiting = vec![(0u32, 0u32)];
        while let Some((old, new)) = waiting.pop() {
            for child in self.nodes[old as usize].children.clone() {
                let node = &self.nodes[child as usize];
                if node.count > 0 {
                    let at = kept.len() as u32;
                    kept.push(Node { children: Vec::new(), ..node.clone() });
                    kept[new as usize].children.push(at);
                    waiting.push((child, at));
                }
            }
        }
        self.nodes = kept;
        self.generation += 1;
    }
}

/// A node of the trie that represents the last blocks.
#[derive(Debug, Clone, Copy)]
struct Context {
    partition: FileBlock,
    generation: u64,
    node: u32,
    order: u32,
}

/// The EPCM predictor.
#[derive(Debug)]
pub struct Ppm {
    keys: PpmKeys,
    partitions: Recent<FileBlock, Partition>,
    /// For each client: its contexts, longest first.
    contexts: Recent<u32, Vec<Context>>,
    /// Number of partitions ever created, so that their generations differ.
    begun: u64,
}

impl Ppm {
    /// A predictor with these keys.
    #[must_use]
    pub fn new(keys: &PpmKeys) -> Self {
        let partitions = Recent::new((keys.entries / keys.nodes) as usize);
        Self { partitions, contexts: Recent::new(CLIENTS), begun: 0, keys: keys.clone() }
    }

    fn learn(&mut self, block: FileBlock, client: u32) {
        let contexts = self.contexts.get_or_default(client);
        let mut longer = Vec::with_capacity(contexts.len() + 1);
        for context in contexts.drain(..) {
            let Some(partition) = self.partitions.get(context.partition) else { continue };
            if partition.generation != context.generation || context.order >= self.keys.order {
                continue;
            }
            match partition.child(context.node, block) {
                Some(node) => {
                    let count = &mut partition.nodes[node as usize].count;
                    *count = count.saturating_add(1);
                    longer.push(Context { node, order: context.order + 1, ..context });
                }
                None => partition.add(context.node, block, self.keys.nodes as usize),
            }
        }
        let partition = self.partitions.get_or_default(block);
        if partition.nodes.is_empty() {
            partition.nodes.push(Node { block, count: 0, children: Vec::new() });
            self.begun += 1;
            partition.generation = self.begun << 32;
        }
        partition.nodes[0].count = partition.nodes[0].count.saturating_add(1);
        longer.push(Context { partition: block, generation: partition.generation, node: 0, order: 1 });
        *self.contexts.get_or_default(client) = longer;
    }

    /// Names what is likely to follow each context, longest context first, and what follows that.
    fn predict(&self, client: u32, prefetch: &mut Vec<Run>) {
        let start = prefetch.len();
        for context in self.contexts.peek(client).into_iter().flatten() {
            let Some(partition) = self.partitions.peek(context.partition) else { continue };
            if partition.generation != context.generation {
                continue;
            }
            let mut waiting = vec![context.node];
            while let Some(node) = waiting.pop() {
                for (child, _) in partition.children(node).filter(|(_, chance)| *chance >= self.keys.threshold) {
                    let (file, index) = partition.nodes[child as usize].block;
                    if !prefetch[start..].iter().any(|run| (run.file, run.first) == (file, index)) {
                        name((file, index), prefetch);
                    }
                    waiting.push(child);
                }
            }
        }
    }
}

impl ReadAhead for Ppm {
    fn asked(&mut self, _: Nanos, asked: &Asked, _: &[Found], _: &dyn Cached, prefetch: &mut Vec<Run>) {
        places(asked).for_each(|block| self.learn(block, asked.client));
        self.predict(asked.client, prefetch);
    }

    fn remembered(&self) -> usize {
        self.partitions.values().map(|partition| partition.nodes.len()).sum()
    }
}
