//! SARC: groups, the two lists, and the size that it wants for one of them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use headstart_policy::readahead::{Asked, Cached, Found, Integrated, Sarc, SarcSetting};
use headstart_policy::{BlockState, NoSpace, ReadAhead, Replacement, View};
use headstart_types::{Block, Nanos, Outcome};
use proptest::prelude::*;

const SETTING: SarcSetting = SarcSetting { degree: 3, trigger: 1, threshold: 2, bottom: 1, large_ratio: 1000 };

/// A level of one file that keeps what SARC says, with fetches that take no time.
struct Host {
    sarc: Sarc,
    frames: usize,
    cached: BTreeSet<u64>,
    numbers: BTreeMap<u64, Block>,
    places: Vec<u64>,
    states: Vec<BlockState>,
    evicted: Vec<u64>,
}

struct Look<'a>(&'a BTreeSet<u64>);

impl Cached for Look<'_> {
    fn is_cached(&self, _: u32, index: u64) -> bool {
        self.0.contains(&index)
    }
    fn file_blocks(&self, _: u32) -> Option<u64> {
        None
    }
    fn frames(&self) -> u32 {
        0
    }
}

impl Host {
    fn new(frames: usize, setting: SarcSetting) -> Self {
        let sarc = Sarc::new(frames as u32, setting);
        let (cached, numbers) = (BTreeSet::new(), BTreeMap::new());
        Self { sarc, frames, cached, numbers, places: Vec::new(), states: Vec::new(), evicted: Vec::new() }
    }

    fn number(&mut self, index: u64) -> Block {
        let next = Block(self.numbers.len() as u32);
        let block = *self.numbers.entry(index).or_insert(next);
        if block == next {
            self.states.push(BlockState::ABSENT);
            self.places.push(index);
            self.sarc.grow(self.states.len());
        }
        self.sarc.placed(block, 0, index);
        block
    }

    fn fetch(&mut self, index: u64) {
        let block = self.number(index);
        if self.cached.len() == self.frames {
            let view = View {
                cursor: 0,
                free: 0,
                blocks: &self.states,
                outstanding: &[],
                disk_of: &[],
                space: &NoSpace,
                found: &[],
            };
            let victim = self.sarc.victim(block, &view).expect("all are evictable");
            let place = self.places[victim.index()];
            assert!(self.cached.remove(&place), "{place} is not cached");
            self.states[victim.index()] = BlockState::ABSENT;
            self.sarc.evicted(0, place, false);
            self.evicted.push(place);
        }
        self.cached.insert(index);
        self.states[block.index()] = BlockState::resident();
        self.sarc.inserted(block);
    }

    /// Reads; gives what was prefetched as (first, count).
    fn read(&mut self, first: u64, count: u32) -> Vec<(u64, u32)> {
        let asked = Asked { file: 0, first, count, client: 0 };
        let found: Vec<Found> = (first..asked.end())
            .map(|index| if self.cached.contains(&index) { Found::Ready } else { Found::Absent })
            .collect();
        for (index, found) in (first..asked.end()).zip(&found) {
            let block = self.number(index);
            if found.is_hit() {
                self.sarc.referenced(0, block, Outcome::HitReady);
            }
        }
        let mut runs = Vec::new();
        self.sarc.asked(Nanos::ZERO, &asked, &found, &Look(&self.cached), &mut runs);
        for (index, found) in (first..asked.end()).zip(&found) {
            if !found.is_hit() {
                self.fetch(index);
                let block = self.number(index);
                self.sarc.referenced(0, block, Outcome::Miss);
            }
        }
        let named: Vec<_> = runs.iter().map(|run| (run.first, run.count)).collect();
        for index in runs.iter().flat_map(|run| run.first..run.end()) {
            if !self.cached.contains(&index) {
                self.fetch(index);
            }
        }
        named
    }
}

