//! Random exports on a virtual clock, compared with a model of the contents: any level, with or without a spill file
//! and correct or wrong hints, with bad pages, failing changes, and a restart halfway. Runs 60 exports, or
//! `HEADSTART_FUZZ_CASES`, from `HEADSTART_FUZZ_SEED` on; a failure prints its seed.

mod common;

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;

use common::{data, meets, numbered, Shared, World, PAGE};
use headstart_hints::{Expected, Prepared};
use headstart_nbd::Errno;
use headstart_policy::registry::policy;
use headstart_serve::spill::Spill;
use headstart_serve::work::{Answer, Op};
use headstart_types::Nanos;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use toml::Table;

const PAGES: u64 = 300;
const REQUESTS: u64 = 700;
/// Identity of the export in its spill file.
const IDENTITY: Option<&str> = Some("an export of a test");

const LEVELS: [&str; 9] = [
    "blocks = 12\npolicy = \"linux\"",
    "blocks = 40\npolicy = \"amp\"\ncoordinator = \"pfc\"",
    "blocks = 9\npolicy = \"demand\"\nreplacement = \"arc\"\ncoordinator = \"demote\"",
    "blocks = 20\npolicy = \"sarc\"\ncoordinator = \"du\"",
    "blocks = 100\npolicy = {name = \"ra\", degree = 8}",
    "blocks = 60\npolicy = \"linux\"\ncoordinator = \"duel\"",
    "blocks = 33\npolicy = \"mithril\"",
    "blocks = 200\npolicy = \"mountpoint-s3\"\nreplacement = \"fifo\"",
    "blocks = 0",
];

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |text| text.parse().unwrap_or_else(|_| panic!("{name}: a whole number")))
}

/// A planned request.
struct PlannedRequest {
    bytes: Range<u64>,
    changes: bool,
}

/// Path of a spill file, removed on drop.
struct Place(PathBuf);

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

impl Place {
    fn open(&self) -> Spill {
        // 80 slots, plus the header and the table.
        let text = format!("{}:{}B", self.0.display(), 8192 + 80 * (PAGE + 32));
        Spill::open(&text, PAGE, IDENTITY, true).expect("it can be opened")
    }
}

/// An export and the expected state.
struct Case {
    seed: u64,
    random: ChaCha8Rng,
    world: World,
    /// The content after acknowledged changes and those in flight.
    model: Vec<u8>,
    /// Changes in flight, with the previous content.
    changing: BTreeMap<u64, (Range<u64>, Vec<u8>)>,
    reading: BTreeMap<u64, Range<u64>>,
}

fn overlap(one: &Range<u64>, other: &Range<u64>) -> bool {
    one.start < other.end && other.start < one.end
}

impl Case {
    /// Sends a request, unless it would read what is changing, where either content would be valid.
    fn ask(&mut self, id: u64, request: &PlannedRequest) {
        let bytes = &request.bytes;
        let changing = self.changing.values().any(|(other, _)| overlap(other, bytes));
        if changing || request.changes && self.reading.values().any(|other| overlap(other, bytes)) {
            return;
        }
        let (length, place) = ((bytes.end - bytes.start) as usize, bytes.start as usize..bytes.end as usize);
        let op = if request.changes {
            self.changing.insert(id, (bytes.clone(), self.model[place.clone()].to_vec()));
            if self.random.random_range(0..3) == 0 {
                self.model[place].fill(0);
                Op::Zero { fua: false, no_hole: false }
            } else {
                let data: Vec<u8> = (0..length).map(|_| self.random.random()).collect();
                self.model[place].copy_from_slice(&data);
                // A failed change that must be stable would be final.
                let fixed = meets(&self.world.memory().fixed, bytes.start, bytes.end - bytes.start);
                Op::Write { data, fua: self.random.random() && !fixed }
            }
        } else {
            self.reading.insert(id, bytes.clone());
            Op::Read
        };
        self.world.ask(id, bytes.start, length as u32, op);
        self.world.instant();
    }

    /// Compares the answers with the model.
    fn check(&mut self) {
        let seed = self.seed;
        for (id, answer) in std::mem::take(&mut self.world.answers) {
            if let Some((bytes, before)) = self.changing.remove(&id) {
                let fails = meets(&self.world.memory().fixed, bytes.start, bytes.end - bytes.start);
                assert_eq!(answer, if fails { Answer::Failed(Errno::Io) } else { Answer::Done }, "seed {seed}: {id}");
                if fails {
                    self.model[bytes.start as usize..bytes.end as usize].copy_from_slice(&before);
                }
                continue;
            }
            let bytes = self.reading.remove(&id).expect("it was a read");
            if meets(&self.world.memory().bad, bytes.start, bytes.end - bytes.start) {
                // Cached pages can be read even if the backing fails, but these were never cached.
                assert_eq!(answer, Answer::Failed(Errno::Io), "seed {seed}: {id}");
                continue;
            }
            let expected = &self.model[bytes.start as usize..bytes.end as usize];
            assert!(data(&answer) == expected, "seed {seed}: request {id}, bytes {bytes:?}");
        }
    }

