//! Conformance checks for replacements and read-aheads, including your own.
//!
//! Each check builds what `make` returns for a few hundred small systems drawn from fixed seeds, and panics at the
//! first broken promise with the seed and the step. The rows of this crate pass the same checks. A check takes well
//! under a second.
//!
//! ```
//! use headstart_policy::{conformance, Replacement, View};
//! use headstart_types::{Block, Outcome, Position};
//!
//! /// Evicts the resident block of the lowest number.
//! struct Lowest(std::collections::BTreeSet<Block>);
//!
//! impl Replacement for Lowest {
//!     fn grow(&mut self, _: usize) {}
//!     fn victim(&mut self, _: Block, view: &View<'_>) -> Option<Block> {
//!         let victim = self.0.iter().copied().find(|block| view.state(*block).is_evictable())?;
//!         self.0.take(&victim)
//!     }
//!     fn inserted(&mut self, block: Block) {
//!         self.0.insert(block);
//!     }
//!     fn referenced(&mut self, _: Position, _: Block, _: Outcome) {}
//!     fn removed(&mut self, block: Block) {
//!         self.0.remove(&block);
//!     }
//! }
//!
//! conformance::replacement(|system| Box::new(Lowest(system.initial.iter().copied().collect())));
//! ```
//!
//! Whole [`Policy`](crate::Policy) implementations are checked on a level, by `headstart_engine::conformance`. A
//! read-ahead is checked like a replacement:
//!
//! ```
//! use headstart_policy::conformance;
//! use headstart_policy::readahead::Ra;
//!
//! conformance::read_ahead(|_context| Box::new(Ra::new(4, None)));
//! ```

use std::collections::BTreeSet;

use headstart_types::seed::{mix, GOLDEN};
use headstart_types::{Block, Nanos, Outcome};

use crate::readahead::{Asked, Cached, Found, ReadAhead, ReadAheadContext, Run};
use crate::{BlockState, NoSpace, Replacement, View};

/// The system that a replacement is made for.
#[derive(Debug, Clone)]
pub struct System {
    /// Frames of the cache, at least 1.
    pub frames: u32,
    /// Blocks resident at the start, least recently used first.
    pub initial: Vec<Block>,
    /// Exclusive upper bound of the block numbers.
    pub blocks: usize,
}

/// Random numbers from a seed.
#[derive(Debug, Clone)]
pub struct Draws(u64);

impl Draws {
    /// The random numbers of a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below `bound`; 0 if `bound` is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        let drawn = mix(self.0);
        self.0 = self.0.wrapping_add(GOLDEN);
        drawn % bound.max(1)
    }
}

/// Checks a replacement: a victim is resident and not pinned; one is returned exactly if such a block exists; a removed
/// block is never returned; the same events give the same victims.
///
/// # Panics
/// The replacement breaks a promise.
pub fn replacement(make: impl Fn(&System) -> Box<dyn Replacement>) {
    for seed in 0..300 {
        let (first, second) = (victims(&make, seed), victims(&make, seed));
        assert_eq!(first, second, "seed {seed}: the same events must give the same victims");
    }
}

/// Runs the system of one seed and returns its victims in order.
fn victims(make: &impl Fn(&System) -> Box<dyn Replacement>, seed: u64) -> Vec<Block> {
    let mut draws = Draws::new(seed);
    let blocks = 1 + draws.below(40) as usize;
    let frames = 1 + draws.below(12) as u32;
    let held = draws.below(u64::from(frames.min(blocks as u32)) + 1) as u32;
    let system = System { frames, initial: (0..held).map(Block).collect(), blocks };
    let mut replacement = make(&system);
    replacement.grow(blocks);
    let mut states = vec![BlockState::ABSENT; blocks];
    system.initial.iter().for_each(|block| states[block.index()] = BlockState::resident());
    let mut victims = Vec::new();
    let (walks, mut at) = (draws.below(2) == 0, 0);
    for step in 0..250 {
        at = if walks && draws.below(4) > 0 { at + 1 } else { draws.below(blocks as u64) as usize } % blocks;
        let block = Block(at as u32);
        match draws.below(12) {
            // A process starts or stops waiting for a block.
            0 if states[at].is_resident() => states[at] = states[at].pinned(!states[at].is_pinned()),
            // A coordinator removes it.
            1 if states[at].is_evictable() => {
                replacement.removed(block);
                states[at] = BlockState::ABSENT;
            }
            kind => {
                let hit = states[at].is_resident();
                if !hit {
                    let used = states.iter().filter(|state| state.is_resident()).count() as u32;
                    if used == frames && !make_way(&mut *replacement, &mut states, block, &mut victims, (seed, step)) {
                        continue;
                    }
                    replacement.inserted(block);
                    states[at] = BlockState::resident();
                }
                // Some blocks arrive before their reference, and some of those are never referenced.
                if hit || kind < 10 {
                    replacement.referenced(step, block, if hit { Outcome::HitReady } else { Outcome::Miss });
                }
            }
        }
    }
    victims
}

