//! Slow start within Linux's detection of streams.

use headstart_policy::readahead::Asked;
use proptest::prelude::*;

use crate::common::{named, Level};

/// 98 pages: the paper's competitive depth of the IBM drive.
const DEPTH: &str = "depth = \"392KiB\"";

/// Reads `blocks` blocks from `first` in requests of `count`; returns which request named what.
fn windows(keys: &str, first: u64, count: u32, blocks: u64) -> Vec<(u64, u64, u32)> {
    let (mut level, mut read_ahead) = (Level::new(10_000), named("fixed-depth", keys));
    let mut named = Vec::new();
    for at in (first..first + blocks).step_by(count as usize) {
        named.extend(level.read(&mut *read_ahead, at, count).into_iter().map(|(first, size)| (at, first, size)));
    }
    named
}

#[test]
fn the_series_of_the_paper() {
    // Section 4.3: 16, 32, 64, 98, 98 pages. Page 0: 0..16, 15 of them ahead: mark at 1. 1: 32 from 16, mark there. 16:
    // 64 from 48. 48: 98 from 112. 112: 98 from 210. 210: 98 from 308.
    let expected = [(0, 0, 16), (1, 16, 32), (16, 48, 64), (48, 112, 98), (112, 210, 98), (210, 308, 98)];
    assert_eq!(windows(DEPTH, 0, 1, 300), expected);
}

#[test]
fn requests_of_64_kib_begin_with_no_more_than_they_ask_for() {
    // 0..16 is all demanded: no mark. 16 goes on: 32 from 16, of which 16 are ahead: mark at 32. 32: 64 from 48, mark
    // there. 48: 98 from 112. 64, 80, 96 nothing. 112: 98 from 210.
    let expected = [(0, 0, 16), (16, 16, 32), (32, 48, 64), (48, 112, 98), (112, 210, 98)];
    assert_eq!(windows(DEPTH, 0, 16, 200), expected);
}

#[test]
fn away_from_the_start_the_first_request_is_left_alone_and_counts() {
    // 1000..1016 as demanded, the first operation; then twice as much.
    assert_eq!(windows(DEPTH, 1000, 16, 48), [(1016, 1016, 32), (1032, 1048, 64)]);
    // A page is less than a first operation: 64 KiB follow, then twice as much.
    assert_eq!(windows(DEPTH, 1000, 1, 4), [(1001, 1001, 16), (1002, 1017, 32)]);
}

#[test]
fn aggressive_prefetching_is_the_same_with_800_kib() {
    // 200 pages: 16, 32, 64, 128, 200, 200.
    let sizes: Vec<u32> = windows("", 0, 1, 640).into_iter().map(|(_, _, size)| size).collect();
    assert_eq!(sizes, [16, 32, 64, 128, 200, 200, 200]);
}

#[test]
fn a_depth_below_the_first_window_holds() {
    // 32 KiB: 8 pages each, the first with 7 ahead.
    let sizes: Vec<u32> = windows("depth = \"32KiB\"", 0, 1, 20).into_iter().map(|(_, _, size)| size).collect();
    assert_eq!(sizes, [8, 8, 8, 8]);
}

#[test]
fn a_stream_whose_blocks_are_gone_starts_slowly_again() {
    // Up to 40 pages read: 16, 32, 64 from 48. Then 1000 other pages take their place in a cache of 300. 40 follows,
    // but is not where the last window ended: 16 again, mark at 41.
    let (mut level, mut read_ahead) = (Level::new(300), named("fixed-depth", DEPTH));
    for at in 0..40 {
        level.read(&mut *read_ahead, at, 1);
    }
    for at in 0..1000 {
        level.ask(&mut *read_ahead, Asked { file: 9, first: 10_000 + 3 * at, count: 1, client: 7, ends_inside: false });
    }
    assert_eq!(level.read(&mut *read_ahead, 40, 1), [(40, 16)]);
    assert_eq!(level.read(&mut *read_ahead, 41, 1), [(56, 32)]);
}

#[test]
fn requests_beyond_the_depth_are_read_as_they_come() {
    // 100 pages at a time, 98 at most: 100 as demanded; then 100 again, marked at half, which the request reads: 50 are
    // left to read there, so 98 are the most, from 200.
    assert_eq!(windows(DEPTH, 0, 100, 200), [(0, 0, 100), (100, 100, 100), (100, 200, 98)]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_window_exceeds_the_depth_and_none_shrinks(
        depth in 1u64..300, start in 1u64..300, count in 1u32..40, first in 0u64..3,
    ) {
        let count = count.min(depth as u32);
        let keys = format!("depth = {depth}\nstart = {start}");
        let sizes: Vec<u64> = windows(&keys, 1000 * first, count, 3000).iter().map(|window| u64::from(window.2)).collect();
        prop_assert!(sizes.iter().all(|size| *size <= depth), "{sizes:?}");
        prop_assert!(sizes.is_sorted(), "{sizes:?}");
        prop_assert!(sizes.windows(2).all(|pair| pair[1] <= (2 * pair[0]).max(start)), "{sizes:?}");
        prop_assert_eq!(sizes.last(), Some(&depth));
    }
}
