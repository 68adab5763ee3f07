//! Effects of every read-ahead on a level, for any requests: it fetches blocks of the file and no others, never a
//! cached one or one in flight, into existing frames, deterministically; and its memory is bounded.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use headstart_policy::readahead::{Asked, BuildReadAhead, Found, Integrated};
use headstart_policy::registry::read_aheads;
use headstart_policy::registry::PolicyRow;
use headstart_policy::replacement::Lru;
use headstart_policy::{BlockMap, BlockState, Event, Fetch, Policy, RequestPolicy, SeparateReadAhead, View};
use headstart_types::{Block, Disk, Nanos, Outcome};
use proptest::prelude::*;

use crate::common::{build, context, Level};

/// Files with this many blocks each; blocks are numbered when they are first named.
struct Files {
    blocks_each: u64,
    numbers: RefCell<BTreeMap<(u32, u64), Block>>,
}

impl Files {
    fn number(&self, file: u32, index: u64) -> Option<Block> {
        let mut numbers = self.numbers.borrow_mut();
        let next = Block(numbers.len() as u32);
        (index < self.blocks_each).then(|| *numbers.entry((file, index)).or_insert(next))
    }
}

impl BlockMap for Files {
    fn block(&self, file: u32, index: u64) -> Option<Block> {
        self.number(file, index)
    }

    fn known(&self, file: u32, index: u64) -> Option<Block> {
        self.numbers.borrow().get(&(file, index)).copied()
    }

    fn place(&self, block: Block) -> (u32, u64) {
        let numbers = self.numbers.borrow();
        *numbers.iter().find(|(_, other)| **other == block).expect("it has been numbered").0
    }

    fn file_blocks(&self, _file: u32) -> Option<u64> {
        Some(self.blocks_each)
    }

    fn disk(&self, _block: Block) -> Disk {
        Disk(0)
    }

    fn blocks(&self) -> usize {
        self.numbers.borrow().len()
    }
}

/// A level under an [`RequestPolicy`] policy, which checks the policy's promises for each fetch.
struct Checked {
    policy: RequestPolicy,
    files: Files,
    states: Vec<BlockState>,
    free: u32,
    in_flight: BTreeSet<Block>,
    position: u32,
    fetched: Vec<(u32, u64)>,
}

impl Checked {
    fn new(row: &PolicyRow, frames: u32, blocks_each: u64) -> Self {
        let context = context(frames);
        let keys = row.keys.read(toml::Table::new()).expect("defaults");
        let parts: Box<dyn Integrated> = match row.reads_ahead().unwrap().build {
            BuildReadAhead::Separate(build) => {
                let read_ahead = build(&keys, &context).expect("defaults build");
                Box::new(SeparateReadAhead(Box::new(Lru::new(&[], 0)), Some(read_ahead)))
            }
            BuildReadAhead::WithReplacement(build) => build(&keys, &context).expect("defaults build"),
        };
        Self {
            policy: RequestPolicy::new(parts, frames),
            files: Files { blocks_each, numbers: RefCell::new(BTreeMap::new()) },
            states: Vec::new(),
            free: frames,
            in_flight: BTreeSet::new(),
            position: 0,
            fetched: Vec::new(),
        }
    }

    /// Sends `event` to the policy and carries out its decisions; fetches of `demanded` blocks are not prefetches.
    fn tell(&mut self, event: Event, found: &[Found], demanded: &[Block]) {
        self.policy.grow(self.files.blocks());
        self.states.resize(self.files.blocks(), BlockState::ABSENT);
        let mut fetches = Vec::new();
        let view = View {
            cursor: self.position,
            free: self.free,
            blocks: &self.states,
            outstanding: &[0],
            disk_of: &[],
            space: &self.files,
            asked: if found.is_empty() { &[] } else { demanded },
            found,
        };
        self.policy.on(Nanos(u64::from(self.position) * 1_000_000), event, &view, &mut fetches);
        self.policy.grow(self.files.blocks());
        self.states.resize(self.files.blocks(), BlockState::ABSENT);
        if matches!(event, Event::Asked { .. }) {
            self.demands_come_first(&fetches, demanded);
        }
        for Fetch { block, victim } in fetches {
            let place = self.files.place(block);
            assert!(place.1 < self.files.blocks_each, "{place:?} lies beyond the end");
            assert!(self.states[block.index()].is_absent(), "{place:?} is cached or on its way");
            match victim {
                None => self.free = self.free.checked_sub(1).expect("a free frame"),
                Some(victim) => {
                    assert_eq!(self.free, 0, "a victim while there is a free frame");
                    assert!(self.states[victim.index()].is_evictable(), "{victim:?} is no victim");
                    self.states[victim.index()] = BlockState::ABSENT;
                }
            }
            self.states[block.index()] = BlockState::in_flight(!demanded.contains(&block));
            self.in_flight.insert(block);
            self.fetched.push(place);
        }
    }