/// Evicts a block for `incoming`; returns whether one could be evicted.
fn make_way(
    replacement: &mut dyn Replacement,
    states: &mut [BlockState],
    incoming: Block,
    victims: &mut Vec<Block>,
    (seed, step): (u64, u32),
) -> bool {
    let view = View {
        cursor: step,
        free: 0,
        blocks: states,
        outstanding: &[],
        disk_of: &[],
        space: &NoSpace,
        asked: &[],
        found: &[],
    };
    let can_go = states.iter().any(|state| state.is_evictable());
    let victim = replacement.victim(incoming, &view);
    assert_eq!(victim.is_some(), can_go, "seed {seed}, step {step}: whether a block can go");
    let Some(victim) = victim else { return false };
    let state = states.get(victim.index()).copied().unwrap_or_default();
    assert!(state.is_evictable(), "seed {seed}, step {step}: {victim:?} is absent or pinned");
    states[victim.index()] = BlockState::ABSENT;
    victims.push(victim);
    true
}

/// Checks a read-ahead: it survives any request, names blocks of the requested file only, answers the same requests in
/// the same way, and bounds its memory.
///
/// # Panics
/// The read-ahead breaks a promise.
pub fn read_ahead(make: impl Fn(&ReadAheadContext) -> Box<dyn ReadAhead>) {
    check(&make, true);
}

/// Checks a predictor: as [`read_ahead`], except that it may name blocks of any file.
///
/// # Panics
/// The predictor breaks a promise.
pub fn predictor(make: impl Fn(&ReadAheadContext) -> Box<dyn ReadAhead>) {
    check(&make, false);
}

fn check(make: &impl Fn(&ReadAheadContext) -> Box<dyn ReadAhead>, own_file: bool) {
    for seed in 0..100 {
        let (first, second) = (answers(make, seed, own_file), answers(make, seed, own_file));
        assert_eq!(first, second, "seed {seed}: the same requests must give the same answers");
    }
}

/// A cache in which named blocks arrive at once and the oldest arrival is evicted.
struct Level {
    frames: u32,
    file_blocks: Option<u64>,
    cached: BTreeSet<(u32, u64)>,
    order: std::collections::VecDeque<(u32, u64)>,
}

impl Cached for Level {
    fn is_cached(&self, file: u32, index: u64) -> bool {
        self.cached.contains(&(file, index))
    }

    fn is_resident(&self, file: u32, index: u64) -> bool {
        self.is_cached(file, index)
    }

    fn file_blocks(&self, _: u32) -> Option<u64> {
        self.file_blocks
    }

    fn frames(&self) -> u32 {
        self.frames
    }
}

impl Level {
    fn insert(&mut self, read_ahead: &mut dyn ReadAhead, file: u32, index: u64) {
        if self.file_blocks.is_some_and(|blocks| index >= blocks) || !self.cached.insert((file, index)) {
            return;
        }
        self.order.push_back((file, index));
        if self.order.len() > self.frames as usize {
            let (file, index) = self.order.pop_front().expect("more than the frames");
            self.cached.remove(&(file, index));
            read_ahead.evicted(file, index, true);
        }
    }
}

