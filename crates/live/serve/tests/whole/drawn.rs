//! Random cases from a seed.

use std::fmt;
use std::ops::Range;

use headstart_types::Nanos;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::storage::{Broken, GRAIN, PAGE};

const LEVELS: [&str; 12] = [
    "blocks = 12\npolicy = \"linux\"",
    "blocks = 40\npolicy = \"amp\"\ncoordinator = \"pfc\"",
    "blocks = 9\npolicy = \"demand\"\nreplacement = \"arc\"\ncoordinator = \"demote\"",
    "blocks = 20\npolicy = \"sarc\"\ncoordinator = \"du\"",
    "blocks = 50\npolicy = {name = \"ra\", degree = 8}",
    "blocks = 60\npolicy = \"linux\"\ncoordinator = \"duel\"",
    "blocks = 33\npolicy = \"mithril\"",
    "blocks = 64\npolicy = \"mountpoint-s3\"\nreplacement = \"fifo\"",
    "blocks = 30\npolicy = \"linux\"\nreplacement = \"arc\"\ncoordinator = \"pfc\"",
    "blocks = 80\npolicy = {name = \"ra\", degree = 4}\ncoordinator = \"pfc\"",
    "blocks = 1\npolicy = \"linux\"",
    "blocks = 0",
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Read,
    Cache,
    Extents,
    Flush,
    Write { fua: bool },
    Zero { fua: bool },
    Trim { fua: bool },
}

impl Kind {
    /// Whether data is stable once it is answered.
    pub fn syncs(self) -> bool {
        matches!(self, Self::Flush | Self::Write { fua: true } | Self::Zero { fua: true } | Self::Trim { fua: true })
    }

    pub fn changes(self) -> bool {
        matches!(self, Self::Write { .. } | Self::Zero { .. } | Self::Trim { .. })
    }
}

/// How a server ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// It answers outstanding requests and closes its files.
    Drained,
    /// `kill -9`.
    Killed,
    /// The machine stops, with the disk's cache.
    Crashed,
}

/// What happens.
#[derive(Debug, Clone)]
pub enum What {
    Ask {
        client: u32,
        bytes: Range<u64>,
        kind: Kind,
    },
    /// A client disconnects, whatever it waits for; the next one with its number is another client.
    Dies {
        client: u32,
    },
    /// Pages of the backing fail from now on.
    Breaks {
        pages: Range<u64>,
        how: Broken,
    },
    /// Everything works again.
    Heals,
    /// The next read of this page takes a minute.
    Sticks {
        page: u64,
    },
    /// The next call of the backing takes a minute.
    Stalls,
    /// The backing is restarted, if it is a server.
    Disconnects,
    Restart(End),
}

/// An event, `after` the previous one.
#[derive(Debug, Clone)]
pub struct Event {
    pub after: Nanos,
    pub what: What,
}

/// Hints of the coming reads.
#[derive(Debug, Clone)]
pub struct Hints {
    pub policy: &'static str,
    pub pages: Vec<Range<u64>>,
    pub budget_pages: u64,
}

#[derive(Debug, Clone)]
pub struct Plan {
    /// Seed of durations and outcomes.
    pub seed: u64,
    pub level: &'static str,
    pub size_bytes: u64,
    pub depth: u32,
    pub read_pages_max: u64,
    pub fails_in_parts: bool,
    pub spill: bool,
    /// The backing is a server behind a connection.
    pub is_server: bool,
    pub hints: Option<Hints>,
    pub events: Vec<Event>,
    /// Number of unneeded pages that keep their numbers, if fewer than the server's default.
    pub numbered: Option<usize>,
}

impl fmt::Display for Plan {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            seed,
            level,
            size_bytes,
            depth,
            read_pages_max,
            fails_in_parts,
            spill,
            is_server,
            hints,
            events,
            numbered,
        } = self;
        writeln!(
            to,
            "seed {seed}, {size_bytes} bytes, level {level:?}, depth {depth}, reads of {read_pages_max} pages"
        )?;
        writeln!(to, "fails in parts: {fails_in_parts}, spill: {spill}, server: {is_server}, numbers: {numbered:?}, hints: {hints:?}")?;
        events.iter().try_for_each(|event| writeln!(to, "  after {}: {:?}", event.after, event.what))
    }
}

impl Plan {
    pub fn drawn(seed: u64) -> Self {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let pages = random.random_range(20..130);
        let size_bytes = pages * PAGE - random.random_range(0..PAGE / GRAIN) * GRAIN;
        let events = events(&mut random, size_bytes);
        Self {
            seed,
            level: LEVELS.choose(&mut random).unwrap(),
            size_bytes,
            depth: random.random_range(4..=8),
            read_pages_max: *[1, 4, 16].choose(&mut random).unwrap(),
            fails_in_parts: random.random_bool(0.7),
            spill: random.random_bool(0.4),
            is_server: random.random_bool(0.5),
            hints: random.random_bool(0.4).then(|| hints(&mut random, &events, pages)),
            events,
            numbered: random.random_bool(0.5).then(|| random.random_range(0..40)),
        }
    }
}

