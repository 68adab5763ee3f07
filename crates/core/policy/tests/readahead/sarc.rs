//! SARC: groups, the two lists, and the desired size of one of them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use headstart_policy::readahead::{Asked, Cached, Found, Integrated, Sarc, SarcSetting};
use headstart_policy::{BlockState, NoSpace, ReadAhead, Replacement, View};
use headstart_types::{Block, Nanos, Outcome};
use proptest::prelude::*;

const SETTING: SarcSetting = SarcSetting { degree: 3, trigger: 1, threshold: 2, bottom: 1, large_ratio: 1000 };

/// A level of one file that follows SARC, with fetches that take no time.
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
    fn is_resident(&self, file: u32, index: u64) -> bool {
        self.is_cached(file, index)
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
                asked: &[],
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

    /// Reads; returns what was prefetched as (first, count).
    fn read(&mut self, first: u64, count: u32) -> Vec<(u64, u32)> {
        let asked = Asked { file: 0, first, count, client: 0, ends_inside: false };
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
    // p = 3, g = 1. 10: counter 1, RANDOM. 11: counter 2 on a miss: 11 and the group 12, 13, 14, trigger 14. 12: a hit.
    // 14: the group 15, 16, 17, trigger 17; the reader may skip to it.
    let mut host = Host::new(100, SETTING);
    assert_eq!(host.read(10, 1), []);
    assert_eq!(host.read(11, 1), [(12, 3)]);
    assert_eq!(host.read(12, 1), []);
    assert_eq!(host.read(14, 1), [(15, 3)]);
    assert_eq!(host.read(17, 1), [(18, 3)]);
    assert_eq!(host.sarc.lengths(), (10, 1)); // 11..21 and 10
}

#[test]
fn a_large_request_is_worked_through_block_by_block() {
    // 8 blocks from 20: 20 RANDOM; 21 sequential, with 22, 23, 24; 24 triggers 25, 26, 27; 27 triggers 28, 29, 30,
    // which are not requested.
    let mut host = Host::new(100, SETTING);
    assert_eq!(host.read(20, 8), [(28, 3)]);
    assert_eq!(host.sarc.lengths(), (10, 1));
    // 30 is the trigger of 31, 32, 33. 28 to 30 again are hits that trigger nothing.
    assert_eq!(host.read(28, 3), [(31, 3)]);
    assert_eq!(host.read(28, 3), []);
}

#[test]
fn the_threshold_asks_for_more_blocks_in_a_row() {
    let mut host = Host::new(100, SarcSetting { threshold: 4, ..SETTING });
    let runs: Vec<_> = (0..5).map(|index| host.read(index, 1)).collect();
    assert_eq!(runs, [vec![], vec![], vec![], vec![(4, 3)], vec![]]); // counters 1, 2, 3, 4
    let mut host = Host::new(100, SarcSetting { threshold: 1, ..SETTING });
    assert_eq!(host.read(50, 1), [(51, 3)]);
}

#[test]
fn the_desired_size_follows_the_marginal_utilities() {
    // 6 frames, dL = 1: ratio = 2 s / |SEQ|. At first nothing is desired, and nothing is added to it.
    let mut host = Host::new(6, SETTING);
    for index in [100, 200, 300] {
        host.read(index, 1);
    }
    // RANDOM, oldest first: 100 200 300. A hit on 100, its last block, with s = 0: adapt = 0 - 1.
    host.read(100, 1);
    // RANDOM: 200 300 100 10. 11 is sequential: s = 1, and 12, 13, 14 with it. When 13 comes SEQ has 2, more than 0: 11
    // leaves, and the desired size, not above 0, becomes |SEQ| = 1. When 14 comes SEQ has 2 again: 12 leaves, 1 - 1/2.
    host.read(10, 1);
    host.read(11, 1);
    assert_eq!((host.sarc.desired(), host.evicted.as_slice()), (0.5, &[11, 12][..]));
    // 200 is RANDOM's last: 2 * 1 / 2 - 1 = 0, and s is 0 again. SEQ 13 14; 13 and 14 leave for 400 and 20.
    host.read(200, 1);
    host.read(400, 1);
    host.read(20, 1);
    assert_eq!((host.sarc.desired(), host.sarc.lengths()), (0.5, (0, 6)));
    assert_eq!(host.evicted[2..], [13, 14]);
    // RANDOM: 300 100 10 200 400 20. 21, s = 1: 300 leaves, since SEQ is empty; then SEQ has 1 each time: 21, 22, 23.
    host.read(21, 1);
    assert_eq!(host.evicted[4..], [300, 21, 22, 23]);
    // 100 is RANDOM's last: 2 * 1 / 1 - 1 = 1. For 500 24 leaves: 0.5 + 1/2.
    host.read(100, 1);
    host.read(500, 1);
    assert_eq!((host.sarc.desired(), host.evicted[8..].to_vec()), (1.0, vec![24]));
    // RANDOM: 10 200 400 20 100 500. 501: 10 leaves (SEQ is empty), 1.5; for 502 SEQ has 1: 200, 2.0; for 503 it has 2:
    // 400, 2.5; for 504 it has 3: 501, 3.0.
    host.read(501, 1);
    assert_eq!((host.sarc.desired(), host.evicted[9..].to_vec()), (3.0, vec![10, 200, 400, 501]));
    assert_eq!(host.sarc.lengths(), (3, 3));
}

#[test]
fn a_hit_at_the_end_of_seq_raises_its_size_where_it_is_much_more_useful() {
    // 6 frames, dL = 2: ratio = 4 s / |SEQ|; large above 1.
    let mut host = Host::new(6, SarcSetting { bottom: 2, large_ratio: 1, ..SETTING });
    // s = 1. SEQ: 11 12 13 14, of which 11 and 12 are the end. A hit on 12: 4 / 4 is not above 1.
    for index in [10, 11, 12, 30] {
        host.read(index, 1);
    }
    // SEQ: 11 13 14 12, RANDOM: 10 30. 40: 11 leaves, and 3 are desired. 41, s = 2: SEQ has 3: 10 leaves; then it has 4
    // each time: 13, 14, 12. Nothing has been added.
    host.read(40, 1);
    host.read(41, 1);
    assert_eq!((host.sarc.desired(), host.evicted.as_slice()), (3.0, &[11, 10, 13, 14, 12][..]));
    // SEQ: 41 42 43 44. A hit on 43 is none at the end. One on 42 is: 8 / 4 > 1, adapt = 1. For 50 41 leaves, 3.5; for
    // 60 SEQ has 3: 30, 4.0.
    host.read(43, 1);
    host.read(42, 1);
    host.read(50, 1);
    host.read(60, 1);
    assert_eq!((host.sarc.desired(), host.evicted[5..].to_vec()), (4.0, vec![41, 30]));
    // RANDOM: 40 50 60. A hit on 40: 8 / 3 - 1, at most 1; s = 0. A hit on 50: -1. For 70 60 leaves: 4 - 1/2.
    host.read(40, 1);
    host.read(50, 1);
    host.read(70, 1);
    assert_eq!((host.sarc.desired(), host.evicted[7..].to_vec()), (3.5, vec![60]));
}

#[test]
fn a_trigger_renews_what_is_left_of_its_group() {
    // p = 4, g = 3, threshold 1, 12 frames. 0: itself and the group 1..5, trigger 2. 2 renews 3 and 4 and prefetches
    // 5..9, trigger 6. SEQ, oldest first: 0 1 | 2 3 4 | 5 6 7 8. 50 (a stream of its own): 50..55, five blocks into
    // three free frames; RANDOM is empty, shorter than dL: the oldest leave: 0 1.
    let mut host = Host::new(12, SarcSetting { degree: 4, trigger: 3, threshold: 1, ..SETTING });
    assert_eq!(host.read(0, 1), [(1, 4)]);
    assert_eq!(host.read(2, 1), [(5, 4)]);
    host.read(50, 1);
    assert_eq!(host.evicted, [0, 1]);
    // 6 is the trigger: it renews 6, 7, 8 (and 5 is older now than 50). 9..13 come for 2 3 4 5.
    assert_eq!(host.read(6, 1), [(9, 4)]);
    assert_eq!(host.evicted[2..], [2, 3, 4, 5]);
    // SEQ: 50 51 52 53 54 6 7 8 9 10 11 12.
    host.read(60, 1);
    assert_eq!(host.evicted[6..], [50, 51, 52, 53, 54]);
}

/// Reads a random block of a hot set, whose block 2 k is never adjacent to another one.
fn hot(host: &mut Host, next: &mut u64, blocks: u64) {
    *next = next.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    host.read((*next >> 33) % blocks * 2, 1);
}

/// Reads `rounds` blocks of `streams` streams in turn, each followed by a random block: one of 500 hot ones, or one
/// that is never read again. Returns the mean desired size over the second half.
fn mean_desired(host: &mut Host, streams: u64, hot_blocks: bool, rounds: u64) -> f64 {
    let (mut next, mut sum) = (1, 0.0);
    for round in 0..rounds {
        host.read(((round % streams + 2) << 40) + round / streams, 1);
        if hot_blocks {
            hot(host, &mut next, 500);
        } else {
            host.read((1 << 50) + 2 * round, 1);
        }
        sum += if round >= rounds / 2 { host.sarc.desired() } else { 0.0 };
    }
    sum / (rounds / 2) as f64
}

#[test]
fn sizes_follow_the_workload_to_where_the_marginal_utilities_meet() {
    // Gill and Modha, section V (Figures 7 and 8): SARC gives SEQ the size that it is worth, another one at another
    // load.
    let (frames, bottom) = (400, 8);
    let fresh = || Host::new(frames, SarcSetting { degree: 8, trigger: 4, threshold: 2, bottom, large_ratio: 20 });
    // 500 hot blocks and one stream, which 8 + 4 blocks satisfy: hits at the end of RANDOM and no sequential misses.
    let satisfied = mean_desired(&mut fresh(), 1, true, 20_000);
    assert!(satisfied <= frames as f64 / 6.0, "{satisfied}");
    // 60 streams request a group each, 60 * 12 blocks, and the random blocks are never requested again: only SEQ is
    // worth anything, and the hits at its end show that.
    let starved = mean_desired(&mut fresh(), 60, false, 40_000);
    assert!(starved >= frames as f64 * 15.0 / 16.0, "{starved}");
    // Both at once: a size between them.
    let between = mean_desired(&mut fresh(), 60, true, 120_000);
    assert!(satisfied < between && between < starved, "{between}");
}

#[test]
fn a_sequential_list_too_short_to_be_hit_stays_short() {
    // The limitation named in the header. After one satisfied stream SEQ has a few blocks. 60 streams push each other
    // out of it before any of them returns: there is no hit at its end to grow it, nor one at the end of RANDOM.
    let setting = SarcSetting { degree: 8, trigger: 4, threshold: 2, bottom: 8, large_ratio: 20 };
    let mut host = Host::new(400, setting);
    mean_desired(&mut host, 1, true, 20_000);
    let stuck = mean_desired(&mut host, 60, false, 40_000);
    assert!(stuck < 25.0, "{stuck}");
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
            prop_assert!(host.sarc.desired() <= frames as f64);
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
    assert!(host.sarc.desired() < 30.0, "{}", host.sarc.desired());
    assert!(hits[0] > 8500 && hits[1] < 4500, "of 10,000 SARC and LRU hit {hits:?}");
}
