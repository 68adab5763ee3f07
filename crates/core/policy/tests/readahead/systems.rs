//! The read-aheads of databases, file systems and object-store clients, and `stride`.

use headstart_policy::readahead::Asked;
use headstart_policy::ReadAhead;

use crate::common::{build, named, row, Level};

/// Reads single blocks; returns what each read named, if it named anything.
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
    // 7 is late, which counts at the next hit: 8 blocks and an eighth: 9. 8: up to 9 + 9 = 18: 16, 17. 9: 9 and an
    // eighth: 10.125: up to 20.
    level.late = true;
    assert_eq!(scan(&mut level, &mut *zfs, 7..10), [(7, 15, 1), (8, 16, 2), (9, 18, 2)]);
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
    // A read takes a millisecond here. A stream that was never hit counts as hit a second before it began: it stays for
    // the rest of its second (1000 does not replace 0's) and may be replaced in the next.
    let (mut level, mut zfs) = (Level::new(1000), named("zfs", "streams = 1\nmax_reorder = 10"));
    assert_eq!(scan(&mut level, &mut *zfs, [0, 1000, 1001].into_iter()), []);
    level.now = 1_000_000_000;
    assert_eq!(scan(&mut level, &mut *zfs, [2000, 2001].into_iter()), [(2001, 2002, 1)]);
    // One that has been hit in second 1 stays in second 2, one second later, and not in second 3.
    level.now = 2_900_000_000;
    assert_eq!(scan(&mut level, &mut *zfs, [5000, 5001].into_iter()), []);
    level.now = 3_000_000_000;
    assert_eq!(scan(&mut level, &mut *zfs, [6000, 6001].into_iter()), [(6001, 6002, 1)]);
}

#[test]
fn zfs_prefetches_nothing_for_a_stream_that_finds_all_it_wants() {
    // 0..20 are cached. The distance grows meanwhile: 1, 2, 4, ... 16, of 4 MiB = 1024. 19: up to 20 + 2^18, and all
    // the same nothing. 20 misses: from there on.
    let (mut level, mut zfs) = (Level::new(1000), named("zfs", "min_distance = 8\nmax_distance = 8"));
    scan(&mut level, &mut *named("rocksdb", "reads = 1000"), 0..20);
    assert_eq!(scan(&mut level, &mut *zfs, 0..20), []);
    assert_eq!(scan(&mut level, &mut *zfs, 20..22), [(20, 21, 8), (21, 29, 1)]);
}

#[test]
fn zfs_drops_the_furthest_of_ten_ranges() {
    // A stream at 1, and single blocks with holes of 9 between them: 11, 21, ... 91 are nine ranges. 101 would be the
    // tenth: dropped. 5 comes before them: 91 is dropped. The holes (4 before 5) are more than a quarter all the while.
    // Filling 1..11 by one read reaches 11 and no further: the stream stands at 12.
    let (mut level, mut zfs) = (Level::new(1000), named("zfs", ""));
    let (mut level_of_nine, mut nine) = (Level::new(1000), named("zfs", ""));
    let far = |at: &mut Level, zfs: &mut dyn headstart_policy::ReadAhead, more: &[u64]| {
        let named_by =
            scan(at, zfs, std::iter::once(0).chain((1..10).map(|ten| 10 * ten + 1)).chain(more.iter().copied()));
        assert_eq!(named_by, []);
    };
    far(&mut level, &mut *zfs, &[101, 5]);
    far(&mut level_of_nine, &mut *nine, &[]);
    // 11 blocks are the distance: 12..23, in both.
    assert_eq!(level.read(&mut *zfs, 1, 10), [(12, 11)]);
    assert_eq!(level_of_nine.read(&mut *nine, 1, 10), [(12, 11)]);
    // 12..91 by one read reaches the range 91 where it is kept (to 92, so 80 blocks), and else stops before it (79).
    assert_eq!(level.read(&mut *zfs, 12, 79), [(91, 79)]);
    assert_eq!(level_of_nine.read(&mut *nine, 12, 79), [(92, 80)]);
}

#[test]
fn innodb_reads_the_next_extent_after_one_read_in_order() {
    let fresh = || (Level::new(30_000), build(row("innodb"), "", 30_000));
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
    // 9 evicted pages no longer count as accessed.
    let (mut level, mut innodb) = fresh();
    scan(&mut level, &mut *innodb, 0..63);
    (0..9).for_each(|index| innodb.evicted(0, index, false));
    assert_eq!(level.read(&mut *innodb, 63, 1), []);
    // A next extent that is not whole is left alone.
    let (mut level, mut innodb) = fresh();
    level.file_blocks = Some(127);
    assert_eq!(scan(&mut level, &mut *innodb, 0..127), []);
    // Nor is one before an extent that is not: of 127 pages the last extent has 63.
    let (mut level, mut innodb) = fresh();
    level.file_blocks = Some(127);
    assert_eq!(scan(&mut level, &mut *innodb, (64..127).rev()), []);
    // A threshold of 0 turns it off; with 1, 63 of 64 pages may fail.
    let with = |threshold| build(row("innodb"), &format!("threshold = {threshold}"), 30_000);
    assert_eq!(scan(&mut Level::new(30_000), &mut *with(0), 0..64), []);
    assert_eq!(scan(&mut Level::new(30_000), &mut *with(1), [63].into_iter()), [(63, 64, 64)]);
}

