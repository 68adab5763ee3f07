//! The competitive depth: what changes it, what bounds it, and that it yields under memory pressure.

use std::sync::Arc;

use headstart_policy::readahead::{Asked, ReadAheadContext};
use headstart_policy::{BlockMap, ReadAhead};
use headstart_types::{Block, Disk, DriveFacts, Nanos, RateBand};
use proptest::prelude::*;

use crate::common::{build, context, drive, named, row, try_build, Level, BLOCK_BYTES};

/// Block n lies at sector 8 n.
struct InOrder;

impl BlockMap for InOrder {
    fn block(&self, _file: u32, index: u64) -> Option<Block> {
        u32::try_from(index).ok().map(Block)
    }

    fn known(&self, file: u32, index: u64) -> Option<Block> {
        self.block(file, index)
    }

    fn place(&self, block: Block) -> (u32, u64) {
        (0, u64::from(block.0))
    }

    fn file_blocks(&self, _file: u32) -> Option<u64> {
        None
    }

    fn disk(&self, _block: Block) -> Disk {
        Disk(0)
    }

    fn blocks(&self) -> usize {
        usize::MAX
    }

    fn sector(&self, block: Block) -> Option<u64> {
        Some(8 * u64::from(block.0))
    }
}

/// d cylinders take d microseconds; 1,000 sectors each, the outer half at 40 MB/s, the inner at 20 MB/s.
fn zoned() -> DriveFacts {
    let band = |first_cylinder, bytes_per_second| RateBand {
        first: u64::from(first_cylinder) * 1000,
        sectors: 5_000_000,
        first_cylinder,
        cylinders: 5_000,
        bytes_per_second,
    };
    DriveFacts {
        seek: (0..10_000).map(|distance| Nanos(distance * 1_000)).collect(),
        mean_seek: Nanos(5_000_000),
        half_turn: Nanos(3_000_000),
        bands: [band(0, 40e6), band(5_000, 20e6)].into(),
        media_factor: 1.0,
    }
}

fn on(drive: DriveFacts, keys: &str, frames: u32) -> Box<dyn ReadAhead> {
    let context = ReadAheadContext { drive: Some(Arc::new(drive)), ..context(frames) };
    try_build(row("competitive"), keys, &context).unwrap()
}

/// One window after another of a reader of single blocks from `first` on, until `windows` have been named.
fn sizes(read_ahead: &mut dyn ReadAhead, first: u64, windows: usize) -> Vec<u32> {
    let mut level = Level::new(100_000);
    let named = (first..).flat_map(|at| level.read(read_ahead, at, 1));
    named.take(windows).map(|(_, size)| size).collect()
}

#[test]
fn slow_start_up_to_the_depth() {
    // (5 + 3) ms at 40 MB/s are 320,000 bytes: 78.1 blocks.
    assert_eq!(sizes(&mut *named("competitive", ""), 0, 6), [16, 32, 64, 78, 78, 78]);
}

#[test]
fn the_depth_follows_the_seeks() {
    // Only the last seek counts. Blocks 0 and 1 are one I/O whose seek is not known; from cylinder 0 (sector 15) to
    // 2000 (block 250,000): 2 ms. 2 + 3 ms at 40 MB/s: 200,000 bytes, 48.8 blocks.
    let mut read_ahead = on(zoned(), "weight = 1.0", 1 << 20);
    for block in [0, 1, 250_000, 250_001] {
        read_ahead.fetched(Nanos(u64::from(block)), Disk(0), Block(block), &InOrder);
    }
    assert_eq!(sizes(&mut *read_ahead, 0, 4), [16, 32, 49, 49]);
    // 250,002 goes on where the last one ended, which is no switch; as an I/O like others it has a seek of no time: 3
    // ms at 40 MB/s, 120,000 bytes, 29.3 blocks.
    for (seeks, last) in [("switches", 49), ("all", 29)] {
        let mut read_ahead = on(zoned(), &format!("weight = 1.0\nseeks = \"{seeks}\""), 1 << 20);
        for block in [0, 250_001, 250_002] {
            read_ahead.fetched(Nanos(u64::from(block)), Disk(0), Block(block), &InOrder);
        }
        assert_eq!(sizes(&mut *read_ahead, 0, 5)[4], last, "{seeks}");
    }
    // A weight of 1/2 from the mean of 5 ms: 3.5 ms, so 6.5 ms: 260,000 bytes, 63.5 blocks.
    let mut read_ahead = on(zoned(), "weight = 0.5", 1 << 20);
    read_ahead.fetched(Nanos(1), Disk(0), Block(0), &InOrder);
    read_ahead.fetched(Nanos(2), Disk(0), Block(250_000), &InOrder);
    assert_eq!(sizes(&mut *read_ahead, 0, 4), [16, 32, 63, 63]);
}

