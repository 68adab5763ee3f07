//! Algorithms 1 and 2 of zhang-pfc, request by request, worked out by hand: every branch.
//!
//! B is the bypass queue and R the readmore queue, oldest first; bl and rl are bypass_length and readmore_length.

use headstart_policy::coordinator::{Average, PfcSetting, Share, Update};

use crate::common::Lower;

/// A lower level of 60 frames: queues of 6 names.
fn lower() -> Lower {
    Lower::new(PfcSetting::published(60))
}

#[test]
fn a_sequential_reader_is_read_ahead_for_until_enough_is_cached() {
    let mut lower = lower();
    // Nothing cached, queues empty. Average 4 / 1 = 4, rm_size = max(4, 4) = 4.
    // Not in B: bl = 0 + 1. Not cached, not in R: rl = 0.
    // B = [100]. end_pfc = 103 + 0, R = [103 .. 103 + 4].
    assert_eq!(lower.ask(100..=103), (1, 0));
    assert_eq!(lower.lengths(), (1, 0));
    assert_eq!(lower.queued(), (1, 5));

    // 104 to 107 are in R, not cached: rl = rm_size = 4. Not in B: bl = 2.
    // B = [100, 104, 105]. end_pfc = 107 + 4, window 111 to 115: R = [107, 111, 112, 113, 114, 115].
    assert_eq!(lower.ask(104..=107), (2, 4));
    assert_eq!(lower.lengths(), (2, 4));
    assert_eq!(lower.queued(), (3, 6));

    // The level has stored 106, 107 and readmore's 108 to 111. The ahead test wants 111 to 115: no.
    // A cache hit, and 111 is in R: rl = rm_size = 4. Not in B: bl = 3.
    // B = [100, 104, 105, 108, 109, 110]. end_pfc = 111 + 4, window 115 to 119.
    lower.cache.extend(106..=111);
    assert_eq!(lower.ask(108..=111), (3, 4));
    assert_eq!(lower.lengths(), (3, 4));
    assert_eq!(lower.queued(), (6, 6));

    // Its own read-ahead has brought 112 to 119: all of 115 to 115 + 4 is cached. bl = req_size = 4, rl = 0.
    // All of the request enters B: [109, 110, 112, 113, 114, 115].
    lower.cache.extend(112..=119);
    assert_eq!(lower.ask(112..=115), (4, 0));
    assert_eq!(lower.lengths(), (4, 0));
    assert_eq!(lower.queued(), (6, 6));

    // 112 is gone from the cache and requested again: in B, so bypassing was wrong, bl = 4 - 1. The window after the
    // last request was 115 to 119, and R had room for one more, an older one that is not 112: rl = 0.
    lower.cache.clear();
    assert_eq!(lower.ask(112..=112), (1, 0));
    assert_eq!(lower.lengths(), (3, 0));
}

#[test]
fn a_bypass_that_proves_wrong_is_taken_back_down_to_nothing() {
    let mut lower = lower();
    // bl = 1. B = [10]. Average 1, rm_size = 1, R = [10, 11].
    assert_eq!(lower.ask(10..=10), (1, 0));
    // bl = 2, more than the request has: start_pfc = end_u + 1. B = [10, 20]. R = [10, 11, 20, 21].
    assert_eq!(lower.ask(20..=20), (1, 0));
    assert_eq!(lower.lengths(), (2, 0));
    // In B, not cached: bl = 1. In R, since the window begins with the last block asked for: rl = 1.
    // end_pfc = 10 + 1, window 11 to 12: R = [20, 21, 10, 11, 12].
    assert_eq!(lower.ask(10..=10), (1, 1));
    assert_eq!(lower.lengths(), (1, 1));
    assert_eq!(lower.queued(), (2, 5));
    // bl = 0, and the whole request goes to the level's policy. The check has made 10 the newest of B.
    assert_eq!(lower.ask(10..=10), (0, 1));
    assert_eq!(lower.lengths(), (0, 1));
    // bl = max(0 - 1, 0).
    assert_eq!(lower.ask(10..=10), (0, 1));
    assert_eq!(lower.lengths(), (0, 1));
    // In B and cached (the ahead test fails at 21): bl stays. In R: rl = 1.
    lower.cache.insert(20);
    assert_eq!(lower.ask(20..=20), (0, 1));
    assert_eq!(lower.lengths(), (0, 1));
    // In neither queue, not cached: bl = 1, rl = 0.
    assert_eq!(lower.ask(30..=30), (1, 0));
    assert_eq!(lower.lengths(), (1, 0));
}

