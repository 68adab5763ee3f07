//! AMP's p and g, step by step.

use headstart_policy::readahead::Asked;

use crate::common::{named, Level};

fn scan(
    level: &mut Level,
    amp: &mut dyn headstart_policy::ReadAhead,
    blocks: std::ops::Range<u64>,
) -> Vec<(u64, u64, u32)> {
    let mut named = Vec::new();
    for block in blocks {
        named.extend(level.read(amp, block, 1).into_iter().map(|(first, count)| (block, first, count)));
    }
    named
}

#[test]
fn p_grows_by_the_request_and_becomes_asynchronous_above_four() {
    // 10: no block before it. 11: a miss after a cached block: p = 1 (the request), 12. 12, the last of its set: p = 2.
    // 13 misses: 14, 15. 15: p = 3. 16: 17..20. 19: p = 4. 20: 21..25. 24: p = 5. 25 misses: 26..31, now p > 4:
    // g = 2, trigger 30 - 2 = 28. 28: 5 blocks, 31..36, trigger 33. 30, a last block: p of the last set = 6. 33: 6
    // blocks, 36..42, trigger 39. 35: p = 7. 39: 7, 42..49, trigger 46. And no miss any more.
    let (mut level, mut amp) = (Level::new(10_000), named("amp", ""));
    let named = scan(&mut level, &mut *amp, 10..40);
    let expected =
        [(11, 12, 1), (13, 14, 2), (16, 17, 3), (20, 21, 4), (25, 26, 5), (28, 31, 5), (33, 36, 6), (39, 42, 7)];
    assert_eq!(named, expected);
    assert_eq!(level.missed, 6); // 10, 11, 13, 16, 20, 25
    scan(&mut level, &mut *amp, 40..2000);
    assert_eq!(level.missed, 6);
}

#[test]
fn large_requests_grow_it_faster() {
    // Requests of 4: 0 (no block before it). 4: p = 4, 8..12. 8 uses 11, the last: p = 8. 12 misses: 16..24, g = 2,
    // trigger 21. 16. 20 uses 21 and 23, the last of the set: p = 12, 24..36.
    let (mut level, mut amp) = (Level::new(10_000), named("amp", ""));
    let runs: Vec<_> = (0..6).map(|number| level.read(&mut *amp, 4 * number, 4)).collect();
    assert_eq!(runs, [vec![], vec![(8, 4)], vec![], vec![(16, 8)], vec![], vec![(24, 12)]]);
}

#[test]
fn p_grows_no_further_than_its_limit() {
    let (mut level, mut amp) = (Level::new(10_000), named("amp", "max_degree = 6"));
    let sizes: Vec<_> = scan(&mut level, &mut *amp, 0..200).into_iter().map(|(_, _, size)| size).collect();
    assert_eq!(sizes[..7], [1, 2, 3, 4, 5, 5, 6]);
    assert!(sizes[7..].iter().all(|size| *size == 6));
}

#[test]
fn waste_lowers_p_and_g() {
    // As in the first test up to 24: p = 5 with the set 21..25. 25 prefetches 26..31 with p = 5, g = 2, trigger 28.
    let (mut level, mut amp) = (Level::new(10_000), named("amp", ""));
    assert_eq!(scan(&mut level, &mut *amp, 10..26).last(), Some(&(25, 26, 5)));
    // 26 and 27 leave unused: p = 4, g = min(2 - 1, 3) = 1; p = 3, g = 0. The next set, at the trigger 28, has 3.
    for index in [26, 27] {
        amp.evicted(0, index, true);
    }
    assert_eq!(scan(&mut level, &mut *amp, 28..29), [(28, 31, 3)]);
    // Used blocks that leave change nothing: 30 and 33, last of their sets, have p of 31..34 grow to 5 as ever.
    amp.evicted(0, 24, false);
    assert_eq!(scan(&mut level, &mut *amp, 29..35), [(34, 35, 5)]);
}

#[test]
fn a_waited_for_set_raises_g() {
    // Every prefetched block is still in flight when it is requested. As in the first test up to 28, with g = 2: the
    // first sets came with their requests. 28: 31..36, trigger 35 - 2 = 33. 30: p = 6. 31, the first of a set
    // prefetched ahead, is waited for: g = 3. 33: 36..42, trigger 41 - 3 = 38. 35: p = 7, 36: g = 4. 38: 42..49,
    // trigger 48 - 4 = 44. 41: p = 8, 42: g = 5. 44: 49..57, trigger 56 - 5 = 51.
    let (mut level, mut amp) = (Level { late: true, ..Level::new(10_000) }, named("amp", ""));
    let named = scan(&mut level, &mut *amp, 10..51);
    assert_eq!(named[4..], [(25, 26, 5), (28, 31, 5), (33, 36, 6), (38, 42, 7), (44, 49, 8)]);
}

#[test]
fn streams_have_their_own_p() {
    // Two streams in turn; the one in file 1 has requests of 3 and grows by 3.
    let (mut level, mut amp) = (Level::new(10_000), named("amp", ""));
    let mut sizes = [Vec::new(), Vec::new()];
    for number in 0..8u64 {
        for (file, count) in [(0, 1), (1, 3)] {
            let asked = Asked { file, first: 100 + number * u64::from(count), count, client: 0, ends_inside: false };
            sizes[file as usize].extend(level.ask(&mut *amp, asked).iter().map(|run| run.count));
        }
    }
    // 0: 101: 1; 103: 2; 106: 3 (107 is the last asked for). 1: 103..106: 3; 109..112: p = 6, 112..118 with trigger
    // 115; 115 uses it and 117, the last: 9.
    assert_eq!(sizes, [vec![1, 2, 3], vec![3, 6, 9]]);
}

#[test]
fn degrees_settle_in_the_ratio_of_the_rates() {
    // Theorem III.1: p = rate * life of a block. Two streams, one with three requests for each one of the other, in a
    // cache too small for the greatest p: their degrees should settle near 3 to 1, with little waste. (103 and 25
    // blocks on average, 4.1 to 1: a step of p is small for the one and large for the other. 330 of 40,330 fetched
    // blocks are wasted or still ahead.)
    let (mut level, mut amp) = (Level::new(200), named("amp", "max_degree = 1000"));
    let (mut next, mut degrees) = ([0, 0], [Vec::new(), Vec::new()]);
    for number in 0..40_000 {
        let file = u32::from(number % 4 == 3);
        let asked = Asked { file, first: next[file as usize], count: 1, client: 0, ends_inside: false };
        next[file as usize] += 1;
        let runs = level.ask(&mut *amp, asked);
        if number >= 20_000 {
            degrees[file as usize].extend(runs.iter().map(|run| f64::from(run.count)));
        }
    }
    let mean = |degrees: &[f64]| degrees.iter().sum::<f64>() / degrees.len() as f64;
    let ratio = mean(&degrees[0]) / mean(&degrees[1]);
    assert!((2.0..4.5).contains(&ratio), "{ratio}");
    assert!(level.missed < 400 && level.prefetched < 42_000, "{} {}", level.missed, level.prefetched);
}
