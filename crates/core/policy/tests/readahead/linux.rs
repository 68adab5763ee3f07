//! The kernel's windows and marks.

use headstart_policy::readahead::Asked;

use crate::common::{named, Level};

/// A kernel without large folios: windows have their full length.
const OLD: &str = "version = \"6.12\"";

/// The requests of `blocks` single blocks from `first` that named something, and what they named.
fn triggers(
    level: &mut Level,
    linux: &mut dyn headstart_policy::ReadAhead,
    first: u64,
    blocks: u64,
) -> Vec<(u64, u64, u32)> {
    let mut named = Vec::new();
    for block in first..first + blocks {
        named.extend(level.read(linux, block, 1).into_iter().map(|(first, count)| (block, first, count)));
    }
    named
}

#[test]
fn windows_of_4_8_16_32_pages_from_the_start_of_a_file() {
    // max = 128 KiB / 4 KiB = 32. Block 0: initial, 1 <= 32/32, so 4 blocks, 0..4, of which 4 - 1 = 3 are read ahead:
    // mark at 1. 1: next window at 4, 4 <= 16, so 8, mark at 4. 4: 16 at 12. 12: 32 at 28. 28: at 60, max.
    let (mut level, mut linux) = (Level::new(10_000), named("linux", OLD));
    let named = triggers(&mut level, &mut *linux, 0, 100);
    assert_eq!(named, [(0, 0, 4), (1, 4, 8), (4, 12, 16), (12, 28, 32), (28, 60, 32), (60, 92, 32), (92, 124, 32)]);
    assert_eq!(level.missed, 1);
}

#[test]
fn a_larger_device_ramps_up_by_four_first() {
    // max = 1 MiB = 256: initial 1 <= 8: 4; 4 < 16: 16; 16 is not below 16, 16 <= 128: 32; 64; 128; 256.
    let (mut level, mut linux) = (Level::new(10_000), named("linux", &format!("{OLD}\nread_ahead = \"1MiB\"")));
    let sizes: Vec<_> = triggers(&mut level, &mut *linux, 0, 700).into_iter().map(|(_, _, size)| size).collect();
    assert_eq!(sizes, [4, 16, 32, 64, 128, 256, 256, 256]);
}

#[test]
fn the_first_window_depends_on_the_request() {
    // (request, window) from block 0, max 32: up to 1: x 4; up to 8: rounded up, x 2; above: 32.
    for (request, window) in [(1, 4), (2, 4), (3, 8), (4, 8), (5, 16), (8, 16), (9, 32), (32, 32)] {
        let (mut level, mut linux) = (Level::new(1000), named("linux", OLD));
        assert_eq!(level.read(&mut *linux, 0, request)[0], (0, window), "{request}");
    }
}

#[test]
fn a_request_that_fills_its_window_hits_its_own_mark() {
    // 32 blocks from 0: window 0..32, not larger than the request, so half of it lies behind the mark: 16, which the
    // request reads at once: next window 32..64, marked at 32.
    let (mut level, mut linux) = (Level::new(1000), named("linux", OLD));
    assert_eq!(level.read(&mut *linux, 0, 32), [(0, 32), (32, 32)]);
    assert_eq!(level.read(&mut *linux, 32, 1), [(64, 32)]);
}

#[test]
fn oversize_requests_are_read_at_once_up_to_the_device_limit() {
    // 64 blocks at 1000, never read before. max for them is min(64, 1280 KiB = 320) = 64, which they do not exceed:
    // random. 64 more follow: window 1064..1128, mark at 1096, which the request reads: 64 more.
    let (mut level, mut linux) = (Level::new(1000), named("linux", OLD));
    assert_eq!(level.read(&mut *linux, 1000, 64), []);
    assert_eq!(level.read(&mut *linux, 1064, 64), [(1064, 64), (1128, 64)]);
    // At the mark 32 blocks are still to be read, so max is 32 again; but windows do not shrink: 64, and 64 after that.
    assert_eq!(level.read(&mut *linux, 1128, 1), [(1192, 64)]);
    // With a limit of 32 blocks they exceed it, so they are sequential by themselves: windows of 32 follow one another
    // until the request is covered: 2000, mark 2016;
    // 2032, mark 2032; 2064, marked at 2064.
    let (mut level, mut linux) = (Level::new(1000), named("linux", &format!("{OLD}\nmax_request = 32")));
    assert_eq!(level.read(&mut *linux, 2000, 64), [(2000, 32), (2032, 32), (2064, 32)]);
}