#[test]
fn a_cache_hit_updates_readmore_and_raises_bypass_at_most() {
    let mut lower = lower();
    lower.ask(0..=0); // bl = 1, R = [0, 1]
    assert_eq!(lower.ask(1..=1), (1, 1)); // in R: rl = 1; bl = 2
    lower.cache.insert(50);
    assert_eq!(lower.ask(50..=50), (1, 0)); // cached, in neither queue: bl = 3, rl = 0
    assert_eq!(lower.lengths(), (3, 0));
    assert_eq!(lower.ask(50..=50), (1, 1)); // cached and in B: bl stays 3; in R, whose window began with it: rl = 1
    assert_eq!(lower.lengths(), (3, 1));
}

#[test]
fn where_misses_alone_update_it_a_cache_hit_lets_readmore_be() {
    let mut lower = Lower::new(PfcSetting { update: Update::Miss, ..PfcSetting::published(60) });
    lower.ask(0..=0); // bl = 1, R = [0, 1]
    assert_eq!(lower.ask(1..=1), (1, 1)); // in R: rl = 1; bl = 2
    lower.cache.insert(50);
    assert_eq!(lower.ask(50..=50), (1, 1)); // cached, in neither queue: bl = 3, rl stays 1
    assert_eq!(lower.lengths(), (3, 1));
    assert_eq!(lower.ask(50..=50), (1, 1)); // cached and in B: bl stays 3
    assert_eq!(lower.lengths(), (3, 1));
}

/// After two sequential requests of 4: average 4, bl = 2, rl = 4, R ends with the window 11 to 15.
fn reading_on(setting: PfcSetting) -> Lower {
    let mut lower = Lower::new(setting);
    assert_eq!(lower.ask(0..=3), (1, 0)); // window 3 to 7
    assert_eq!(lower.ask(4..=7), (2, 4)); // end_pfc = 7 + 4, window 11 to 11 + 4
    lower
}

#[test]
fn a_large_request_to_a_full_level_resets_readmore() {
    // 8 <= 2 * 4 is taken in first: the average is (4 + 4 + 8) / 3 = 5.33, and 8 is larger.
    let setting = PfcSetting { update: Update::Miss, ..PfcSetting::published(100) };
    let mut full = reading_on(setting);
    full.full = true;
    full.cache.insert(8);
    assert_eq!(full.ask(8..=15), (3, 0)); // rl = 0; a cache hit: it stays so
    assert_eq!(full.state().average, Average { blocks: 16, requests: 3 });

    let mut with_room = reading_on(setting);
    with_room.cache.insert(8);
    assert_eq!(with_room.ask(8..=15), (3, 4)); // not full: rl stays 4

    let mut missing = reading_on(setting);
    missing.full = true;
    // rl = 0, but no block is cached and 11 to 15 are in R: rl = rm_size = max(8, 5.33).
    assert_eq!(missing.ask(8..=15), (3, 8));

    let mut as_usual = reading_on(setting);
    as_usual.full = true;
    as_usual.cache.insert(8);
    assert_eq!(as_usual.ask(8..=11), (3, 4)); // 4 is not larger than 12 / 3
}

#[test]
fn a_large_request_changes_nothing_where_every_request_updates_readmore() {
    // The update sets again what the reset removes: 11 to 15 are in R, rl = 8. Whatever counts as large.
    for large in [0.0, 0.5, 1.0] {
        let large = Share::try_new(large).unwrap();
        let mut full = reading_on(PfcSetting { large, ..PfcSetting::published(100) });
        full.full = true;
        full.cache.insert(8);
        assert_eq!(full.ask(8..=15), (3, 8));
    }
}