    /// A request's `demanded` blocks are fetched before any other, and no other block while one of them waits for a
    /// frame.
    fn demands_come_first(&self, fetches: &[Fetch], demanded: &[Block]) {
        let is_fetched = |block: &Block| fetches.iter().any(|fetch| fetch.block == *block);
        let wanting: Vec<Block> =
            demanded.iter().copied().filter(|block| self.states[block.index()].is_absent()).collect();
        let given = wanting.iter().filter(|block| is_fetched(block)).count();
        assert!(fetches[..given].iter().all(|fetch| wanting.contains(&fetch.block)), "a prefetch goes first");
        assert!(given == wanting.len() || fetches.len() == given, "a prefetch takes what a demand waits for");
    }

    /// Blocks in flight arrive: all of them, or the older half.
    fn arrive(&mut self, all: bool) {
        let count = if all { self.in_flight.len() } else { self.in_flight.len() / 2 };
        let arrived: Vec<Block> = self.in_flight.iter().copied().take(count).collect();
        for block in arrived {
            self.in_flight.remove(&block);
            self.states[block.index()] = self.states[block.index()].arrived();
            self.tell(Event::Arrived { block, disk: Disk(0), service: None }, &[], &[]);
        }
    }

    /// One request, cut at the end of the file as hosts do, served before the next one.
    fn ask(&mut self, asked: Asked) {
        let end = asked.end().min(self.files.blocks_each);
        if asked.first >= end {
            return;
        }
        let asked = Asked { count: (end - asked.first) as u32, ..asked };
        let blocks: Vec<Block> = (asked.first..end).filter_map(|index| self.files.number(asked.file, index)).collect();
        self.policy.grow(self.files.blocks());
        self.states.resize(self.files.blocks(), BlockState::ABSENT);
        let found: Vec<Found> = blocks
            .iter()
            .map(|block| match self.states[block.index()] {
                state if state.is_absent() => Found::Absent,
                state if state.is_in_flight() && state.is_unused_prefetch() => Found::UnreadyPrefetched,
                state if state.is_in_flight() => Found::Unready,
                state if state.is_unused_prefetch() => Found::ReadyPrefetched,
                _ => Found::Ready,
            })
            .collect();
        let first = self.position;
        for (block, found) in blocks.iter().zip(&found) {
            if matches!(found, Found::Ready | Found::ReadyPrefetched) {
                self.serve(*block, Outcome::HitReady);
            }
        }
        self.tell(Event::Asked { asked, position: first, write: false }, &found, &blocks);
        // The reader waits for the rest, in pieces where the frames are few.
        for (block, found) in blocks.iter().zip(&found).filter(|(_, found)| **found != Found::Ready) {
            while self.states[block.index()].is_absent() && *found == Found::Absent && self.policy.decides(&[]) {
                self.arrive(true);
                self.tell(Event::Decide, &[], &blocks);
            }
            if self.states[block.index()].is_in_flight() {
                self.arrive(true);
            }
            if self.states[block.index()].is_resident() && *found != Found::ReadyPrefetched {
                let outcome = if *found == Found::Absent { Outcome::Miss } else { Outcome::HitUnready };
                self.serve(*block, outcome);
            }
        }
    }

    fn serve(&mut self, block: Block, outcome: Outcome) {
        self.states[block.index()] = self.states[block.index()].used();
        let position = self.position;
        self.position += 1;
        self.tell(Event::Served { position, block, outcome, compute: Nanos::ZERO, process: 0 }, &[], &[]);
    }
}

/// Scans, forwards and backwards, and random reads of up to 4 files, some of them beyond the end.
fn requests() -> impl Strategy<Value = Vec<Asked>> {
    let run = (0u32..4, 0u64..150, 1u32..12, 0u32..2, 1usize..25, -3i64..4).prop_map(
        |(file, first, count, client, length, step)| {
            let at = |number: usize| Asked {
                file,
                first: first.saturating_add_signed(step * number as i64 * i64::from(count)),
                count,
                client,
                ends_inside: false,
            };
            (0..length).map(at).collect::<Vec<_>>()
        },
    );
    prop::collection::vec(run, 1..10).prop_map(|runs| runs.concat())
}

fn fetched(row: &PolicyRow, frames: u32, blocks_each: u64, requests: &[Asked], eager: bool) -> Vec<(u32, u64)> {
    let mut level = Checked::new(row, frames, blocks_each);
    for asked in requests {
        level.ask(*asked);
        if eager {
            level.arrive(false);
        }
    }
    level.fetched
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn nothing_is_fetched_beyond_the_end_or_twice(
        requests in requests(), frames in 1u32..200, blocks_each in 1u64..140, eager: bool,
    ) {
        for row in read_aheads() {
            let first = fetched(row, frames, blocks_each, &requests, eager);
            let again = fetched(row, frames, blocks_each, &requests, eager);
            prop_assert_eq!(first, again, "{}", row.name);
        }
    }
}