#[test]
fn of_the_cached_blocks_before_it_a_request_counts_31() {
    // 100..140 are cached. The kernel looks at 32 of them and takes the last for the gap: 31. A request of 31 is
    // random, one of 30 a stream: 31 + 30, but 32, marked at its last block.
    for (request, expected) in [(31, vec![]), (30, vec![(140, 32)])] {
        let (mut level, mut linux) = (Level::new(1000), named("linux", OLD));
        level.read(&mut *named("obl", "when = \"miss\""), 100, 39);
        assert_eq!(level.read(&mut *linux, 140, request), expected);
    }
    // Cached from the start of the file: 5 blocks count twice. 2 * 5 + 1 = 11.
    let (mut level, mut linux) = (Level::new(1000), named("linux", OLD));
    level.read(&mut *named("obl", "when = \"miss\""), 0, 4);
    assert_eq!(level.read(&mut *linux, 5, 1), [(5, 11)]);
}

#[test]
fn random_reads_are_left_alone_and_the_second_of_two_in_a_row_is_not() {
    let (mut level, mut linux) = (Level::new(1000), named("linux", OLD));
    assert_eq!(level.read(&mut *linux, 500, 1), []);
    assert_eq!(level.read(&mut *linux, 100, 1), []);
    // 101 follows: initial window of 4, mark at 102.
    assert_eq!(level.read(&mut *linux, 101, 1), [(101, 4)]);
    assert_eq!(level.read(&mut *linux, 102, 1), [(105, 8)]);
    // 300 and 302: one block skipped still follows (byte position of the end against the page asked for).
    assert_eq!(level.read(&mut *linux, 300, 1), []);
    assert_eq!(level.read(&mut *linux, 302, 1), [(302, 4)]);
    assert_eq!(level.read(&mut *linux, 250, 1), []);
    assert_eq!(level.read(&mut *linux, 253, 1), []);
}

#[test]
fn interleaved_streams_of_one_open_file_go_on_at_their_marks() {
    // Stream A at 0.., stream B at 1000.., alternating. A 0: 0..4, mark 1. B 1000: random (no neighbours). A 1: the
    // state is still A's: 4..12, mark 4. B 1001: the last request was A's, but one cached block before it is not more
    // than the request: random. A 2; B 1002: two cached before it: a trace, window of 2 + 1 = 3 from 1002, async 1,
    // mark at 1004, and the state is B's. A 3. A 4 is marked but not where the state expects it: the first absent
    // block after it is 12, 8 further; (8 + 1) * 2 = 18 from 12, mark at 12; the state is A's again. B 1004, marked:
    // absent from 1005, 1 further; (1 + 1): 2 is not below 32/16: 4 from 1005.
    let (mut level, mut linux) = (Level::new(10_000), named("linux", OLD));
    let order = [0, 1000, 1, 1001, 2, 1002, 3, 1003, 4, 1004];
    let runs: Vec<_> = order.iter().map(|block| level.read(&mut *linux, *block, 1)).collect();
    let none = Vec::new;
    let expected = [
        vec![(0, 4)],
        none(),
        vec![(4, 8)],
        none(),
        none(),
        vec![(1002, 3)],
        none(),
        none(),
        vec![(12, 18)],
        vec![(1005, 4)],
    ];
    assert_eq!(runs, expected);
}

