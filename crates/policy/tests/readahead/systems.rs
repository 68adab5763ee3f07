//! The read-aheads of databases, file systems and object-store clients, and `stride`.

use headstart_policy::readahead::{read_ahead, Asked};
use headstart_policy::ReadAhead;

use crate::common::{build, named, Level};

/// Single blocks; of those that made something be named, what.
fn scan(level: &mut Level, policy: &mut dyn ReadAhead, blocks: impl Iterator<Item = u64>) -> Vec<(u64, u64, u32)> {
    let mut named = Vec::new();
    for block in blocks {
        named.extend(level.read(policy, block, 1).into_iter().map(|(first, count)| (block, first, count)));
    }
    named
}

#[test]
fn stride_predicts_once_two_distances_agree() {
    let (mut level, mut stride) = (Level::new(1000), named("stride", "degree = 2"));
    // 10: initial. 20: transient, stride 10. 30: steady. 100: wrong: initial, still 10. 110: steady again.
    let named_by = scan(&mut level, &mut *stride, [10, 20, 30, 100, 110].into_iter());
    assert_eq!(named_by, [(30, 40, 1), (30, 50, 1), (110, 120, 1), (110, 130, 1)]);
    // 115: initial, 10. 122: transient, 7. 127: none, 5. 132: transient. 137: steady.
    let named_by = scan(&mut level, &mut *stride, [115, 122, 127, 132, 137].into_iter());
    assert_eq!(named_by, [(137, 142, 1), (137, 147, 1)]);
}

#[test]
fn stride_follows_backward_and_sequential_readers() {
    let (mut level, mut stride) = (Level::new(1000), named("stride", "degree = 3"));
    let runs: Vec<_> = [500, 490, 480].iter().map(|first| level.read(&mut *stride, *first, 4)).collect();
    assert_eq!(runs[2], [(470, 4), (460, 4), (450, 4)]);
    let mut stride = named("stride", "degree = 3");
    let runs: Vec<_> = [0, 4, 8].iter().map(|first| level.read(&mut *stride, *first, 4)).collect();
    assert_eq!(runs[2], [(12, 12)]); // 12..16, 16..20 and 20..24 are one run
}

#[test]
fn rocksdb_doubles_from_two_blocks_to_64_once_three_reads_are_sequential() {
    // 4 KiB blocks: 8 KiB is 2, 256 KiB is 64. 12 is the third read: 13, 14. 15 is the first beyond: 4 from 16. 20: 8.
    // 29: 16. 46: 32. 79: 64. 144: 64.
    let (mut level, mut rocksdb) = (Level::new(1000), named("rocksdb", ""));
    let named_by = scan(&mut level, &mut *rocksdb, 10..200);
    let expected = [(12, 13, 2), (15, 16, 4), (20, 21, 8), (29, 30, 16), (46, 47, 32), (79, 80, 64), (144, 145, 64)];
    assert_eq!(named_by, expected);
    // A seek starts again: it counts as the first read, and with 2 blocks.
    assert_eq!(scan(&mut level, &mut *rocksdb, 500..504), [(502, 503, 2)]);
}

#[test]
fn zfs_doubles_to_the_minimum_distance_and_then_grows_only_when_late() {
    // 0 makes a stream at 1. 1: distance 1: 2. 2: 2 from 3. 3: 4 blocks from 4, of which 4 is prefetched: 5..8. 4: 8
    // from 5: 8..13. Then 8 stays: one more block at each read.
    let (mut level, mut zfs) = (Level::new(1000), named("zfs", "min_distance = 8"));
    let named_by = scan(&mut level, &mut *zfs, 0..7);
    assert_eq!(named_by, [(1, 2, 1), (2, 3, 2), (3, 5, 3), (4, 8, 5), (5, 13, 1), (6, 14, 1)]);
    // Late: 8 blocks and an eighth: 9. 7: up to 8 + 9 = 17: 15, 16. 8: 9 and an eighth: 10.125: up to 19.
    level.late = true;
    assert_eq!(scan(&mut level, &mut *zfs, 7..9), [(7, 15, 2), (8, 17, 2)]);
}

