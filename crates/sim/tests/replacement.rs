//! Replacement through `demand`: miss counts against the plainest models that one can write, on random strings, and
//! on real traces against counts that other programs agree on.

mod bridge;
mod common;
mod naive;

use std::path::PathBuf;

use bridge::report;
use headstart_policy::registry::{Context, ReplacementRow, REPLACEMENTS};
use headstart_policy::{BlockState, Replacement, View};
use headstart_types::{Block, Disk, Nanos, Outcome};
use naive::random::Random;
use naive::replacement::Model;
use naive::Instance;

/// Random strings through the whole system.
const COUNT: u64 = 3_000;
/// Random strings with read-ahead, pins and removals, for each policy.
const EVENT_STRINGS: u64 = 20_000;

/// The block whose next use is furthest away leaves.
fn min_misses(refs: &[usize], frames: usize, initial: &[usize]) -> u64 {
    let (mut cache, mut misses) = (initial.to_vec(), 0);
    for (now, block) in refs.iter().enumerate() {
        if !cache.contains(block) {
            misses += 1;
            if cache.len() == frames {
                let next = |block: &usize| refs[now..].iter().position(|other| other == block).unwrap_or(usize::MAX);
                let victim = (0..cache.len()).max_by_key(|at| next(&cache[*at])).expect("a frame");
                cache.remove(victim);
            }
            cache.push(*block);
        }
    }
    misses
}

/// Stretches of a loop, of uniform references, and of a hot set, so that ARC's target moves both ways.
fn string(random: &mut Random) -> Instance {
    let blocks = 1 + random.below(50);
    let mut refs = vec![];
    for _ in 0..1 + random.below(8) {
        let (shape, start) = (random.below(3), random.below(blocks));
        for at in 0..1 + random.below(90) {
            refs.push(match shape {
                0 => (start + at) % blocks,
                1 => random.below(blocks),
                _ => (start + random.below(4)) % blocks,
            });
        }
    }
    let frames = 1 + random.below(30);
    let held = if random.below(2) == 0 { 0 } else { random.below(frames.min(blocks) + 1) };
    Instance { refs, initial: (0..held).collect(), frames, disk_of: vec![0; blocks], disks: 1, fetch: 1 }
}

#[test]
fn misses_equal_those_of_the_plainest_models() {
    for seed in 0..COUNT {
        let i = bridge::canonical(&string(&mut Random::new(seed)));
        for row in REPLACEMENTS {
            let report = report(&i, &format!("name = \"demand\", replacement = \"{}\"", row.name));
            let expected = match row.name {
                "min" => min_misses(&i.refs, i.frames, &i.initial),
                name => naive::replacement::misses(name, &i.refs, i.frames, &i.initial),
            };
            assert_eq!(report.counts.misses, expected, "seed {seed}, {}: {i:?}", row.name);
            assert_eq!(report.counts.demand_fetches, expected, "seed {seed}, {}", row.name);
        }
    }
}

/// What `row` is built from.
fn context(row: &'static ReplacementRow, frames: usize, initial: &[usize], blocks: usize) -> Context {
    Context {
        frames: frames as u32,
        initial: initial.iter().map(|block| Block(*block as u32)).collect(),
        disks: 1,
        disk_of: vec![Disk(0); blocks].into(),
        replacement: row,
        replacement_keys: (row.defaults)(),
        hints: None,
        nominal_service: Nanos(1),
        uniform: true,
        mean_compute: Nanos(1),
        constant_compute: true,
    }
}

fn build(row: &'static ReplacementRow, frames: usize, initial: &[usize], blocks: usize) -> Box<dyn Replacement> {
    let context = context(row, frames, initial, blocks);
    (row.build)(context.replacement_keys.clone(), &context).unwrap_or_else(|error| panic!("{error}"))
}

/// A cache whose fetches end when it is told, with read-ahead, pins and removals; two of one policy hear the same.
struct Cache<'a> {
    states: Vec<BlockState>,
    free: usize,
    fast: Box<dyn Replacement>,
    model: &'a mut dyn Model,
}