#[test]
fn open_files_are_apart() {
    // Two clients of one file, at 10 and at 50 in turn: each follows its own.
    let (mut level, mut linux) = (Level::new(1000), named("linux", OLD));
    let mut ask =
        |client, first| level.ask(&mut *linux, Asked { file: 0, first, count: 1, client, ends_inside: false }).len();
    assert_eq!([ask(0, 10), ask(1, 50), ask(0, 11), ask(1, 51)], [0, 0, 1, 1]);
}

#[test]
fn the_end_of_the_file_cuts_the_window_and_takes_the_mark_with_it() {
    // 10 blocks: 0..4 marked at 1; 1: 4..10 of 4..12, marked at 4; 4: nothing of 12..28 is in the file.
    let (mut level, mut linux) = (Level { file_blocks: Some(10), ..Level::new(1000) }, named("linux", OLD));
    assert_eq!(triggers(&mut level, &mut *linux, 0, 10), [(0, 0, 4), (1, 4, 6)]);
    assert_eq!((level.missed, level.prefetched), (1, 9));
}

#[test]
fn an_evicted_mark_is_gone() {
    // 0..4 with the mark on 1. A cache of 4 frames: a random read of 700 evicts 0, 800 evicts 1.
    let (mut level, mut linux) = (Level::new(4), named("linux", OLD));
    level.read(&mut *linux, 0, 1);
    level.read(&mut *linux, 700, 1);
    level.read(&mut *linux, 800, 1);
    // 1 is absent, random: none cached before it.
    assert_eq!(level.read(&mut *linux, 1, 1), []);
}

#[test]
fn windows_of_later_kernels_end_where_their_folios_end() {
    // max 32, requests of 16. 0: 16 * 2 = 32 blocks would be a quarter of max at most; it is more: 32, all of it, 16
    // ahead: mark at 16, single pages. 16: next 32 from 32, folios of 4, ends at 64. Then 64..96, folios of 16, and so
    // on.
    let keys = "version = \"6.18\"";
    let (mut level, mut linux) = (Level::new(10_000), named("linux", keys));
    let runs: Vec<_> = (0..4).map(|at| level.read(&mut *linux, at * 16, 16)).collect();
    assert_eq!(runs, [vec![(0, 32)], vec![(32, 32)], vec![(64, 32)], vec![]]);

    // A stream from 1005 on: 16 demanded, then 16 that follow: initial window 32 from 1021, mark at 1037. There 32
    // from 1053 would end at 1085; folios of 4: 1084. Its mark is 1053, alone, as 4 does not divide it. There 32 from
    // 1084 to 1116, folios of 16, of which max allows to align: 1104. 1084 is divided by 4: the mark is 1084..1088.
    let (mut level, mut linux) = (Level::new(10_000), named("linux", keys));
    let runs: Vec<_> = [1005, 1021, 1037, 1053].map(|at| level.read(&mut *linux, at, 16)).to_vec();
    assert_eq!(runs, [vec![], vec![(1021, 32)], vec![(1053, 31)], vec![(1084, 20)]]);
    // 1086, within the marked folio: the state expects it, and goes on from 1104 with twice 20, but 32, to 1136;
    // folios of 32 (order 6 is more than max is divided by): 1120.
    assert_eq!(level.read(&mut *linux, 1086, 2), [(1104, 16)]);
    // The same in 6.12: windows as long as allowed, and a mark on one page, which 1086 misses.
    let (mut level, mut linux) = (Level::new(10_000), named("linux", OLD));
    let runs: Vec<_> = [1005, 1021, 1037, 1053].map(|at| level.read(&mut *linux, at, 16)).to_vec();
    assert_eq!(runs, [vec![], vec![(1021, 32)], vec![(1053, 32)], vec![(1085, 32)]]);
    assert_eq!(level.read(&mut *linux, 1086, 2), []);
}