#[test]
fn the_second_of_two_blocks_is_sequential_and_triggers_lead_on() {
    // p = 3, g = 1. 10: counter 1, RANDOM. 11: counter 2 on a miss: the group 11, 12, 13, trigger 13. 12: a hit. 13:
    // the group 14, 15, 16, trigger 16; the reader may skip to it.
    let mut host = Host::new(100, SETTING);
    assert_eq!(host.read(10, 1), []);
    assert_eq!(host.read(11, 1), [(12, 2)]);
    assert_eq!(host.read(12, 1), []);
    assert_eq!(host.read(13, 1), [(14, 3)]);
    assert_eq!(host.read(16, 1), [(17, 3)]);
    assert_eq!(host.sarc.lengths(), (9, 1)); // 11..20 and 10
}

#[test]
fn a_large_request_is_worked_through_block_by_block() {
    // 8 blocks from 20: 20 RANDOM; 21 sequential: 21, 22, 23; 23 triggers 24, 25, 26; 26 triggers 27, 28, 29. Of these
    // 28 and 29 are not asked for.
    let mut host = Host::new(100, SETTING);
    assert_eq!(host.read(20, 8), [(28, 2)]);
    assert_eq!(host.sarc.lengths(), (9, 1));
    // 29 is the trigger of 30, 31, 32. 28 and 29 again are hits that trigger nothing.
    assert_eq!(host.read(28, 2), [(30, 3)]);
    assert_eq!(host.read(28, 2), []);
}

#[test]
fn the_threshold_asks_for_more_blocks_in_a_row() {
    let mut host = Host::new(100, SarcSetting { threshold: 4, ..SETTING });
    let runs: Vec<_> = (0..5).map(|index| host.read(index, 1)).collect();
    assert_eq!(runs, [vec![], vec![], vec![], vec![(4, 2)], vec![]]); // counters 1, 2, 3, 4
    let mut host = Host::new(100, SarcSetting { threshold: 1, ..SETTING });
    assert_eq!(host.read(50, 1), [(51, 2)]);
}

#[test]
fn the_desired_size_follows_the_marginal_utilities() {
    // 6 frames, dL = 1: 2 s / |SEQ| against 1. At first 3 are desired.
    let mut host = Host::new(6, SETTING);
    for index in [100, 200, 300] {
        host.read(index, 1);
    }
    assert_eq!(host.sarc.desired(), 3);
    // RANDOM, oldest first: 100 200 300. A hit on 100, its last block, with s = 0: 0 against 1 lowers to 2.
    host.read(100, 1);
    assert_eq!(host.sarc.desired(), 2);
    // RANDOM: 200 300 100. 10, then 11: s = 1 with SEQ empty, where the left side is without bound: raised to 3.
    // SEQ: 11 12 13; RANDOM: 200 300 100 10 are one too many. When 13 comes SEQ has 2, not above 3: 200 leaves.
    host.read(10, 1);
    host.read(11, 1);
    assert_eq!((host.sarc.desired(), host.evicted.as_slice()), (3, &[200][..]));
    // 300 is RANDOM's last: 2 * 1 / 3 < 1 lowers to 2, and s is 0 again.
    host.read(300, 1);
    assert_eq!((host.sarc.desired(), host.sarc.lengths()), (2, (3, 3)));
    // A miss on 400: SEQ is longer than desired: 11 leaves. RANDOM: 100 10 300 400, SEQ: 12 13.
    host.read(400, 1);
    assert_eq!(host.evicted, [200, 11]);
    // 20: 100 leaves. 21, sequential, s = 1: 2 / 2 is not above 1000. For 21 SEQ has 2, not above 2: 10 leaves; for 22
    // and 23 it has 3: 12 and 13 leave. SEQ: 21 22 23, RANDOM: 300 400 20.
    host.read(20, 1);
    host.read(21, 1);
    assert_eq!(host.evicted, [200, 11, 100, 10, 12, 13]);
    // 30: 21 leaves. 31, s = 2: 300 leaves for it (SEQ has 2), then 22 and 23. SEQ: 31 32 33, RANDOM: 400 20 30.
    host.read(30, 1);
    host.read(31, 1);
    assert_eq!(host.evicted[6..], [21, 300, 22, 23]);
    // 400 is RANDOM's last: 2 * 2 / 3 > 1: raised to 3.
    host.read(400, 1);
    assert_eq!(host.sarc.desired(), 3);
}