#[test]
fn the_depth_is_that_of_the_place() {
    // 8 ms at 40 MB/s, and from cylinder 5,000 (sector 5,000,000, block 625,000) on at 20 MB/s: 39.06 blocks.
    let mut read_ahead = on(zoned(), "", 1 << 20);
    assert_eq!(sizes(&mut *read_ahead, 1000, 5)[4], 78);
    assert_eq!(sizes(&mut *read_ahead, 700_000, 5)[4], 39);
}

#[test]
fn no_window_is_larger_than_half_of_the_frames() {
    assert_eq!(sizes(&mut *on(drive(), "", 100), 0, 5), [16, 32, 50, 50, 50]);
    assert_eq!(sizes(&mut *on(drive(), "", 1), 0, 3), [1, 1, 1]);
}

#[test]
fn it_makes_way_and_comes_back() {
    // Four files read in turn, block by block, in 300 frames: two windows of 78 for each are twice as many.
    let run = |keys: &str| {
        let (mut level, mut read_ahead) = (Level::new(300), on(drive(), keys, 300));
        for first in 0..1500 {
            for file in 0..4 {
                level.ask(&mut *read_ahead, Asked { file, first, count: 1, client: 0, ends_inside: false });
            }
        }
        (level.missed + level.prefetched, level, read_ahead)
    };
    // 6,000 blocks are read. With the depth as it is each of them is fetched again and again.
    assert!(run("shrink = false").0 > 18_000);
    let (fetched, mut level, mut read_ahead) = run("");
    // It tolerates half as many again as are read.
    assert!(fetched < 9_000, "{fetched}");
    // One of them goes on alone: windows that grow a sixteenth of 78 a period of 300 blocks, up to 78.
    let alone: Vec<(u64, u32)> = (1500..8000).flat_map(|at| level.read(&mut *read_ahead, at, 1)).collect();
    let sizes: Vec<u32> = alone.iter().map(|run| run.1).collect();
    assert!(sizes.is_sorted() && sizes[0] < 40, "{sizes:?}");
    let whole = alone.iter().find(|run| run.1 == 78).expect("it comes back").0 - 1500;
    assert!((1500..4800).contains(&whole), "after {whole} blocks");
}

#[test]
fn a_first_window_of_half_the_depth_or_more_is_used_before_the_next_leaves() {
    // A depth of 100 blocks. From 50 on P is below 2: two blocks of a stream cost its first window and no more.
    let all = |start: u64, reads: u64| {
        let mut read_ahead = on(even(100), &format!("start = {start}"), 1 << 16);
        let mut level = Level::new(1 << 16);
        (0..reads).flat_map(|at| level.read(&mut *read_ahead, at, 1)).collect::<Vec<_>>()
    };
    assert_eq!(all(100, 100), [(0, 100)]);
    assert_eq!(all(100, 201), [(0, 100), (100, 100), (200, 100)]);
    assert_eq!(all(60, 60), [(0, 60)]);
    assert_eq!(all(50, 51), [(0, 50), (50, 100)]);
    // 49, then 98, then 100: P is 2, and the second leaves when the first is begun.
    assert_eq!(all(49, 50), [(0, 49), (49, 98), (147, 100)]);
}

/// A drive whose switch always costs the transfer of `depth` blocks.
fn even(depth: u64) -> DriveFacts {
    let band = RateBand {
        first: 0,
        sectors: 10_000_000,
        first_cylinder: 0,
        cylinders: 10_000,
        bytes_per_second: BLOCK_BYTES as f64 * 1e4,
    };
    let mean_seek = Nanos(100_000 * depth);
    DriveFacts {
        seek: vec![mean_seek; 10_000].into(),
        mean_seek,
        half_turn: Nanos::ZERO,
        bands: [band].into(),
        media_factor: 1.0,
    }
}

#[test]
fn streams_that_end_early_are_no_pressure() {
    // Files of which 40 blocks are read and what was prefetched beyond is evicted unused, again and again.
    let (mut level, mut read_ahead) = (Level::new(300), on(drive(), "", 300));
    for file in 0..200 {
        for first in 0..40 {
            level.ask(&mut *read_ahead, Asked { file, first, count: 1, client: 0, ends_inside: false });
        }
    }
    let windows: Vec<u32> = (0..400)
        .flat_map(|at| {
            let runs =
                level.ask(&mut *read_ahead, Asked { file: 999, first: at, count: 1, client: 0, ends_inside: false });
            runs.iter().map(|run| run.count).collect::<Vec<_>>()
        })
        .collect();
    assert_eq!(windows[..4], [16, 32, 64, 78]);
}