#[test]
fn later_kernels_read_a_stream_without_gaps_and_end_on_large_folios() {
    // Wherever a stream begins and however long its requests are. A window shorter than its folio stays unchanged;
    // those of 32 pages end at multiples of 32, which is what divides max.
    for (start, request) in (1..70).flat_map(|start| [1, 3, 4, 7, 16].map(|request| (start * 37, request))) {
        let (mut level, mut linux) = (Level::new(10_000), named("linux", "version = \"6.18\""));
        let reads = (0..600 / u64::from(request)).map(|at| start + at * u64::from(request));
        let windows: Vec<(u64, u64)> = reads
            .flat_map(|first| level.read(&mut *linux, first, request))
            .map(|(first, count)| (first, first + u64::from(count)))
            .collect();
        assert!(windows.windows(2).all(|pair| pair[0].1 == pair[1].0), "{start} {request} {windows:?}");
        assert!(windows.iter().all(|window| window.1 - window.0 <= 32), "{start} {request} {windows:?}");
        let (first, end) = windows[windows.len() - 1];
        assert_eq!((end - first, end % 32), (32, 0), "{start} {request} {windows:?}");
    }
}

#[test]
fn what_a_random_read_fetches_is_there_for_the_rest_of_the_read() {
    // A stream at 50: window 51..55, marked at 52. Then one at 901 takes the state. 51, 53 and 55 are absent when
    // 51..56 is read: one cached block before it, 50, and five to read: random, and it fetches all three. The mark on
    // 52 is not where the state expects it: the first absent block after it is 56, 4 further; (4 + 4) * 2 = 16 from
    // there.
    let (mut level, mut linux) = (Level::new(10_000), named("linux", ""));
    let runs: Vec<_> = [50, 51, 900, 901].iter().map(|block| level.read(&mut *linux, *block, 1)).collect();
    assert_eq!(runs, [vec![], vec![(51, 4)], vec![], vec![(901, 4)]]);
    for block in [51, 53] {
        level.cached.remove(&(0, block));
    }
    assert_eq!(level.read(&mut *linux, 51, 5), [(56, 16)]);
}

#[test]
fn where_a_request_ends_inside_its_last_block_that_is_where_it_ended() {
    // 500 in part: its end is in 500, so 501 follows and 502 does not; after a whole block 502 does.
    for (ends_inside, block, follows) in
        [(true, 501, true), (true, 502, false), (false, 502, true), (false, 503, false)]
    {
        let (mut level, mut linux) = (Level::new(1000), named("linux", ""));
        level.ask(&mut *linux, Asked { file: 0, first: 500, count: 1, client: 0, ends_inside });
        assert_eq!(!level.read(&mut *linux, block, 1).is_empty(), follows, "{ends_inside} {block}");
    }
}

#[test]
fn a_hole_after_a_mark_within_a_folio_is_found_late() {
    // Requests of 16 from 1037, after one before it: windows 1037..1069 of single blocks, marked at 1053, 1069..1100 of
    // folios of 4, marked at 1069, and 1100..1120, marked at 1100..1104. A read at 5000 and its neighbours take the
    // state. Then 1103 hits the mark, whose folio begins at 1100. From 1101 on the kernel looks for a hole, but in the
    // slot of the folio's head, 1100: it is in slot 1120 at index 1121. 21 further than 1100, and 1 + 3 to read from
    // there: 25, more than half of max, so 32 from 1121, to 1153; folios of 16, as the last window had 4: to 1152.
    let (mut level, mut linux) = (Level::new(10_000), named("linux", ""));
    for at in [1021, 1037, 1053, 1069] {
        level.read(&mut *linux, at, 16);
    }
    for block in [5000, 5001, 5002] {
        level.read(&mut *linux, block, 1);
    }
    assert_eq!(level.read(&mut *linux, 1103, 1), [(1121, 31)]);
}

#[test]
fn a_read_ahead_of_nothing_reads_block_by_block() {
    let (mut level, mut linux) = (Level::new(1000), named("linux", "read_ahead = 0"));
    assert_eq!((level.read(&mut *linux, 0, 8), level.read(&mut *linux, 8, 8), level.missed), (vec![], vec![], 16));
    assert_eq!((linux.order_max(), named("linux", "").order_max()), (1, u32::MAX));
}