#[test]
fn a_trigger_renews_what_is_left_of_its_group() {
    // p = 4, g = 3, threshold 1, 12 frames. 0: the group 0..4, trigger 1. 1 renews 2 and 3 and prefetches 4..8, trigger
    // 5. 50 (a stream of its own): 50..54. SEQ, oldest first: 0 | 1 2 3 | 4 5 6 7 | 50 51 52 53: 12 frames full. 60:
    // four blocks; RANDOM is empty, shorter than dL: the oldest leave: 0 1 2 3.
    let mut host = Host::new(12, SarcSetting { degree: 4, trigger: 3, threshold: 1, ..SETTING });
    assert_eq!(host.read(0, 1), [(1, 3)]);
    assert_eq!(host.read(1, 1), [(4, 4)]);
    host.read(50, 1);
    assert_eq!(host.evicted, []);
    // 5 is the trigger: it renews 5, 6, 7 (and 4 is older now than 50).
    assert_eq!(host.read(5, 1), [(8, 4)]);
    assert_eq!(host.evicted, [0, 1, 2, 3]);
    // SEQ: 4 50 51 52 53 5 6 7 8 9 10 11.
    host.read(60, 1);
    assert_eq!(host.evicted[4..], [4, 50, 51, 52]);
}

proptest! {
    #[test]
    fn without_sequential_blocks_it_is_lru(frames in 1usize..12, reads in prop::collection::vec(0u64..30, 1..200)) {
        let mut host = Host::new(frames, SETTING);
        let mut recency: VecDeque<u64> = VecDeque::new();
        let mut evicted = Vec::new();
        for index in reads.into_iter().map(|number| number * 2) {
            if let Some(at) = recency.iter().position(|other| *other == index) {
                recency.remove(at);
            } else if recency.len() == frames {
                evicted.extend(recency.pop_front());
            }
            recency.push_back(index);
            prop_assert_eq!(host.read(index, 1), []);
        }
        prop_assert_eq!(host.evicted, evicted);
    }

    #[test]
    fn the_lists_hold_what_is_cached(
        frames in 1usize..40, degree in 2u64..9, threshold in 1u32..4, bottom in 1usize..5,
        reads in prop::collection::vec((0u64..120, 1u32..6), 1..150),
    ) {
        let setting = SarcSetting { degree, trigger: degree / 2, threshold, bottom, large_ratio: 20 };
        let mut host = Host::new(frames, setting);
        for (first, count) in reads {
            host.read(first, count);
            let (seq, random) = host.sarc.lengths();
            prop_assert_eq!(seq + random, host.cached.len());
            prop_assert!(host.sarc.desired() <= frames);
        }
    }
}

#[test]
fn a_scan_does_not_push_out_the_random_blocks() {
    // 100 frames; a working set of 80 blocks at random, and two blocks of a scan for each of them. LRU keeps the last
    // 100 blocks, of which a third are of the working set, so it hits about one in three. SARC needs a group or two of
    // SEQ: it should shrink to little more, and RANDOM should hold nearly all 80 (it holds all; LRU hits 3592).
    let setting = SarcSetting { degree: 8, trigger: 4, threshold: 2, bottom: 2, large_ratio: 20 };
    let mut host = Host::new(100, setting);
    let (mut recency, mut hits, mut draw) = (VecDeque::new(), [0, 0], 1u64);
    for number in 0..20_000u64 {
        draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let random = 1_000_000 + 10 * ((draw >> 33) % 80);
        for index in [2 * number, 2 * number + 1, random] {
            let (sarc, lru) = (host.cached.contains(&index), recency.iter().position(|other| *other == index));
            if number >= 10_000 && index == random {
                hits = [hits[0] + u32::from(sarc), hits[1] + u32::from(lru.is_some())];
            }
            lru.map(|at| recency.remove(at));
            recency.push_back(index);
            recency.drain(..recency.len().saturating_sub(100));
            host.read(index, 1);
        }
    }
    assert!(host.sarc.desired() < 30, "{}", host.sarc.desired());
    assert!(hits[0] > 8500 && hits[1] < 4500, "of 10,000 SARC and LRU hit {hits:?}");
}