#[test]
fn refusals_name_the_key() {
    let refused =
        |keys: &str, context: &ReadAheadContext| try_build(row("competitive"), keys, context).err().expect(keys);
    for (keys, key) in [
        ("weight = 0.0", "weight"),
        ("weight = 1.5", "weight"),
        ("weight = nan", "weight"),
        ("start = 0", "start"),
        ("files = 0", "files"),
        ("seeks = \"none\"", "seeks"),
    ] {
        assert_eq!(refused(keys, &context(10)).key, key);
    }
    let error = refused("", &ReadAheadContext { drive: None, ..context(10) });
    assert_eq!(error.key, "name");
    assert!(error.to_string().contains("no arm") && error.to_string().contains("fixed-depth"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn without_seeks_it_is_a_fixed_depth(
        runs in prop::collection::vec((0u32..4, 0u64..400, 1u32..130, 1u64..40), 1..12), frames in 200usize..4000,
    ) {
        // Nothing comes back from a disk: the depth is that of the mean seek, 78 blocks.
        let (mut one, mut other) = (Level::new(frames), Level::new(frames));
        let mut competitive = on(drive(), "shrink = false", frames as u32);
        let mut fixed = build(row("fixed-depth"), "depth = 78", frames as u32);
        for (file, first, count, length) in runs {
            for number in 0..length {
                let asked = Asked { file, first: first + number * u64::from(count), count, client: 0, ends_inside: false };
                prop_assert_eq!(one.ask(&mut *competitive, asked), other.ask(&mut *fixed, asked), "{:?}", asked);
            }
        }
    }

    /// Equations (8) and (15), for streams that are read in turn, wherever each ends. A fetch costs a switch, the
    /// transfer of `depth` blocks, and its own blocks. The oracle pays one switch and what is used.
    #[test]
    fn a_stream_costs_less_than_its_bound_wherever_it_ends(
        depth in 2u64..200, start in 1u64..300, late: bool,
        streams in prop::collection::vec((prop_oneof![Just(0u64), 1u64..3000], 1u32..40, 1u64..1500), 1..8),
        turns in prop::collection::vec(any::<prop::sample::Index>(), 400),
    ) {
        let mut read_ahead = on(even(depth), &format!("start = {start}"), 1 << 16);
        let mut level = Level { late, ..Level::new(1 << 16) };
        let slow = (0..).take_while(|windows| start << windows < depth).count() as u64;
        let mut costs = vec![(0, 0); streams.len()];
        for turn in turns {
            let file = turn.index(streams.len());
            let (first, count, length) = streams[file];
            let used = costs[file].1;
            if used >= length {
                continue;
            }
            let asked = Asked { file: file as u32, first: first + used, count, client: 0, ends_inside: false };
            let is_cached = |level: &Level, block: u64| level.cached.contains_key(&(asked.file, block));
            let mut absent: Vec<u64> = (asked.first..asked.end()).filter(|block| !is_cached(&level, *block)).collect();
            let before: Vec<_> = level.cached.keys().copied().collect();
            let runs = level.ask(&mut *read_ahead, asked);
            let news = runs.iter().flat_map(|run| run.first..run.end());
            absent.extend(news.filter(|block| before.binary_search(&(asked.file, *block)).is_err()));
            absent.sort_unstable();
            absent.dedup();
            let fetches = absent.chunk_by(|one, next| one + 1 == *next).count() as u64;
            let cost = &mut costs[file];
            cost.0 += fetches * depth + absent.len() as u64;
            cost.1 += u64::from(count);
            let bound = 2 + slow + u64::from(first > 0);
            prop_assert!(
                cost.0 < bound * (depth + cost.1),
                "{asked:?}: {} for {} used, depth {depth}, bound {bound}", cost.0, cost.1
            );
        }
    }

    #[test]
    fn windows_stay_within_their_bounds(
        steps in prop::collection::vec((0u32..5, 0u64..3000, 1u32..20, 1usize..40, 0u32..1_200_000, 1u32..9), 1..40),
        frames in 40u32..400, weight in 0.01f64..1.0, all: bool,
    ) {
        let seeks = if all { "all" } else { "switches" };
        let keys = format!("weight = {weight}\nseeks = \"{seeks}\"");
        let (mut level, mut read_ahead) = (Level::new(frames as usize), on(zoned(), &keys, frames));
        // The longest seek of all and the fast half.
        let most = (((9_999_000.0 + 3_000_000.0) * 40e6 / 1e9 / 4096.0_f64).round() as u64).min(u64::from(frames / 2));
        let mut now = 0;
        for (file, first, count, length, block, blocks) in steps {
            for each in 0..length as u64 {
                let asked = Asked { file, first: first + each * u64::from(count), count, client: 0, ends_inside: false };
                for run in level.ask(&mut *read_ahead, asked) {
                    // The request itself counts in full.
                    prop_assert!(u64::from(run.count) <= most.max(u64::from(count)), "{run:?} of {asked:?}, {most} at most");
                }
                now += 1;
                for offset in 0..blocks {
                    read_ahead.fetched(Nanos(now), Disk(0), Block(block + offset), &InOrder);
                }
            }
        }
    }
}
