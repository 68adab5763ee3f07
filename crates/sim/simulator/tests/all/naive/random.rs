//! Tiny random instances from a seed, and a shrinker for those that fail. SplitMix64 (Steele, Lea,
//! Flood 2014), so that a seed means the same instance on every machine.

use super::Instance;

/// SplitMix64.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform in `0..bound`; the bias of the remainder is far below what matters here.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }
}

/// The greatest instance to draw; each size is drawn from 1 to its limit.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub refs: usize,
    pub blocks: usize,
    pub frames: usize,
    pub disks: usize,
    pub fetch: u64,
}

/// The limits of the exact optimum.
pub const TINY: Limits = Limits { refs: 10, blocks: 6, frames: 4, disks: 3, fetch: 6 };

/// The instance of a seed: references uniform, or in runs of consecutive blocks, or in a loop; the initial
/// cache empty, full, or in between, with blocks that may never be referenced.
pub fn instance(seed: u64, limits: Limits) -> Instance {
    let mut random = Random::new(seed);
    let blocks = 1 + random.below(limits.blocks);
    let frames = 1 + random.below(limits.frames);
    let disks = 1 + random.below(limits.disks);
    let fetch = 1 + random.below(limits.fetch as usize) as u64;
    let length = 1 + random.below(limits.refs);
    let shape = random.below(3);
    let mut block = random.below(blocks);
    let mut refs = vec![];
    for _ in 0..length {
        refs.push(block);
        block = match shape {
            0 => random.below(blocks),
            1 if random.below(4) == 0 => random.below(blocks),
            _ => (block + 1) % blocks,
        };
    }
    let disk_of = (0..blocks).map(|_| random.below(disks)).collect();
    let held = match random.below(4) {
        0 => 0,
        1 => random.below(frames.min(blocks) + 1),
        _ => frames.min(blocks),
    };
    let mut initial: Vec<usize> = vec![];
    while initial.len() < held {
        let candidate = random.below(blocks);
        if !initial.contains(&candidate) {
            initial.push(candidate);
        }
    }
    Instance { refs, initial, frames, disk_of, disks, fetch }
}

/// The failing instance made smaller as long as it still fails: references and initial blocks dropped one
/// by one, F and K lowered.
pub fn shrink(mut failing: Instance, fails: impl Fn(&Instance) -> bool) -> Instance {
    loop {
        let mut smaller: Vec<Instance> = vec![];
        for i in 0..failing.refs.len() {
            let mut next = failing.clone();
            next.refs.remove(i);
            smaller.push(next);
        }
        for i in 0..failing.initial.len() {
            let mut next = failing.clone();
            next.initial.remove(i);
            smaller.push(next);
        }
        if failing.fetch > 1 {
            smaller.push(Instance { fetch: failing.fetch - 1, ..failing.clone() });
        }
        if failing.frames > failing.initial.len().max(1) {
            smaller.push(Instance { frames: failing.frames - 1, ..failing.clone() });
        }
        match smaller.into_iter().find(|next| !next.refs.is_empty() && fails(next)) {
            Some(next) => failing = next,
            None => return failing,
        }
    }
}