#[test]
fn the_average_leaves_out_requests_above_twice_its_old_value() {
    let mut lower = lower();
    let mut average = |blocks: std::ops::RangeInclusive<u64>| {
        lower.ask(blocks);
        let Average { blocks, requests } = lower.state().average;
        (blocks, requests)
    };
    assert_eq!(average(0..=4), (5, 1)); // the first, whatever its size
    assert_eq!(average(100..=110), (5, 1)); // 11 > 2 * 5
    assert_eq!(average(200..=209), (15, 2)); // 10 <= 2 * 5
    assert_eq!(average(300..=315), (15, 2)); // 16 > 2 * 7.5
    assert_eq!(average(400..=414), (30, 3)); // 15 <= 2 * 7.5
    assert_eq!(average(500..=500), (31, 4)); // however small
}

#[test]
fn rm_size_is_the_larger_of_request_and_average_rounded_up() {
    let mut lower = lower();
    assert_eq!(lower.ask(0..=1), (1, 0)); // average 2, window 1 to 1 + 2
    assert_eq!(lower.ask(2..=4), (2, 3)); // average 5 / 2, rm_size = max(3, 2.5); window 7 to 10
    assert_eq!(lower.ask(7..=8), (2, 3)); // average 7 / 3, rm_size = max(2, 2.33), rounded up; bl = 3
    assert_eq!(lower.lengths(), (3, 3));
    // That window was 8 + 3 to 11 + 3: 14 is in it, 15 is not. Average 8 / 4 = 2 and 9 / 5, rounded up 2.
    assert_eq!(lower.ask(14..=14), (1, 2));
    let mut again = self::lower();
    for blocks in [0..=1, 2..=4, 7..=8] {
        again.ask(blocks);
    }
    assert_eq!(again.ask(15..=15), (1, 0));
}

#[test]
fn an_overlong_range_leaves_its_tail_in_the_queue() {
    // Queues of ceil(0.1 * 11) = 2. With 9 to 19 cached, all of 0 to 9 is bypassed, and B = [8, 9].
    let bypassed = || {
        let mut lower = Lower::new(PfcSetting::published(11));
        lower.cache.extend(9..=19);
        assert_eq!(lower.ask(0..=9), (10, 0));
        assert_eq!(lower.queued(), (2, 2)); // of the window 9 to 19: [18, 19]
        lower.cache.clear();
        lower
    };
    for (block, bypass_length) in [(7, 11), (8, 9), (9, 9)] {
        let mut lower = bypassed();
        assert_eq!(lower.ask(block..=block), (1, 0));
        assert_eq!(lower.lengths(), (bypass_length, 0), "block {block}");
    }
    for (block, readmore) in [(17, 0), (18, 10), (19, 10)] {
        // The average is (10 + 1) / 2 = 5.5: rm_size would be 6.
        let expected = if readmore > 0 { 6 } else { 0 };
        assert_eq!(bypassed().ask(block..=block), (1, expected), "block {block}");
    }
}

#[test]
fn random_reads_are_bypassed_except_at_the_beginning() {
    // Section 3.2. Each request of 4 finds nothing: bl = 1, 2, 3, 4, and from then on all of each is bypassed.
    let mut lower = lower();
    for number in 0..100 {
        let first = (number * 7919 % 1000) * 1000;
        assert_eq!(lower.ask(first..=first + 3), ((number as u32 + 1).min(4), 0));
    }
    assert_eq!(lower.lengths(), (100, 0));
}

#[test]
fn blocks_of_different_files_are_different_blocks() {
    let mut lower = lower();
    lower.ask_for(0, 0..=3); // B = [0 of file 0], R = [3 to 7 of file 0]
    assert_eq!(lower.ask_for(1, 4..=7), (2, 0)); // 4 to 7 of file 1 are not in R
    assert_eq!(lower.ask_for(1, 0..=0), (1, 0)); // 0 of file 1 is not in B
    assert_eq!(lower.lengths(), (3, 0));
    assert_eq!(lower.ask_for(0, 0..=0), (1, 0)); // 0 of file 0 is
    assert_eq!(lower.lengths(), (2, 0));
}