/// Simplifications of a case.
pub const SIMPLER: [fn(&mut Plan); 6] = [
    |plan| plan.numbered = None,
    |plan| plan.hints = None,
    |plan| plan.spill = false,
    |plan| plan.read_pages_max = 1,
    |plan| plan.level = LEVELS[2],
    |plan| plan.level = LEVELS[0],
];

fn time(random: &mut ChaCha8Rng) -> Nanos {
    match random.random_range(0..20) {
        0..8 => Nanos(0),
        8..19 => Nanos(random.random_range(1..3_000_000)),
        _ => Nanos::from_millis(random.random_range(3..50)),
    }
}

fn events(random: &mut ChaCha8Rng, size_bytes: u64) -> Vec<Event> {
    let clients = random.random_range(1..=6);
    // Out of ten requests.
    let changing = if random.random_bool(0.7) { random.random_range(1..7) } else { 0 };
    let faults = random.random_bool(0.7);
    let near = random.random_range(0.0..1.0);
    let mut places = vec![0; clients as usize];
    let mut all = Vec::new();
    let mut stuck = 0;
    for _ in 0..random.random_range(30..350) {
        let client = random.random_range(0..clients);
        let mut after = time(random);
        let what = match random.random_range(0..100) {
            0 => What::Dies { client },
            1 if faults => What::Breaks { pages: pages(random, size_bytes), how: broken(random) },
            2..4 if faults => What::Heals,
            4 if faults && stuck < 2 => {
                stuck += 1;
                What::Sticks { page: random.random_range(0..size_bytes.div_ceil(PAGE)) }
            }
            5 if stuck > 0 && faults => {
                after = Nanos::from_millis(6_000);
                What::Heals
            }
            7 if faults && stuck < 2 => {
                stuck += 1;
                What::Stalls
            }
            8 if faults => What::Disconnects,
            6 if random.random_bool(0.5) => {
                stuck = 0;
                What::Restart(*[End::Drained, End::Killed, End::Crashed].choose(random).unwrap())
            }
            _ => {
                let kind = kind(random, changing);
                let at = &mut places[client as usize];
                let bytes = bytes(random, kind, at, near, size_bytes);
                What::Ask { client, bytes, kind }
            }
        };
        all.push(Event { after, what });
    }
    all
}

fn kind(random: &mut ChaCha8Rng, changing: u32) -> Kind {
    if random.random_range(0..10) < changing {
        let fua = random.random_bool(0.2);
        return match random.random_range(0..10) {
            0..6 => Kind::Write { fua },
            6..8 => Kind::Zero { fua },
            8 => Kind::Trim { fua },
            _ => Kind::Flush,
        };
    }
    match random.random_range(0..30) {
        0 => Kind::Cache,
        1 => Kind::Extents,
        2 => Kind::Flush,
        _ => Kind::Read,
    }
}

/// Close to one another like a program's requests, or anywhere; changes cover whole grains.
fn bytes(random: &mut ChaCha8Rng, kind: Kind, at: &mut u64, near: f64, size_bytes: u64) -> Range<u64> {
    if kind == Kind::Flush {
        return 0..0;
    }
    let start = if random.random_bool(near) { *at } else { random.random_range(0..size_bytes) };
    let start = if kind.changes() { start / GRAIN * GRAIN } else { start };
    let most = (size_bytes - start).min(if random.random_bool(0.1) { 20 * PAGE } else { 3 * PAGE });
    let length = random.random_range(1..=most);
    let length = if kind.changes() { length.div_ceil(GRAIN) * GRAIN } else { length };
    *at = if start + length >= size_bytes { 0 } else { start + length };
    start..start + length
}

fn pages(random: &mut ChaCha8Rng, size_bytes: u64) -> Range<u64> {
    let first = random.random_range(0..size_bytes.div_ceil(PAGE));
    first..first + random.random_range(1..4)
}

fn broken(random: &mut ChaCha8Rng) -> Broken {
    let all = [
        Broken::Reads,
        Broken::Reads,
        Broken::Reads,
        Broken::ShortReads,
        Broken::Changes,
        Broken::Vanished,
        Broken::Syncs,
        Broken::Syncs,
        Broken::Descriptors,
        Broken::Memory,
    ];
    *all.choose(random).unwrap()
}

/// Hints of the coming reads, some of them wrong.
fn hints(random: &mut ChaCha8Rng, events: &[Event], pages: u64) -> Hints {
    let wrong = random.random_range(0.0..1.0);
    let mut named = Vec::new();
    for event in events {
        let What::Ask { bytes, kind: Kind::Read, .. } = &event.what else { continue };
        let first = random.random_range(0..pages - 8);
        let run = bytes.start / PAGE..bytes.end.div_ceil(PAGE);
        named.push(if random.random_bool(wrong) { first..first + 8 } else { run });
    }
    let policy = ["just-in-time", "forestall", "fixed-horizon"].choose(random).unwrap();
    Hints { policy, pages: named, budget_pages: random.random_range(1..20) }
}