impl Cache<'_> {
    fn view(states: &[BlockState]) -> View<'_> {
        View { cursor: 0, free: 0, blocks: states, outstanding: &[], disk_of: &[] }
    }

    /// Issues a fetch of an absent block if there is a frame for it.
    fn fetch(&mut self, block: usize) -> bool {
        if self.free > 0 {
            self.free -= 1;
        } else {
            let states = &self.states;
            let victim = self.fast.victim(Block(block as u32), &Self::view(states)).map(|victim| victim.index());
            let expected = self.model.victim(block, &|block| states[block].is_evictable());
            assert_eq!(victim, expected, "the victim for {block}");
            let Some(victim) = victim else {
                assert!(!states.iter().any(|state| state.is_evictable()), "a block could have gone");
                return false;
            };
            assert!(states[victim].is_evictable(), "{victim} is no victim");
            self.states[victim] = BlockState::ABSENT;
        }
        self.states[block] = BlockState::in_flight(false);
        true
    }

    fn arrive(&mut self, block: usize) {
        self.states[block] = self.states[block].arrived();
        self.fast.inserted(Block(block as u32));
        self.model.inserted(block);
    }

    fn reference(&mut self, block: usize, outcome: Outcome) {
        self.fast.referenced(0, Block(block as u32), outcome);
        self.model.referenced(block);
    }

    /// One step of a random life.
    fn step(&mut self, random: &mut Random, wanted: usize) {
        let block = random.below(self.states.len());
        let state = self.states[block];
        match random.below(10) {
            0 | 1 if state.is_absent() => drop(self.fetch(block)),
            0..=2 if state.is_in_flight() => self.arrive(block),
            3 if state.is_resident() => self.states[block] = state.pinned(!state.is_pinned()),
            4 if state.is_evictable() => {
                self.fast.removed(Block(block as u32));
                self.model.removed(block);
                self.states[block] = BlockState::ABSENT;
                self.free += 1;
            }
            _ => self.demand(wanted),
        }
    }

    fn demand(&mut self, block: usize) {
        let state = self.states[block];
        if state.is_resident() {
            self.reference(block, Outcome::HitReady);
        } else if state.is_in_flight() {
            self.arrive(block);
            self.reference(block, Outcome::HitUnready);
        } else if self.fetch(block) {
            self.arrive(block);
            self.reference(block, Outcome::Miss);
        }
    }
}

/// Read-ahead, pins and removals mixed into reference strings: the same victims as the model's, one by one.
#[test]
fn victims_equal_those_of_the_plainest_models() {
    for row in REPLACEMENTS.iter().filter(|row| !row.hinted) {
        for seed in 0..EVENT_STRINGS {
            let mut random = Random::new(seed);
            let i = bridge::canonical(&string(&mut random));
            let blocks = i.disk_of.len();
            let mut states = vec![BlockState::ABSENT; blocks];
            i.initial.iter().for_each(|block| states[*block] = BlockState::resident());
            let mut model = naive::replacement::model(row.name, i.frames, &i.initial);
            let fast = build(row, i.frames, &i.initial, blocks);
            let free = i.frames - i.initial.len();
            let mut cache = Cache { states, free, fast, model: &mut *model };
            let life = std::panic::AssertUnwindSafe(|| i.refs.iter().for_each(|block| cache.step(&mut random, *block)));
            if std::panic::catch_unwind(life).is_err() {
                panic!("{}, seed {seed}: see above; {i:?}", row.name);
            }
        }
    }
}

