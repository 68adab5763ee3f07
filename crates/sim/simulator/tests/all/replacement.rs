//! Replacement through `demand`: miss counts against the plainest models that one can write, on random strings, and
//! on real traces against counts that other programs agree on.

use std::io::Write as _;
use std::path::PathBuf;

use headstart_policy::registry::{Context, ReplacementRow, REPLACEMENTS};
use headstart_policy::{BlockState, NoSpace, Replacement, View};
use headstart_sim::Report;
use headstart_types::{Block, Outcome};

use crate::bridge;
use crate::bridge::report;
use crate::common;
use crate::naive;
use crate::naive::random::Random;
use crate::naive::replacement::Model;
use crate::naive::Instance;

/// Random strings through the whole system, in a quick run.
const COUNT: u64 = 1_000;
/// Random strings with read-ahead, pins and removals, for each policy, in a quick run.
const EVENT_STRINGS: u64 = 2_000;

/// The block whose next use is furthest away is evicted.
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
    let wrong = bridge::first_of(common::times(COUNT), |seed| {
        let i = bridge::canonical(&string(&mut Random::new(seed)));
        REPLACEMENTS.iter().find_map(|row| {
            let report = report(&i, &format!("name = \"demand\", replacement = \"{}\"", row.name));
            let expected = match row.name {
                "min" => min_misses(&i.refs, i.frames, &i.initial),
                name => naive::replacement::misses(name, &i.refs, i.frames, &i.initial),
            };
            let found = (report.counts.misses, report.counts.demand_fetches);
            (found != (expected, expected)).then(|| format!("{}: {found:?}, not {expected}: {i:?}", row.name))
        })
    });
    assert_eq!(wrong, None, "seed and what is wrong");
}

fn build(row: &'static ReplacementRow, frames: usize, initial: &[usize], blocks: usize) -> Box<dyn Replacement> {
    build_with(row, "", frames, initial, blocks)
}

/// The same with some keys.
fn build_with(
    row: &'static ReplacementRow,
    keys: &str,
    frames: usize,
    initial: &[usize],
    blocks: usize,
) -> Box<dyn Replacement> {
    let initial = initial.iter().map(|block| Block(*block as u32)).collect();
    let context = Context::plain(row, frames as u32, initial, blocks);
    let keys = row.keys.read(keys.parse().expect("TOML")).expect("good keys");
    (row.build)(&keys, &context).unwrap_or_else(|error| panic!("{error}"))
}

/// A row with its default keys and its model; and `s3-fifo` with `fill_main`.
type Pair = (&'static ReplacementRow, &'static str, fn(&str, usize, &[usize]) -> Box<dyn Model>);

fn pairs() -> Vec<Pair> {
    let rows = REPLACEMENTS.iter().copied().filter(|row| !row.hinted);
    let mut pairs: Vec<Pair> = rows.map(|row| (row, "", naive::replacement::model as _)).collect();
    let s3_fifo = pairs.iter().find(|pair| pair.0.name == "s3-fifo").expect("a row").0;
    pairs.push((s3_fifo, "fill_main = true", |_, frames, held| {
        naive::replacement::s3_fifo_that_fills_main(frames, held)
    }));
    pairs
}

/// A cache whose fetches end when the test says so, with read-ahead, pins and removals; two caches of one policy get
/// the same events.
struct Cache<'a> {
    states: Vec<BlockState>,
    free: usize,
    fast: Box<dyn Replacement>,
    model: &'a mut dyn Model,
}

impl Cache<'_> {
    fn view(states: &[BlockState]) -> View<'_> {
        View {
            cursor: 0,
            free: 0,
            blocks: states,
            outstanding: &[],
            disk_of: &[],
            space: &NoSpace,
            asked: &[],
            found: &[],
        }
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
    for (row, keys, model) in pairs() {
        for seed in 0..common::times(EVENT_STRINGS) {
            let mut random = Random::new(seed);
            let i = bridge::canonical(&string(&mut random));
            let blocks = i.disk_of.len();
            let mut states = vec![BlockState::ABSENT; blocks];
            i.initial.iter().for_each(|block| states[*block] = BlockState::resident());
            let mut model = model(row.name, i.frames, &i.initial);
            let fast = build_with(row, keys, i.frames, &i.initial, blocks);
            let free = i.frames - i.initial.len();
            let mut cache = Cache { states, free, fast, model: &mut *model };
            let life = std::panic::AssertUnwindSafe(|| i.refs.iter().for_each(|block| cache.step(&mut random, *block)));
            if std::panic::catch_unwind(life).is_err() {
                panic!("{} {keys}, seed {seed}: see above; {i:?}", row.name);
            }
        }
    }
}

