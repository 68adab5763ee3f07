//! The written blocks of a trace, and when they go to the disk: as in a level of the engine.

use std::collections::{HashMap, VecDeque};

use headstart_engine::Clusters;
use rustc_hash::FxBuildHasher;

/// A block, by its file and its index in it.
pub type At = (u32, u64);

/// The write-back state. Cost: constant per block. Memory: 40 bytes per block that is dirty or left before it was due.
pub struct Writing {
    delay_ns: f64,
    clusters: Option<Clusters>,
    /// When each dirty block is due.
    dirty: HashMap<At, f64, FxBuildHasher>,
    /// The same in order; some have left since.
    due: VecDeque<(f64, At)>,
}

impl Writing {
    /// Nothing is dirty. Blocks are due `delay_ns` after they became dirty.
    pub fn new(delay_ns: f64, clusters: Option<Clusters>) -> Self {
        Self { delay_ns, clusters, dirty: HashMap::default(), due: VecDeque::new() }
    }

    /// Writes `bytes` of a block at time `now`. Returns the runs of blocks that leave; `follow` is that of
    /// [`Clusters::written`].
    pub fn written(&mut self, now: f64, block: At, bytes: u64, follow: impl FnOnce(u64) -> u64) -> Vec<Vec<At>> {
        let due = now + self.delay_ns;
        self.dirty.entry(block).or_insert_with(|| {
            self.due.push_back((due, block));
            due
        });
        let (file, index) = block;
        let Some(clusters) = &mut self.clusters else { return Vec::new() };
        let mut runs = Vec::new();
        for leaving in clusters.written(file, index, u32::try_from(bytes).ok(), follow) {
            let blocks: Vec<At> =
                leaving.map(|at| (file, at)).filter(|block| self.dirty.remove(block).is_some()).collect();
            runs.extend(blocks.chunk_by(|one, next| next.1 == one.1 + 1).map(<[At]>::to_vec));
        }
        runs
    }

    /// The first block due by `time`, and when it was due; it becomes clean.
    pub fn take_due(&mut self, time: f64) -> Option<(f64, At)> {
        while let Some((at, block)) = self.due.front().copied().filter(|(at, _)| *at <= time) {
            self.due.pop_front();
            if self.dirty.get(&block) == Some(&at) {
                self.dirty.remove(&block);
                return Some((at, block));
            }
        }
        None
    }
}
