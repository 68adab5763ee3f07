//! Probability graph: when a file is opened, prefetch the files that were opened soon after it before.
//!
//! Source: J. Griffioen and R. Appleton, "Reducing File System Latency using a Predictive Approach", USENIX Summer
//! 1994. A node is a file; an arc from A to B counts how often B was opened within `lookahead` openings after A. The
//! chance of B after A is the arc's count divided by the counts of all arcs from A. Files with at least `chance` are
//! prefetched, the likeliest first.
//!
//! Differences: a level sees no openings, so a file is opened by a client's first request for a file other than that of
//! its previous request. A file is prefetched from its start, up to its end or half the cache. If a trace does not
//! distinguish files (file 0), and with `unit = "block"`, blocks replace files. The paper lets old counts fade; here
//! whole nodes are forgotten, the least recently used first. The defaults of `lookahead` and `chance` are from our
//! reading of the paper, not checked against its text.
//!
//! `version = "libcachesim"` is the prefetcher of that name in libCacheSim (aa0fc40), to its exact counts: see
//! [`libcachesim_graph`](super::libcachesim_graph). `"libcachesim-fixed"` is the same without the bugs of its heap.
//!
//! Cost: `lookahead` arcs per reference, and the arcs that are likely enough. Memory: about 60 bytes for each of
//! `entries` nodes and arcs. Not for long loops over many blocks, where each arc predicts one block a moment ahead.

use hashbrown::HashMap;
use headstart_types::{keys, KeyError, KeyTable, Nanos};
use rustc_hash::FxBuildHasher;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

use super::libcachesim_graph::LibCacheSimGraph;
use super::{family, places, FileBlock, Version, CLIENTS, ENTRIES};
use crate::readahead::recent::Recent;
use crate::readahead::{Asked, Cached, Found, ReadAhead, Run};
use crate::row::PolicyRow;

/// Its row in the registry.
pub static ROW: PolicyRow = PolicyRow {
    name: "probability-graph",
    summary: "files or blocks that soon followed this one before, by their probability",
    source: "Griffioen and Appleton, USENIX Summer 1994",
    keys: KeyTable::of::<ProbabilityGraphKeys>(),
    default_replacement: Some("lru"),
    family: family(&|keys, context| {
        let keys: &ProbabilityGraphKeys = keys.get();
        Ok(match keys.version {
            Version::Paper => Box::new(ProbabilityGraph::new(keys)),
            version => {
                let block_bytes = keys.block_bytes.unwrap_or(context.block_bytes);
                let metadata_bytes =
                    u64::from(context.frames) as f64 * block_bytes as f64 * keys.metadata.unwrap_or(0.1);
                Box::new(LibCacheSimGraph::new(version, keys.lookahead, keys.chance, metadata_bytes as u64))
            }
        })
    }),
};

/// The unit of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// Files; blocks if the trace does not distinguish files.
    #[default]
    File,
    /// Blocks.
    Block,
}

keys! {
    /// Keys of `probability-graph`.
    pub struct ProbabilityGraphKeys {
        /// The paper's algorithm, or libCacheSim's, whose nodes are always blocks.
        pub version: Version = Version::Paper,
        /// The unit of prediction.
        pub unit: Unit = Unit::File,
        /// Window in references: a reference counts as a successor of up to this many references before it.
        #[schemars(range(min = 1, max = 100))]
        pub lookahead: u32 = 2,
        /// Minimum estimated probability of a prefetched block. libCacheSim's versions require a higher one.
        #[schemars(range(min = 0.0, max = 1.0))]
        pub chance: f64 = 0.5,
        /// Maximum number of nodes and arcs. Those of the least recently used node are forgotten first. Only with the
        /// paper's version.
        #[schemars(range(min = 1))]
        pub entries: u32 = ENTRIES,
        /// Memory for nodes and arcs of 32 bytes, as a share of the cache's size. When it is used up, nothing more is
        /// learned. Only with libCacheSim's versions.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(range(min = 0.0, max = 1.0), extend("x-absent" = "0.1"))]
        pub metadata: Option<f64> = None,
        /// Bytes per block, to compute the size that `metadata` is a share of. Only with libCacheSim's versions.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(range(min = 1, max = 1_073_741_824), extend("x-absent" = "the level's"))]
        pub block_bytes: Option<u64> = None,
    }
    impl check = check;
}

fn check(keys: &ProbabilityGraphKeys) -> Result<(), KeyError> {
    let ours = keys.version == Version::Paper;
    let given = [("metadata", keys.metadata.is_some()), ("block_bytes", keys.block_bytes.is_some())];
    match given.into_iter().find(|(_, given)| *given && ours) {
        Some((key, _)) => {
            Err(KeyError::new(key, "is only for libCacheSim's versions", "entries, or version = \"libcachesim\""))
        }
        None => Ok(()),
    }
}

