//! `obl`, `ra` and `linux-2.6`, block by block.

use crate::common::{named, Level};

#[test]
fn obl_at_each_of_smiths_moments() {
    // Blocks 0, 1, 1, 9: absent; prefetched unless nothing is ever ahead; asked before; absent.
    let next = |when: &str| {
        let (mut level, mut obl) = (Level::new(100), named("obl", when));
        [0, 1, 1, 9].map(|block| level.read(&mut *obl, block, 1))
    };
    assert_eq!(next("when = \"always\""), [vec![(1, 1)], vec![(2, 1)], vec![(2, 1)], vec![(10, 1)]]);
    // 1 was prefetched by 0: a hit, so it prefetches nothing, and 2 would miss.
    assert_eq!(next("when = \"miss\""), [vec![(1, 1)], vec![], vec![], vec![(10, 1)]]);
    // The first reference to 1 finds its tag, the second does not.
    assert_eq!(next("when = \"tagged\""), [vec![(1, 1)], vec![(2, 1)], vec![], vec![(10, 1)]]);
    assert_eq!(next(""), next("when = \"tagged\""));
}

#[test]
fn obl_looks_one_block_past_a_request_of_several() {
    let (mut level, mut obl) = (Level::new(100), named("obl", ""));
    assert_eq!(level.read(&mut *obl, 4, 3), [(7, 1)]); // 4, 5, 6 are asked for
    assert_eq!(level.read(&mut *obl, 7, 2), [(9, 1)]); // 7 was prefetched, 8 is absent
}

#[test]
fn ra_prefetches_four_after_each_request() {
    let (mut level, mut ra) = (Level::new(100), named("ra", ""));
    assert_eq!(level.read(&mut *ra, 0, 1), [(1, 4)]);
    assert_eq!(level.read(&mut *ra, 1, 1), [(2, 4)]); // a hit triggers too; of 2..6 only 5 is new
    assert_eq!(level.prefetched, 5);
    assert_eq!(level.read(&mut *ra, 50, 8), [(58, 4)]); // and a random read
}

#[test]
fn adaptive_ra_rises_and_falls() {
    // A period of 4, marks at 3 and 1. Sequential single blocks, degree 2:
    // 0: prefetches 1, 2 (2 seen). 1: useful 1; prefetches 3 (3 seen). 2: useful 2; 4 (4 seen).
    // 3: useful 3 of 4 seen: degree 3; prefetches 4, 5, 6.
    let (mut level, mut ra) =
        (Level::new(100), named("ra", "adaptive = true\ndegree = 2\nperiod = 4\nhigh = 3\nlow = 1\nmax_degree = 3"));
    let runs: Vec<_> = (0..4).flat_map(|block| level.read(&mut *ra, block, 1)).collect();
    assert_eq!(runs, [(1, 2), (2, 2), (3, 2), (4, 3)]);
    // New in the last: 5 and 6, so 2 seen. Random reads, none useful: 20 makes it 5 seen, and 30 lowers to 2.
    assert_eq!(level.read(&mut *ra, 20, 1), [(21, 3)]);
    assert_eq!(level.read(&mut *ra, 30, 1), [(31, 2)]);
    // 2 seen; 40: 4 seen; 50 lowers to 1; 1 seen at 50, 2, 3, 4 at 60, 70, 80; 90 lowers to 0.
    let runs: Vec<_> = [40, 50, 60, 70, 80, 90].into_iter().flat_map(|block| level.read(&mut *ra, block, 1)).collect();
    assert_eq!(runs, [(41, 2), (51, 1), (61, 1), (71, 1), (81, 1)]);
    // At 0, misses after a cached block count: 91, 92, 93 and 94 are four of four. Back to 1 at once.
    let runs: Vec<_> = (91..95).map(|block| level.read(&mut *ra, block, 1)).collect();
    assert_eq!(runs, [vec![], vec![], vec![], vec![(95, 1)]]);
}

#[test]
fn linux_2_6_doubles_its_groups_up_to_32() {
    // Single blocks from 0. 0 is outside: 3 blocks after it, 1..4. 1 enters that group: 6 more, 4..10. 2 and 3 are in
    // the previous group. 4 enters the current one: 12, 10..22. 10: 24, 22..46. 22: 32 (not 48), 46..78. 46: 32.
    let (mut level, mut linux) = (Level::new(1000), named("linux-2.6", ""));
    let triggers: Vec<_> = (0..80).map(|block| (block, level.read(&mut *linux, block, 1))).collect();
    let triggers: Vec<_> = triggers.into_iter().filter(|(_, runs)| !runs.is_empty()).collect();
    let run = |at: u64, first, count| (at, vec![(first, count)]);
    assert_eq!(
        triggers,
        [
            run(0, 1, 3),
            run(1, 4, 6),
            run(4, 10, 12),
            run(10, 22, 24),
            run(22, 46, 32),
            run(46, 78, 32),
            run(78, 110, 32)
        ]
    );
    assert_eq!(level.missed, 1); // only block 0
                                 // A jump falls back to 3; a jump into the window does not.
    assert_eq!(level.read(&mut *linux, 500, 4), [(504, 3)]);
    assert_eq!(level.read(&mut *linux, 506, 1), [(507, 6)]);
}

#[test]
fn linux_2_6_follows_large_requests_and_each_file_apart() {
    // 8 blocks from 0: 8..11. 8 blocks from 8: inside, and the window ends at 11, the request at 16: 6 from 16.
    let (mut level, mut linux) = (Level::new(1000), named("linux-2.6", ""));
    assert_eq!(level.read(&mut *linux, 0, 8), [(8, 3)]);
    let other = headstart_policy::readahead::Asked { file: 1, first: 70, count: 1, client: 0, ends_inside: false };
    assert_eq!(level.ask(&mut *linux, other)[0].first, 71);
    assert_eq!(level.read(&mut *linux, 8, 8), [(16, 6)]);
    assert_eq!(level.read(&mut *linux, 16, 8), [(24, 12)]);
}

#[test]
fn linux_2_6_to_the_letter_runs_away_from_single_blocks() {
    // Every request in the window prefetches: 0: 1..4; 1: 4..10; 2: 10..22, and the window is now 4..22, so 3 is
    // outside: 4..7 again, all cached.
    let (mut level, mut linux) = (Level::new(1000), named("linux-2.6", "trigger = \"window\""));
    let runs: Vec<_> = (0..4).flat_map(|block| level.read(&mut *linux, block, 1)).collect();
    assert_eq!(runs, [(1, 3), (4, 6), (10, 12), (4, 3)]);
}