    /// Completes everything in flight.
    fn drain(&mut self) {
        while self.world.step() {}
        self.check();
        assert!(self.changing.is_empty() && self.reading.is_empty(), "seed {}: unanswered", self.seed);
        assert!(self.world.conductor.is_idle(), "seed {}: not idle", self.seed);
        assert!(self.world.memory().bytes == self.model, "seed {}: the backing", self.seed);
    }
}

/// Random requests, close to one another like a program's, or anywhere.
fn planned(random: &mut ChaCha8Rng, size: u64) -> Vec<PlannedRequest> {
    let mut at = 0;
    let changing = random.random_range(0..3);
    let near = random.random_range(0.0..1.0);
    let one = |_| {
        let start = if random.random_bool(near) { at } else { random.random_range(0..size) };
        let end = start + random.random_range(1..=(size - start).min(30_000));
        at = if end == size { 0 } else { end };
        PlannedRequest { bytes: start..end, changes: random.random_range(0..4) < changing }
    };
    (0..REQUESTS).map(one).collect()
}

/// Hints of the coming reads, some of them wrong.
fn hints(random: &mut ChaCha8Rng, planned: &[PlannedRequest]) -> Prepared {
    let wrong = random.random_range(0.0..1.0);
    let reads = planned.iter().filter(|request| !request.changes);
    let pages = reads.map(|request| {
        let run = request.bytes.start / PAGE..request.bytes.end.div_ceil(PAGE);
        let first = random.random_range(0..PAGES - 8);
        if random.random_bool(wrong) {
            first..first + 8
        } else {
            run
        }
    });
    let pages: Vec<Range<u64>> = pages.collect();
    let expected = Expected {
        row: policy(["just-in-time", "forestall", "fixed-horizon"].choose(random).unwrap()).expect("it is registered"),
        keys: Table::new(),
        pages,
        elapsed: Nanos::from_millis(REQUESTS / 4),
        page_bytes: PAGE,
        budget_pages: random.random_range(1..40),
    };
    Prepared::try_new(expected).expect("it works from hints")
}

fn run(seed: u64) {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let shared = Shared::default();
    {
        let mut memory = shared.lock();
        memory.bytes = numbered(PAGES - 1, 77);
        let mut some = |most: u64| (0..random.random_range(0..=most)).map(|_| random.random_range(0..PAGES)).collect();
        (memory.bad, memory.fixed) = (some(4), some(4));
    }
    let model = shared.lock().bytes.clone();
    let path = std::env::temp_dir().join(format!("headstart-serve-fuzz-{}-{seed}", std::process::id()));
    let place = random.random_bool(0.6).then_some(Place(path));
    let level = LEVELS.choose(&mut random).unwrap();
    let planned = planned(&mut random, model.len() as u64);
    let world = World::before(level, shared.clone(), None, None);
    let mut case = Case { seed, random, world, model, changing: BTreeMap::new(), reading: BTreeMap::new() };
    for half in planned.chunks(planned.len().div_ceil(2)) {
        let hints = case.random.random_bool(0.6).then(|| hints(&mut case.random, half));
        case.world = World::before(level, shared.clone(), place.as_ref().map(Place::open), hints);
        case.world.takes = |page| Nanos(1_000 + page % 7 * page % 5 * 1_900);
        for (id, request) in (0..).zip(half) {
            case.ask(id, request);
            let time = Nanos(case.random.random_range(1..4_000));
            if case.random.random() {
                case.world.pass(time);
            } else {
                case.world.now += time;
                case.world.instant();
            }
            case.check();
        }
        case.drain();
        // The next server finds the file, closed in order or as left by a kill.
        if let Some(before) = case.world.conductor.spill() {
            if case.random.random() {
                before.close(IDENTITY).expect("it can be closed");
            }
        }
        case.world = World::before(level, shared.clone(), None, None);
    }
    case.world = World::before(level, shared, place.as_ref().map(Place::open), None);
}

#[test]
fn random_exports_read_what_was_written() {
    let first = number("HEADSTART_FUZZ_SEED", 0);
    (first..first + number("HEADSTART_FUZZ_CASES", 60)).for_each(run);
}
