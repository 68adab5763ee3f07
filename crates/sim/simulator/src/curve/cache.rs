//! A replacement policy alone: a cache without time, in which a block is resident as soon as it is referenced.
//!
//! Under demand fetching, one block at a time, this is all that a run does with the policy, so hits and misses are
//! those of a run (`tests/all/curve.rs` compares them). If objects have sizes, the cache holds bytes: victims are
//! evicted until the object fits, and an object that is larger than the cache, or than the admission limit, is not
//! admitted.
//!
//! Cost: that of the policy. Memory: 9 bytes per distinct block, and the policy's.

use headstart_policy::registry::{Context, ReplacementRow};
use headstart_policy::{BlockState, NoSpace, Replacement, View};
use headstart_types::{Block, Chosen, KeyError, Outcome, Position};

pub struct Cache {
    replacement: Box<dyn Replacement>,
    states: Vec<BlockState>,
    /// By block: its size in the cache.
    sizes: Vec<u64>,
    capacity: u64,
    admitted_max: u64,
    used: u64,
    position: Position,
}

impl Cache {
    /// An empty cache of `capacity` units, which are blocks or bytes. Nothing larger than `admitted_max` is admitted.
    ///
    /// # Errors
    /// If a key of the replacement is wrong.
    pub fn try_new(chosen: &Chosen<ReplacementRow>, capacity: u64, admitted_max: u64) -> Result<Self, KeyError> {
        let frames = u32::try_from(capacity).unwrap_or(u32::MAX);
        let context = Context::plain(chosen.row, frames, Vec::new(), 0);
        let replacement = (chosen.row.build)(&chosen.keys, &context)?;
        Ok(Self {
            replacement,
            states: Vec::new(),
            sizes: Vec::new(),
            capacity,
            admitted_max: admitted_max.min(capacity),
            used: 0,
            position: 0,
        })
    }

    /// References `block`, which takes `size` units. Returns whether it was resident.
    pub fn reference(&mut self, block: Block, size: u64) -> bool {
        if block.index() >= self.states.len() {
            let blocks = (block.index() + 1).next_power_of_two();
            self.states.resize(blocks, BlockState::ABSENT);
            self.sizes.resize(blocks, 0);
            self.replacement.grow(blocks);
        }
        let position = self.position;
        self.position += 1;
        if self.states[block.index()].is_resident() {
            self.replacement.referenced(position, block, Outcome::HitReady);
            return true;
        }
        if size > self.admitted_max {
            return false;
        }
        while self.used + size > self.capacity {
            let view = View {
                cursor: position,
                free: 0,
                blocks: &self.states,
                outstanding: &[0],
                disk_of: &[],
                space: &NoSpace,
                asked: &[],
                found: &[],
            };
            let victim = self.replacement.victim(block, &view).expect("every resident block is evictable");
            self.states[victim.index()] = BlockState::ABSENT;
            self.used -= self.sizes[victim.index()];
        }
        self.used += size;
        self.sizes[block.index()] = size;
        self.states[block.index()] = BlockState::resident();
        self.replacement.inserted(block);
        self.replacement.referenced(position, block, Outcome::Miss);
        false
    }
}