/// A policy without a victim does not change: after a request in vain it behaves like one that was not asked.
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

/// A trace that does not come with the project; prints a note if it is absent.
fn third_party(path: &str) -> Option<PathBuf> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../../shared/traces/third-party").join(path);
    if !path.exists() {
        // Bypasses libtest's capture: otherwise a passing test would not show what it printed.
        let _ = writeln!(std::io::stderr(), "SKIPPED: {} is not here: no comparison", path.display());
        return None;
    }
    Some(path)
}

fn misses(path: &str, block_size: &str, replacement: &str, frames: u32) -> Option<u64> {
    run_trace(path, block_size, replacement, frames).map(|report| report.counts.misses)
}

/// `replacement` is a name, or a table with keys.
fn run_trace(path: &str, block_size: &str, replacement: &str, frames: u32) -> Option<Report> {
    let path = third_party(path)?;
    let replacement = if replacement.starts_with('{') { replacement.to_owned() } else { format!("\"{replacement}\"") };
    Some(common::run(&format!(
        "workload = {{trace = {path:?}, block_size = \"{block_size}\", compute = \"0s\", issue = \"blocks\"}}\ncache = {{blocks = {frames}}}\n\
         policy = {{name = \"demand\", replacement = {replacement}}}\n\
         device = {{model = \"uniform\", fetch_time = \"1ms\"}}\n"
    )))
}

/// libCacheSim and an independent program agree on these.
#[test]
fn misses_of_a_block_trace_equal_those_of_other_programs() {
    let rows = [("lru", 1000, 94_823), ("fifo", 10_000, 79_210), ("min", 10_000, 61_843)];
    let arc = [(100, 97_330), (1000, 94_027), (5000, 87_770), (10_000, 79_413), (20_000, 64_422)];
    let rows = rows.into_iter().chain(arc.map(|(frames, misses)| ("arc", frames, misses)));
    for (replacement, frames, expected) in rows {
        if let Some(misses) = misses("blocks/cloudPhysicsIO.oracleGeneral.bin", "object", replacement, frames) {
            assert_eq!(misses, expected, "{replacement} at {frames}");
        }
    }
}

/// The same on traces of the LIRS authors, 500 frames.
#[test]
fn misses_of_buffer_cache_traces_equal_those_of_other_programs() {
    if let Some(misses) = misses("buffer-cache/sprite.trace.gz", "object", "arc", 500) {
        assert_eq!(misses, 30_323, "arc on sprite: its target is a fraction");
    }
    for (name, lru, min) in [("cs", 6657, 4657), ("ps", 5376, 4378), ("sprite", 29_074, 16_236)] {
        for (replacement, expected) in [("lru", lru), ("min", min)] {
            if let Some(misses) = misses(&format!("buffer-cache/{name}.trace.gz"), "object", replacement, 500) {
                assert_eq!(misses, expected, "{replacement} on {name}");
            }
        }
    }
}