#[test]
fn innodb_has_smaller_extents_in_small_pools() {
    // 500 pages: 500 / 32 = 15, so 16.
    let (mut level, mut innodb) = (Level::new(500), build(row("innodb"), "", 500));
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
fn postgres_starts_what_it_has_once_it_finds_the_end() {
    // As above, of 14 blocks. 4: started up to 12, one more gathers. 5: another, 13 is the last. 6: no more: the end,
    // and the two are started.
    let keys = "io_combine_limit = 4\neffective_io_concurrency = 2";
    let (mut level, mut postgres) = (Level::new(1000), named("postgres", keys));
    level.file_blocks = Some(14);
    let named_by = scan(&mut level, &mut *postgres, 0..14);
    assert_eq!(named_by, [(1, 1, 1), (1, 2, 2), (3, 4, 4), (4, 8, 4), (6, 12, 2)]);
}

#[test]
fn postgres_without_concurrency_gathers_reads_and_issues_each_when_it_is_due() {
    // Reads of up to 4, one at a time, at most 4 ahead. 1: itself; then 2, 3 gather and are started, but issued only
    // when 2 is consumed. Then 4: distance 4; 3 pinned and 3 gathered. 4: all four.
    let keys = "io_combine_limit = 4\neffective_io_concurrency = 0";
    let (mut level, mut postgres) = (Level::new(1000), named("postgres", keys));
    let named_by = scan(&mut level, &mut *postgres, 0..12);
    assert_eq!(named_by, [(1, 1, 1), (2, 2, 2), (4, 4, 4), (8, 8, 4)]);
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
    let keys = "initial = 8\nread_part_size = 20\nmax = 64\nmax_forward_seek = 6\nmax_backward_seek = 2";
    // Never late: the window of 8 is renewed when less than 4 blocks are left: after 104, up to 113.
    let (mut level, mut mountpoint) = (Level::new(1000), named("mountpoint-s3", keys));
    assert_eq!(scan(&mut level, &mut *mountpoint, 100..106), [(100, 101, 7), (104, 108, 5)]);
    // Always late. 101: 6 of 8 left; then 8 * 2 = 16, but at least 20. 102: 5 left, less than half of 20: up to 103 +
    // 20; then 40. 103: 19 left, less than 20: up to 104 + 40; then 80, but at most 64. 104: 39 left, more than 32:
    // nothing.
    let (mut level, mut mountpoint) = (Level { late: true, ..Level::new(1000) }, named("mountpoint-s3", keys));
    let named_by = scan(&mut level, &mut *mountpoint, 100..105);
    assert_eq!(named_by, [(100, 101, 7), (102, 108, 15), (103, 123, 21)]);
    // Back by 2, and forward from 104 by 5, go on; from 110 by 6 does not, nor back by 3.
    assert_eq!(scan(&mut level, &mut *mountpoint, [103, 109].into_iter()), []);
    assert_eq!(scan(&mut level, &mut *mountpoint, [116].into_iter()), [(116, 117, 7)]);
    assert_eq!(scan(&mut level, &mut *mountpoint, [114].into_iter()), [(114, 115, 7)]);
}

#[test]
fn mountpoint_ends_with_the_object() {
    // Of 110 blocks: 104's renewal ends at 110, not at 113; a read beyond the end changes nothing.
    let keys = "initial = 8\nread_part_size = 1";
    let (mut level, mut mountpoint) = (Level::new(1000), named("mountpoint-s3", keys));
    level.file_blocks = Some(110);
    let named_by = scan(&mut level, &mut *mountpoint, (100..105).chain([200]).chain(105..110));
    assert_eq!(named_by, [(100, 101, 7), (104, 108, 2)]);
}

#[test]
fn mountpoint_windows_fit_the_level() {
    // 1 MiB + 128 KiB = 288 blocks, but 100 frames allow 50.
    let mut mountpoint = build(row("mountpoint-s3"), "", 100);
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

    // Of 20 blocks: 15..20 is all that 16..19 leaves; a read over the end that lies in it is a hit, one beyond is none.
    level.file_blocks = Some(20);
    let mut short = named("fsspec-readahead", "block_size = 4");
    assert_eq!(level.read(&mut *short, 15, 3), [(18, 2)]);
    assert_eq!(level.read(&mut *short, 18, 5), []);
    assert_eq!(level.read(&mut *short, 30, 1), []);
    assert_eq!(level.read(&mut *short, 19, 1), []);
    level.file_blocks = None;

    // 5 MiB of 4 KiB by default; another client has a buffer of its own.
    let mut fsspec = named("fsspec-readahead", "");
    assert_eq!(level.read(&mut *fsspec, 0, 1), [(1, 1280)]);
    assert_eq!(
        level.ask(&mut *fsspec, Asked { file: 0, first: 1, count: 1, client: 1, ends_inside: false })[0].count,
        1280
    );
}