/// Runs the requests of one seed and returns the runs named for each.
fn answers(make: &impl Fn(&ReadAheadContext) -> Box<dyn ReadAhead>, seed: u64, own_file: bool) -> Vec<Vec<Run>> {
    let mut draws = Draws::new(seed);
    let frames = 1 + draws.below(200) as u32;
    let context = ReadAheadContext { block_bytes: 4096, frames, drive: None, future: None };
    let mut read_ahead = make(&context);
    let file_blocks = (draws.below(2) == 0).then(|| 1 + draws.below(400));
    let mut level = Level { frames, file_blocks, cached: BTreeSet::new(), order: [].into() };
    let mut next = 0u64;
    let mut all = Vec::new();
    for step in 0..200u64 {
        let first = match draws.below(8) {
            0 => draws.below(300),
            1 if file_blocks.is_none() => u64::MAX - draws.below(9),
            _ => next,
        };
        let count = 1 + draws.below(9) as u32;
        let asked =
            Asked { file: draws.below(3) as u32, first, count, client: draws.below(2) as u32, ends_inside: false };
        next = asked.end() % (1 << 40);
        let indices = || (0..u64::from(count)).filter_map(|offset| first.checked_add(offset));
        let found = |index| if level.is_cached(asked.file, index) { Found::ReadyPrefetched } else { Found::Absent };
        let found: Vec<Found> = indices().map(found).collect();
        let mut runs = Vec::new();
        read_ahead.asked(Nanos(step * 1_000_000), &asked, &found, &level, &mut runs);
        let stray = runs.iter().find(|run| own_file && run.count > 0 && run.file != asked.file);
        assert!(stray.is_none(), "seed {seed}, step {step}: {stray:?} is of another file than {asked:?}");
        indices().for_each(|index| level.insert(&mut *read_ahead, asked.file, index));
        for run in &runs {
            (run.first..run.end()).take(1 << 10).for_each(|index| level.insert(&mut *read_ahead, run.file, index));
        }
        all.push(runs);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::readahead::Needs;
    use crate::registry::read_aheads;
    use crate::registry::{Context, REPLACEMENTS};
    use headstart_types::Chosen;
    use std::panic::catch_unwind;
    use std::sync::Arc;

    #[test]
    fn every_replacement_without_hints_conforms() {
        for row in REPLACEMENTS.iter().copied().filter(|row| !row.hinted) {
            replacement(|system| {
                let context = Context::plain(row, system.frames, system.initial.clone(), system.blocks);
                (row.build)(&context.replacement.keys, &context).expect(row.name)
            });
        }
    }

    #[test]
    fn every_read_ahead_conforms() {
        for row in read_aheads().filter(|row| row.needs() != Needs::Drive) {
            let make = |context: &ReadAheadContext| -> Box<dyn ReadAhead> {
                let context = ReadAheadContext { future: Some(Arc::new([])), ..context.clone() };
                row.build_read_ahead(&Chosen::plain(row).keys, &context).expect(row.name)
            };
            if row.is_predictor() {
                predictor(make)
            } else {
                read_ahead(make)
            }
        }
    }

    /// Evicts block 0, regardless of its state.
    struct Broken;

    impl Replacement for Broken {
        fn grow(&mut self, _: usize) {}
        fn victim(&mut self, _: Block, _: &View<'_>) -> Option<Block> {
            Some(Block(0))
        }
        fn inserted(&mut self, _: Block) {}
        fn referenced(&mut self, _: u32, _: Block, _: Outcome) {}
        fn removed(&mut self, _: Block) {}
    }

    #[test]
    fn what_breaks_a_promise_is_found() {
        assert!(catch_unwind(|| replacement(|_| Box::new(Broken))).is_err());
        struct Stray;
        impl ReadAhead for Stray {
            fn asked(&mut self, _: Nanos, asked: &Asked, _: &[Found], _: &dyn Cached, prefetch: &mut Vec<Run>) {
                prefetch.push(Run { file: asked.file + 1, first: 0, count: 1 });
            }
        }
        assert!(catch_unwind(|| read_ahead(|_| Box::new(Stray))).is_err());
    }
}