/// By trace of the LIRS authors and frames: misses of sieve, 2q, lfu, clock and of s3-fifo with `fill_main`, and of
/// lirs.
const MISSES: &[(&str, u32, [u64; 6])] = &[
    ("cs", 100, [6_657, 6_657, 6_657, 6_657, 6_346, 6_300]),
    ("cs", 500, [6_657, 6_657, 6_657, 6_657, 4_953, 4_717]),
    ("cs", 1000, [6_657, 4_112, 6_657, 6_657, 4_111, 2_744]),
    ("gli", 100, [5_932, 5_960, 5_932, 5_960, 5_663, 5_582]),
    ("gli", 500, [5_932, 5_944, 5_932, 5_944, 4_178, 3_994]),
    ("gli", 1000, [4_130, 4_164, 4_130, 5_335, 3_348, 2_964]),
    ("ps", 100, [9_472, 8_718, 9_472, 9_573, 8_511, 7_282]),
    ("ps", 500, [4_953, 5_165, 4_953, 5_376, 4_533, 4_452]),
    ("ps", 1000, [4_953, 5_165, 4_953, 4_954, 3_627, 3_462]),
    ("cpp", 100, [2_756, 2_408, 2_762, 2_591, 2_126, 2_031]),
    ("cpp", 500, [1_286, 1_462, 1_286, 1_303, 1_277, 1_275]),
    ("cpp", 1000, [1_229, 1_351, 1_229, 1_229, 1_231, 1_228]),
    ("sprite", 100, [100_686, 96_034, 125_327, 104_662, 94_919, 100_368]),
    ("sprite", 500, [36_723, 29_238, 99_674, 29_016, 28_565, 32_209]),
    ("sprite", 1000, [17_459, 13_891, 51_933, 12_992, 14_328, 16_589]),
    ("multi1", 100, [11_839, 9_585, 12_065, 12_802, 9_115, 8_841]),
    ("multi1", 500, [8_044, 8_253, 8_044, 8_345, 7_097, 7_033]),
    ("multi1", 1000, [7_970, 8_192, 7_970, 8_154, 6_146, 5_011]),
    ("multi2", 100, [24_312, 20_052, 24_489, 24_376, 19_373, 17_952]),
    ("multi2", 500, [16_902, 16_437, 16_902, 16_642, 13_219, 12_930]),
    ("multi2", 1000, [12_970, 13_400, 12_970, 13_677, 11_499, 11_012]),
    ("multi3", 100, [27_673, 24_043, 27_795, 28_140, 24_717, 21_865]),
    ("multi3", 500, [20_219, 19_529, 20_219, 20_043, 17_972, 16_768]),
    ("multi3", 1000, [18_399, 16_694, 18_399, 18_817, 14_706, 15_255]),
    ("2_pools", 100, [52_105, 61_753, 53_135, 76_134, 55_371, 55_111]),
    ("2_pools", 500, [48_136, 48_246, 48_138, 48_341, 48_087, 48_043]),
    ("2_pools", 1000, [45_639, 45_757, 45_639, 45_547, 45_640, 45_608]),
];

/// The first five as libCacheSim 0.3.5 counts them in its defaults; it is by the authors of SIEVE and S3-FIFO. The last
/// as a program counts that follows, step by step, the LIRS authors' `lirs.c` of 15 November 2002 (HIR frames 1 %, at
/// least 2; S up to 2500 caches long; references in a row are one). libCacheSim's own LIRS bounds S and counts
/// references in a row, and so differs.
#[test]
fn misses_equal_those_of_libcachesim_and_of_the_lirs_authors_program() {
    let replacements = ["sieve", "2q", "lfu", "clock", "{name = 's3-fifo', fill_main = true}", "lirs"];
    for (name, frames, expected) in MISSES {
        for (replacement, expected) in replacements.iter().zip(expected) {
            let path = format!("buffer-cache/{name}.trace.gz");
            let Some(misses) = misses(&path, "object", replacement, *frames) else { return };
            assert_eq!(misses, *expected, "{replacement} on {name} at {frames}");
        }
    }
}

/// Hit ratios of LRU in per cent, at 250, 500 … 2000 frames, that others published for two of these traces: pull
/// requests 131 and 132 of BitFaster.Caching, July 2022.
#[test]
fn hit_ratios_of_lru_are_the_published_ones() {
    let published = [
        ("gli.trace.gz", "object", [0.91, 0.95, 1.15, 11.21, 21.25, 36.56, 45.04, 57.41]),
        ("OLTP.lis.zst", "512B", [16.47, 23.45, 28.28, 32.83, 36.21, 38.70, 40.79, 42.47]),
    ];
    for (name, block_size, ratios) in published {
        for (frames, published) in (250..).step_by(250).zip(ratios) {
            let path = format!("buffer-cache/{name}");
            let Some(report) = run_trace(&path, block_size, "lru", frames) else { return };
            let ours = 100.0 * (1.0 - report.counts.misses as f64 / report.counts.references as f64);
            assert!((ours - published).abs() <= 0.0051, "{name} at {frames}: {ours} for {published}");
        }
    }
}

/// By frames: misses of lru, 2q, sieve, clock, fifo, of s3-fifo with `fill_main`, and of arc on OLTP of the ARC
/// authors, as libCacheSim 0.3.5 counts them; and of lirs as in [`MISSES`].
const OLTP_MISSES: &[(u32, [u64; 8])] = &[
    (250, [763_554, 707_113, 806_158, 759_820, 776_485, 715_926, 720_052, 747_161]),
    (1000, [614_023, 543_682, 616_519, 609_973, 653_340, 540_669, 558_130, 595_985]),
    (5000, [423_702, 404_707, 439_840, 422_067, 459_965, 404_521, 409_065, 431_453]),
    (15_000, [323_294, 313_372, 319_045, 322_074, 352_647, 310_977, 316_288, 329_174]),
];