#[test]
fn zfs_keeps_reads_ahead_and_jumps_over_small_holes() {
    // 0: stream at 1. 1: at 2. 3: a hole of 1 before 1 block; 4; 5: a hole of 1 before 3, a quarter of the 4 that it
    // jumps to 6. Distance 4: 6..10. 2, behind, is ignored.
    let (mut level, mut zfs) = (Level::new(1000), named("zfs", ""));
    let named_by = scan(&mut level, &mut *zfs, [0, 1, 3, 4, 5, 2].into_iter());
    assert_eq!(named_by, [(1, 2, 1), (5, 6, 4)]);
    // A read across the stream's position hits in its new part: 4..8 advances 6 to 8 by 2; 4 doubled is 8: 10..16.
    assert_eq!(level.read(&mut *zfs, 4, 4), [(10, 6)]);
}

#[test]
fn zfs_replaces_streams_by_age() {
    let (mut level, mut zfs) = (Level::new(1000), named("zfs", "streams = 1\nmax_reorder = 10"));
    // A stream that has never been hit makes way at once: 1000 replaces 0's.
    assert_eq!(scan(&mut level, &mut *zfs, [0, 1000, 1001].into_iter()), [(1001, 1002, 1)]);
    // One that has been hit does not within a second, and then does.
    assert_eq!(scan(&mut level, &mut *zfs, [5000, 5001].into_iter()), []);
    level.now += 1_100_000_000;
    assert_eq!(scan(&mut level, &mut *zfs, [6000, 6001].into_iter()), [(6001, 6002, 1)]);
}

#[test]
fn innodb_reads_the_next_extent_after_one_read_in_order() {
    let fresh = || (Level::new(30_000), build(read_ahead("innodb").unwrap(), "", 30_000));
    let (mut level, mut innodb) = fresh();
    assert_eq!(scan(&mut level, &mut *innodb, 0..129), [(63, 64, 64), (127, 128, 64)]);
    // Downwards: 64, the last page read of its extent.
    let (mut level, mut innodb) = fresh();
    assert_eq!(scan(&mut level, &mut *innodb, (64..128).rev()), [(64, 0, 64)]);
    // 8 of 64 pages left out still do, 9 do not.
    for (skipped, expected) in [(8, vec![(63, 64, 64)]), (9, vec![])] {
        let (mut level, mut innodb) = fresh();
        assert_eq!(scan(&mut level, &mut *innodb, (0..10).chain(10 + skipped..64)), expected);
    }
    // 9 evicted pages have not been accessed any more.
    let (mut level, mut innodb) = fresh();
    scan(&mut level, &mut *innodb, 0..63);
    (0..9).for_each(|index| innodb.evicted(0, index, false));
    assert_eq!(level.read(&mut *innodb, 63, 1), []);
    // A next extent that is not whole is left alone.
    let (mut level, mut innodb) = fresh();
    level.file_blocks = Some(127);
    assert_eq!(scan(&mut level, &mut *innodb, 0..127), []);
}

#[test]
fn innodb_has_smaller_extents_in_small_pools() {
    // 500 pages: 500 / 32 = 15, so 16.
    let (mut level, mut innodb) = (Level::new(500), build(read_ahead("innodb").unwrap(), "", 500));
    assert_eq!(scan(&mut level, &mut *innodb, 0..16), [(15, 16, 16)]);
}

#[test]
fn postgres_doubles_its_distance_with_each_read() {
    // Reads of up to 4 blocks, 2 at once, so at most (2 + 1) * 4 = 12 blocks ahead. 1 follows 0: a scan. It starts 1
    // itself; consumed, distance 2, nothing pinned: 2, 3. Consuming 2 makes the distance 4, but 3 is pinned and only 3
    // blocks gather. 3: 4 gather: 4..8. 4: distance 8, 3 pinned, 4 gather and start: 8..12; one more gathers. 5, 6:
    // one more each. 7: 12..16. 8: distance 12, 7 pinned: 16..20. So 11 makes room for 20..24, and so on by fours.
    let keys = "io_combine_limit = 4\neffective_io_concurrency = 2";
    let (mut level, mut postgres) = (Level::new(1000), named("postgres", keys));
    let named_by = scan(&mut level, &mut *postgres, 0..13);
    assert_eq!(named_by, [(1, 1, 1), (1, 2, 2), (3, 4, 4), (4, 8, 4), (7, 12, 4), (8, 16, 4), (12, 20, 4)]);
    // Anything else ends the scan.
    assert_eq!(level.read(&mut *postgres, 700, 1), []);
}