/// A file (with index `WHOLE`) or a block.
type Node = FileBlock;

const WHOLE: u64 = u64::MAX;

/// The arcs of a node, by descending count.
#[derive(Debug, Default)]
struct Arcs {
    total: u64,
    arcs: Vec<(Node, u64)>,
    at: HashMap<Node, u32, FxBuildHasher>,
}

impl Arcs {
    /// Adds one to the arc to `target`; returns whether the arc is new.
    fn credit(&mut self, target: Node) -> bool {
        self.total += 1;
        let Some(at) = self.at.get(&target).map(|at| *at as usize) else {
            self.at.insert(target, self.arcs.len() as u32);
            self.arcs.push((target, 1));
            return true;
        };
        // It swaps places with the first arc of the same count.
        let count = self.arcs[at].1;
        let first = self.arcs.partition_point(|(_, other)| *other > count);
        self.at.insert(self.arcs[first].0, at as u32);
        self.at.insert(target, first as u32);
        self.arcs.swap(at, first);
        self.arcs[first].1 += 1;
        false
    }

    /// The targets with at least this chance, likeliest first, then by number.
    fn likely(&self, chance: f64, likely: &mut Vec<Node>) {
        let least = chance * self.total as f64;
        let mut found: Vec<_> = self.arcs.iter().take_while(|(_, count)| *count as f64 >= least).collect();
        found.sort_by_key(|(node, count)| (std::cmp::Reverse(*count), *node));
        likely.extend(found.into_iter().map(|(node, _)| *node));
    }
}

/// The predictor `probability-graph` in the paper's version.
#[derive(Debug)]
pub struct ProbabilityGraph {
    unit: Unit,
    lookahead: usize,
    chance: f64,
    entries: usize,
    nodes: Recent<Node, Arcs>,
    arcs: usize,
    /// For each client: its last references, latest last.
    windows: Recent<u32, VecDeque<Node>>,
    likely: Vec<Node>,
}

impl ProbabilityGraph {
    /// An empty graph.
    #[must_use]
    pub fn new(keys: &ProbabilityGraphKeys) -> Self {
        Self {
            unit: keys.unit,
            lookahead: keys.lookahead as usize,
            chance: keys.chance,
            entries: keys.entries as usize,
            nodes: Recent::new(keys.entries as usize),
            arcs: 0,
            windows: Recent::new(CLIENTS),
            likely: Vec::new(),
        }
    }

    fn node(&self, (file, index): FileBlock) -> Node {
        let whole = self.unit == Unit::File && file != 0;
        (file, if whole { WHOLE } else { index })
    }

    /// Learns from a reference of `client`; returns whether it is one. Further requests of the same file are not.
    fn learn(&mut self, node: Node, client: u32) -> bool {
        let window = self.windows.get_or_default(client);
        if window.back() == Some(&node) {
            return false;
        }
        for source in window.iter().filter(|source| **source != node) {
            let known = self.nodes.peek(*source).is_some();
            if !known && self.nodes.len() == self.entries {
                let oldest = self.nodes.pop_oldest();
                self.arcs -= oldest.map_or(0, |(_, dropped)| dropped.arcs.len());
            }
            self.arcs += usize::from(self.nodes.get_or_default(*source).credit(node));
        }
        window.push_back(node);
        if window.len() > self.lookahead {
            window.pop_front();
        }
        while self.nodes.len() + self.arcs > self.entries {
            let Some((_, dropped)) = self.nodes.pop_oldest() else { break };
            self.arcs -= dropped.arcs.len();
        }
        true
    }
}

impl ReadAhead for ProbabilityGraph {
    fn asked(&mut self, _: Nanos, asked: &Asked, _: &[Found], cached: &dyn Cached, prefetch: &mut Vec<Run>) {
        let mut likely = std::mem::take(&mut self.likely);
        for place in places(asked) {
            let node = self.node(place);
            if self.learn(node, asked.client) {
                likely.clear();
                if let Some(arcs) = self.nodes.peek(node) {
                    arcs.likely(self.chance, &mut likely);
                }
                prefetch.extend(likely.iter().map(|(file, index)| match *index {
                    WHOLE => {
                        let half = u64::from(cached.frames().div_ceil(2));
                        Run::between(*file, 0, cached.file_blocks(*file).unwrap_or(half).min(half))
                    }
                    index => Run { file: *file, first: index, count: 1 },
                }));
            }
            if node.1 == WHOLE {
                break;
            }
        }
        self.likely = likely;
    }

    fn remembered(&self) -> usize {
        self.nodes.len() + self.arcs
    }
}