/// All are the same but for ARC, whose target is a fraction there and a whole number here: within 0.25 % of the
/// references. The tables of the ARC paper were not at hand.
#[test]
fn misses_of_a_trace_of_the_arc_authors_equal_those_of_other_programs() {
    let oltp = "buffer-cache/OLTP.lis.zst";
    let replacements = ["lru", "2q", "sieve", "clock", "fifo", "{name = 's3-fifo', fill_main = true}", "arc", "lirs"];
    for (frames, expected) in OLTP_MISSES {
        for (replacement, expected) in replacements.iter().zip(expected) {
            let Some(report) = run_trace(oltp, "512B", replacement, *frames) else { return };
            let tolerance = if *replacement == "arc" { report.counts.references / 400 } else { 0 };
            let misses = report.counts.misses;
            assert!(misses.abs_diff(*expected) <= tolerance, "{replacement} at {frames}: {misses} for {expected}");
        }
    }
}

/// On a trace where blocks used once rule, ARC has nearly five times as many hits as LRU. Counts of libCacheSim.
#[test]
fn misses_of_a_workstation_trace() {
    let of = |replacement| misses("buffer-cache/P3.lis.zst", "512B", replacement, 32_768);
    let Some(arc) = of("arc") else { return };
    assert_eq!((of("lru"), of("2q")), (Some(3_772_811), Some(3_399_306)));
    assert!(arc.abs_diff(3_242_789) <= 3_912_296 / 400, "{arc}");
}

/// What each paper says of loops and scans, on `loop` of the LIRS authors (a loop over 1011 blocks) at 500 frames.
#[test]
fn a_loop_longer_than_the_cache() {
    let of = |replacement| misses("buffer-cache/loop.trace.gz", "object", replacement, 500);
    let Some(lru) = of("lru") else { return };
    assert_eq!(lru, 505_500, "every reference misses");
    for replacement in ["fifo", "clock", "sieve", "2q", "arc"] {
        assert_eq!(of(replacement), Some(lru), "{replacement} is FIFO on a loop");
    }
    // libCacheSim and the authors' program have the same two.
    assert_eq!(of("{name = 's3-fifo', fill_main = true}"), Some(280_950));
    assert_eq!(of("lirs"), Some(258_495));
    // MRU keeps all but one frame's worth, LIRS all but the five HIR frames'.
    assert!(of("min") <= of("mru") && of("mru") < of("lirs"));
}

/// A replacement's keys: short and long form, what is filled in, what is refused.
#[test]
fn keys_of_a_replacement() {
    let policy = |keys: &str| {
        let text = format!("workload = {{references = [\"A\", \"B\", \"A\"], compute = \"1ms\"}}\n{keys}");
        common::try_run(common::table(&text)).map(|report| report.scenario["policy"]["replacement"].to_string())
    };
    assert_eq!(policy("policy = {replacement = \"sieve\"}").as_deref(), Ok("\"sieve\""));
    let short = policy("policy = {replacement = \"2q\"}").expect("the short form");
    assert!(short.contains("kin") && short.contains("0.25") && short.contains("kout"), "{short}");
    assert_eq!(policy("policy = {replacement = {name = \"2q\", kout = 0.5}}"), Ok(short));
    for (keys, said) in [
        ("{name = \"2q\", kin = 1.5}", "policy.replacement.kin: 1.5 is out of range"),
        ("{name = \"2q\", kim = 0.5}", "policy.replacement.kim: unknown key"),
        ("{name = \"lru\", kin = 0.5}", "policy.replacement.kin: unknown key"),
        ("{name = \"lirs\", hir = \"1%\"}", "policy.replacement.hir"),
        ("{name = \"3q\"}", "policy.replacement: unknown replacement \"3q\""),
        ("7", "policy.replacement: 7 is not a replacement"),
    ] {
        let error = policy(&format!("policy = {{replacement = {keys}}}")).expect_err(keys);
        assert!(error.contains(said), "{keys}: {error}");
    }
}

/// The harness sees a wrong policy: LRU is not CLOCK's model.
#[test]
fn a_wrong_model_is_seen() {
    let wrong = (0..50).any(|seed| {
        let i = bridge::canonical(&string(&mut Random::new(seed)));
        let misses = |name| naive::replacement::misses(name, &i.refs, i.frames, &i.initial);
        misses("lru") != misses("clock")
    });
    assert!(wrong);
}