#[test]
fn postgres_shortens_its_distance_over_cached_blocks() {
    let keys = "io_combine_limit = 4\neffective_io_concurrency = 2";
    let (mut level, mut warm) = (Level::new(1000), named("postgres", keys));
    scan(&mut level, &mut *warm, 100..200); // and what lies ahead, up to about 212
    let (mut postgres, before) = (named("postgres", keys), level.prefetched);
    assert_eq!(scan(&mut level, &mut *postgres, 100..200), []);
    assert_eq!(level.prefetched, before);
}

#[test]
fn mountpoint_doubles_its_window_when_the_reader_waits() {
    let keys = "initial = 8\nmax = 32\nmax_forward_seek = 6\nmax_backward_seek = 2";
    // Never late: the window of 8 is renewed when less than 4 blocks are left: at 105, up to 113.
    let (mut level, mut mountpoint) = (Level::new(1000), named("mountpoint-s3", keys));
    assert_eq!(scan(&mut level, &mut *mountpoint, 100..106), [(100, 101, 7), (104, 108, 5)]);
    // Always late. 101: 16, 6 left: up to 102 + 16. 102: 32, 15 left: up to 103 + 32. 103: 32 is the most; 31 left.
    let (mut level, mut mountpoint) = (Level { late: true, ..Level::new(1000) }, named("mountpoint-s3", keys));
    let named_by = scan(&mut level, &mut *mountpoint, 100..104);
    assert_eq!(named_by, [(100, 101, 7), (101, 108, 10), (102, 118, 17)]);
    // Back by 2, and forward from 103 by 5, go on; from 109 by 6 does not, nor back by 3.
    assert_eq!(scan(&mut level, &mut *mountpoint, [102, 108].into_iter()), []);
    assert_eq!(scan(&mut level, &mut *mountpoint, [115].into_iter()), [(115, 116, 7)]);
    assert_eq!(scan(&mut level, &mut *mountpoint, [113].into_iter()), [(113, 114, 7)]);
}

#[test]
fn mountpoint_windows_fit_the_level() {
    // 1 MiB + 128 KiB = 288 blocks, but 100 frames allow 50.
    let mut mountpoint = build(read_ahead("mountpoint-s3").unwrap(), "", 100);
    assert_eq!(Level::new(100).read(&mut *mountpoint, 0, 1), [(1, 49)]);
    assert_eq!(Level::new(1000).read(&mut *named("mountpoint-s3", ""), 7, 1), [(8, 287)]);
}

#[test]
fn fsspec_reads_a_block_size_beyond_what_leaves_its_buffer() {
    let (mut level, mut fsspec) = (Level::new(1000), named("fsspec-readahead", "block_size = 4"));
    assert_eq!(scan(&mut level, &mut *fsspec, 10..15), [(10, 11, 4)]); // the buffer is 10..15
    assert_eq!(level.read(&mut *fsspec, 14, 2), [(16, 4)]); // 14 is inside: the buffer is 15..20
                                                            // 14 has gone: anew, 14..19.
    assert_eq!(level.read(&mut *fsspec, 14, 1), [(15, 4)]);

    // 5 MiB of 4 KiB by default; another client has a buffer of its own.
    let mut fsspec = named("fsspec-readahead", "");
    assert_eq!(level.read(&mut *fsspec, 0, 1), [(1, 1280)]);
    assert_eq!(level.ask(&mut *fsspec, Asked { file: 0, first: 1, count: 1, client: 1 })[0].count, 1280);
}