/// A request for one absent block; returns the fetches since the last one.
fn ask_one(level: &mut Checked, file: u32, index: u64) -> Vec<(u32, u64)> {
    let block = level.files.number(file, index).expect("within the file");
    level.fetched.clear();
    let asked = Asked { file, first: index, count: 1, client: 0, ends_inside: false };
    level.tell(Event::Asked { asked, position: 0, write: false }, &[Found::Absent], &[block]);
    std::mem::take(&mut level.fetched)
}

/// The fetches after the first block in flight has arrived.
fn fetched_after_one(level: &mut Checked) -> Vec<(u32, u64)> {
    let block = level.in_flight.pop_first().expect("something is on its way");
    level.states[block.index()] = level.states[block.index()].arrived();
    level.tell(Event::Arrived { block, disk: Disk(0), service: None }, &[], &[]);
    level.tell(Event::Decide, &[], &[]);
    std::mem::take(&mut level.fetched)
}

#[test]
fn demands_go_before_prefetches_where_frames_are_short() {
    // Four frames, of which a window of competitive takes two.
    let row = read_aheads().find(|row| row.name == "competitive").expect("a row");
    let mut level = Checked::new(row, 4, 100);
    assert_eq!(ask_one(&mut level, 0, 0), [(0, 0), (0, 1)]);
    assert_eq!(ask_one(&mut level, 1, 0), [(1, 0), (1, 1)]);
    // All are in flight: neither the demands of others nor their read-ahead get one.
    assert_eq!(ask_one(&mut level, 2, 0), []);
    assert_eq!(ask_one(&mut level, 3, 0), []);
    // The demands wait, in order, and the prefetches have been dropped.
    assert!(level.policy.decides(&[]));
    assert_eq!(fetched_after_one(&mut level), [(2, 0)]);
    assert_eq!(fetched_after_one(&mut level), [(3, 0)]);
    assert!(!level.policy.decides(&[]));
    assert_eq!(fetched_after_one(&mut level), []);
}

/// Number of entries that a row may keep: for each file up to 8 streams of 10 entries, or a window of reads in flight;
/// marks and blocks for the frames.
fn most_remembered(files: usize, frames: usize) -> usize {
    files * 90 + 3 * frames + 1024
}

#[test]
fn what_is_remembered_has_an_end() {
    const FILES: usize = 4;
    const FRAMES: u32 = 20;
    for row in read_aheads() {
        let has = |key: &str| row.keys.defaults().contains_key(key);
        let limits = [("files", FILES), ("extents", FILES), ("entries", 400), ("mining", 400)];
        let keys = limits.map(|(key, limit)| if has(key) { format!("{key} = {limit}\n") } else { String::new() });
        let (mut level, mut read_ahead) = (Level::new(FRAMES as usize), build(row, &keys.concat(), FRAMES));
        let mut most = 0;
        // Ever new files, each with a scan, a few random reads, and reads at the ends of the number space.
        for file in 0..600u32 {
            let random = |number: u64| (u64::from(file) * 7_919 + number * 104_729) % 1_000_003;
            let scan = (0..20).map(|number| random(0) + number);
            let places = scan.chain((0..10).map(random)).chain([0, u64::MAX - 2, u64::MAX]);
            for (number, first) in places.enumerate() {
                level.ask(
                    &mut *read_ahead,
                    Asked { file, first, count: 1 + file % 3, client: number as u32 % 2, ends_inside: false },
                );
                most = most.max(read_ahead.remembered());
            }
        }
        assert!(most <= most_remembered(FILES, FRAMES as usize), "{} keeps {most} in mind", row.name);
        let keeps = has("files")
            || row.is_predictor()
            || has("extents")
            || matches!(row.reads_ahead().unwrap().build, BuildReadAhead::WithReplacement(_));
        assert_eq!(most > 0, keeps || row.name == "amp", "{} keeps {most} in mind", row.name);
    }
}

#[test]
fn a_read_ahead_that_forgets_nothing_is_seen() {
    // The bound is not so wide that it could never be exceeded: with room for all 600 files, state is kept for all of
    // them.
    let row = read_aheads().find(|row| row.name == "stride").expect("a row");
    let (mut level, mut read_ahead) = (Level::new(20), build(row, "", 20));
    for file in 0..2000u32 {
        level.ask(&mut *read_ahead, Asked { file, first: 0, count: 1, client: 0, ends_inside: false });
    }
    assert!(read_ahead.remembered() > most_remembered(4, 20));
}