/// A policy that has nothing to give is as it was: one that was asked in vain goes on like one that was not.
#[test]
fn asking_in_vain_changes_nothing() {
    for row in REPLACEMENTS.iter().filter(|row| !row.hinted) {
        for seed in 0..300 {
            let mut random = Random::new(seed);
            let i = bridge::canonical(&string(&mut random));
            let blocks = i.disk_of.len();
            let mut twins = [0, 1].map(|_| build(row, i.frames, &[], blocks));
            let (mut states, mut free) = (vec![BlockState::ABSENT; blocks], i.frames);
            for block in i.refs {
                let number = Block(block as u32);
                let outcome = if states[block].is_resident() { Outcome::HitReady } else { Outcome::Miss };
                if outcome == Outcome::Miss {
                    let pinned: Vec<BlockState> = states.iter().map(|state| state.pinned(true)).collect();
                    if free == 0 {
                        assert_eq!(twins[0].victim(number, &Cache::view(&pinned)), None, "{}", row.name);
                        let victims = twins.each_mut().map(|twin| twin.victim(number, &Cache::view(&states)));
                        assert_eq!(victims[0], victims[1], "{}, seed {seed}", row.name);
                        states[victims[0].expect("a block leaves").index()] = BlockState::ABSENT;
                        free += 1;
                    }
                    free -= 1;
                    states[block] = BlockState::resident();
                    twins.iter_mut().for_each(|twin| twin.inserted(number));
                }
                twins.iter_mut().for_each(|twin| twin.referenced(0, number, outcome));
            }
        }
    }
}

#[test]
fn arc_by_hand() {
    // 2 frames, a b a c b: a, b miss (T1 = a b); a hits (T1 = b, T2 = a); c is new, |T1| > p = 0: b leaves to B1;
    // b misses in B1: p = 1, |T1| = 1 is not above p: T2's a leaves to B2. 4 misses, and c and b are left.
    let refs = [0, 1, 0, 2, 1];
    let i = Instance { refs: refs.to_vec(), initial: vec![], frames: 2, disk_of: vec![0; 3], disks: 1, fetch: 1 };
    let misses = |refs: &[usize]| {
        report(&Instance { refs: refs.to_vec(), ..i.clone() }, "name = \"demand\", replacement = \"arc\"").counts.misses
    };
    assert_eq!(misses(&refs), 4);
    assert_eq!(misses(&[0, 1, 0, 2, 1, 2, 1]), 4, "c and b hit");
    assert_eq!(misses(&[0, 1, 0, 2, 1, 0]), 5, "a does not");
}

/// A trace that does not come with the project; says so where it is absent.
fn third_party(path: &str) -> Option<PathBuf> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/traces/third-party").join(path);
    if !path.exists() {
        eprintln!("SKIPPED: {} is not here", path.display());
        return None;
    }
    Some(path)
}

fn misses(path: &str, block_size: &str, replacement: &str, frames: u32) -> Option<u64> {
    let path = third_party(path)?;
    let report = common::run(&format!(
        "workload = {{trace = {path:?}, block_size = \"{block_size}\", compute = \"0s\"}}\ncache = {{blocks = {frames}}}\n\
         policy = {{name = \"demand\", replacement = \"{replacement}\"}}\n\
         device = {{model = \"uniform\", fetch_time = \"1ms\"}}\n"
    ));
    Some(report.counts.misses)
}

/// libCacheSim and an independent program agree on these.
#[test]
fn misses_of_a_block_trace_equal_those_of_other_programs() {
    let rows = [("lru", 1000, 94_823), ("arc", 1000, 94_027), ("fifo", 10_000, 79_210), ("min", 10_000, 61_843)];
    for (replacement, frames, expected) in rows {
        if let Some(misses) = misses("blocks/cloudPhysicsIO.oracleGeneral.bin", "object", replacement, frames) {
            assert_eq!(misses, expected, "{replacement} at {frames}");
        }
    }
}

/// The same on traces of the LIRS authors, 500 frames.
#[test]
fn misses_of_buffer_cache_traces_equal_those_of_other_programs() {
    for (name, lru, min) in [("cs", 6657, 4657), ("ps", 5376, 4378), ("sprite", 29_074, 16_236)] {
        for (replacement, expected) in [("lru", lru), ("min", min)] {
            if let Some(misses) = misses(&format!("buffer-cache/{name}.trace.gz"), "object", replacement, 500) {
                assert_eq!(misses, expected, "{replacement} on {name}");
            }
        }
    }
}
