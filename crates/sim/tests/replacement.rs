//! Replacement through `demand`: miss counts against the plainest models that one can write, on random strings, and
//! on real traces against counts that other programs agree on.

mod bridge;
mod common;
mod naive;

use std::path::PathBuf;

use bridge::report;
use naive::random::Random;
use naive::Instance;

/// Random strings in the test.
const COUNT: u64 = 3_000;

/// The least recently used block leaves. The oldest of `cache` stands first.
fn lru_misses(refs: &[usize], frames: usize, initial: &[usize]) -> u64 {
    let (mut cache, mut misses) = (initial.to_vec(), 0);
    for block in refs {
        match cache.iter().position(|other| other == block) {
            Some(at) => drop(cache.remove(at)),
            None => {
                misses += 1;
                if cache.len() == frames {
                    cache.remove(0);
                }
            }
        }
        cache.push(*block);
    }
    misses
}

/// The block that has been there longest leaves.
fn fifo_misses(refs: &[usize], frames: usize, initial: &[usize]) -> u64 {
    let (mut cache, mut misses) = (initial.to_vec(), 0);
    for block in refs {
        if !cache.contains(block) {
            misses += 1;
            if cache.len() == frames {
                cache.remove(0);
            }
            cache.push(*block);
        }
    }
    misses
}

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

/// ARC by the cases of Megiddo and Modha, FAST 2003, Figure 4. The least recently used page stands first in each
/// list. As in the library, the two ratios are whole numbers.
#[derive(Default)]
struct NaiveArc {
    c: usize,
    p: usize,
    t1: Vec<usize>,
    t2: Vec<usize>,
    b1: Vec<usize>,
    b2: Vec<usize>,
}

/// Takes `page` out of a list; whether it was there.
fn take(list: &mut Vec<usize>, page: usize) -> bool {
    let at = list.iter().position(|other| *other == page);
    at.map(|at| list.remove(at)).is_some()
}

impl NaiveArc {
    /// Whether `x` hits.
    fn request(&mut self, x: usize) -> bool {
        // Case I: in T1 or T2.
        if take(&mut self.t1, x) || take(&mut self.t2, x) {
            self.t2.push(x);
            return true;
        }
        let (b1, b2) = (self.b1.len(), self.b2.len());
        if self.b1.contains(&x) {
            // Case II.
            let delta = if b1 >= b2 { 1 } else { b2 / b1 };
            self.p = (self.p + delta).min(self.c);
            self.replace(x);
            take(&mut self.b1, x);
            self.t2.push(x);
        } else if self.b2.contains(&x) {
            // Case III.
            let delta = if b2 >= b1 { 1 } else { b1 / b2 };
            self.p = self.p.saturating_sub(delta);
            self.replace(x);
            take(&mut self.b2, x);
            self.t2.push(x);
        } else {
            self.case_iv(x);
        }
        false
    }

    /// In no list.
    fn case_iv(&mut self, x: usize) {
        let l1 = self.t1.len() + self.b1.len();
        let all = l1 + self.t2.len() + self.b2.len();
        if l1 == self.c {
            // Case A.
            if self.t1.len() < self.c {
                self.b1.remove(0);
                self.replace(x);
            } else {
                self.t1.remove(0);
            }
        } else if all >= self.c {
            // Case B.
            if all == 2 * self.c {
                self.b2.remove(0);
            }
            self.replace(x);
        }
        self.t1.push(x);
    }

    fn replace(&mut self, x: usize) {
        let t1 = self.t1.len();
        if t1 > 0 && (t1 > self.p || (self.b2.contains(&x) && t1 == self.p)) {
            let page = self.t1.remove(0);
            self.b1.push(page);
        } else {
            let page = self.t2.remove(0);
            self.b2.push(page);
        }
    }
}

fn arc_misses(refs: &[usize], frames: usize, initial: &[usize]) -> u64 {
    let mut arc = NaiveArc { c: frames, t1: initial.to_vec(), ..NaiveArc::default() };
    refs.iter().filter(|block| !arc.request(**block)).count() as u64
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
    type Model = fn(&[usize], usize, &[usize]) -> u64;
    let models: [(&str, Model); 4] =
        [("lru", lru_misses), ("fifo", fifo_misses), ("min", min_misses), ("arc", arc_misses)];
    for seed in 0..COUNT {
        let i = bridge::canonical(&string(&mut Random::new(seed)));
        for (name, model) in models {
            let report = report(&i, &format!("name = \"demand\", replacement = \"{name}\""));
            let expected = model(&i.refs, i.frames, &i.initial);
            assert_eq!(report.counts.misses, expected, "seed {seed}, {name}: {i:?}");
            assert_eq!(report.counts.demand_fetches, expected, "seed {seed}, {name}");
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
