//! Competitive prefetching compared with a naive second implementation, the theorems as properties, and how far slow
//! start and rounding exceed them.

use headstart_analytic::competitive::{
    competitive_depth, competitive_ratio, cost, defeat, latest_violation, optimum, upper_bounds, whole_pages, worst,
    Schedule, Stream, Switches,
};
use proptest::prelude::*;

const MS: f64 = 1e6;

/// A disk: switch time in nanoseconds, bytes per second. From flash on a slow link to arrays.
fn disk() -> impl Strategy<Value = (f64, f64)> {
    (1e4..5e7, 1e5..1e10)
}

/// A stream's length in multiples of some depth, never close to an integer, so that the strict inequality holds despite
/// rounding.
fn multiples(most: u32) -> impl Strategy<Value = f64> {
    let whole = prop_oneof![4 => 0u32..40, 1 => 0..most];
    (whole, 1e-6..1.0).prop_map(|(whole, part)| f64::from(whole) + part)
}

/// Prefetch by prefetch: C_total and C_opt, in nanoseconds. Panics if the schedule never reaches the length.
fn step_by_step(sizes: impl Fn(u64) -> f64, length: f64, switch_ns: f64, rate: f64) -> (f64, f64) {
    let (mut fetched, mut k, mut total) = (0.0, 0, 0.0);
    while fetched < length {
        k += 1;
        assert!(k < 1_000_000, "never ends");
        fetched += sizes(k);
        total += switch_ns + sizes(k) / rate * 1e9;
    }
    (total, switch_ns + length / rate * 1e9)
}

fn near(ours: f64, other: f64) -> bool {
    (ours - other).abs() <= 1e-9 * other.abs()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn closed_forms_equal_step_by_step(
        (switch_ns, rate) in disk(),
        first in 0.001..2.0,
        depth in 0.01..10.0,
        length in multiples(2000),
    ) {
        let unit = competitive_depth(switch_ns, rate);
        let schedule = Schedule::slow_start(first * unit, depth * unit);
        let stream = Stream { length_bytes: length * unit * depth, bytes_per_second: rate };
        let found = cost(&stream, &schedule, Switches::Alike(switch_ns));
        let (total, least) = step_by_step(|k| schedule.size(k), stream.length_bytes, switch_ns, rate);
        prop_assert!(near(found.total_ns(), total), "{} is not {total}", found.total_ns());
        prop_assert!(near(optimum(&stream, switch_ns).total_ns(), least));
        // (3), and both lines of (7) or (14).
        prop_assert!(found.waste_ns <= stream.transfer_ns(schedule.depth_bytes) * (1.0 + 1e-12));
        let bounds = upper_bounds(&stream, &schedule, switch_ns);
        prop_assert!(found.total_ns() <= bounds.at_most_ns * (1.0 + 1e-12));
        prop_assert!(bounds.at_most_ns < bounds.less_than_ns);
        // No length exceeds the supremum.
        let most = worst(&schedule, switch_ns, rate).ratio;
        prop_assert!(total / least <= most * (1.0 + 1e-12), "{} above {most}", total / least);
    }

    /// (8): any streams, each with its own rate, with one switch time.
    #[test]
    fn the_competitive_depth_costs_less_than_twice_the_optimum(
        switch_ns in 1e4..5e7,
        streams in prop::collection::vec((1e5..1e10, multiples(100_000)), 1..20),
    ) {
        let (mut total, mut least) = (0.0, 0.0);
        for (rate, length) in streams {
            let depth = competitive_depth(switch_ns, rate);
            let stream = Stream { length_bytes: length * depth, bytes_per_second: rate };
            let found = cost(&stream, &Schedule::constant(depth), Switches::Alike(switch_ns)).total_ns();
            let best = optimum(&stream, switch_ns).total_ns();
            prop_assert!(found < 2.0 * best, "{found} is not below 2 x {best}");
            (total, least) = (total + found, least + best);
        }
        prop_assert!(total < 2.0 * least);
    }

    /// (8) again in integers, without rounding: arbitrary bytes, nanoseconds and bytes per second.
    #[test]
    fn the_bound_is_strict_in_whole_numbers(
        switch_ns in 1u64..50_000_000,
        rate in 1u64..10_000_000_000,
        length in prop_oneof![1u64..1_000_000, 1u64..1_000_000_000_000],
    ) {
        // All in 1e-9 bytes. A prefetch is a switch's worth, so each costs two of them.
        let unit = u128::from(switch_ns) * u128::from(rate);
        let length_units = u128::from(length) * 1_000_000_000;
        let prefetches = length_units.div_ceil(unit);
        prop_assert!(2 * prefetches * unit < 2 * (unit + length_units));
        let stream = Stream { length_bytes: length as f64, bytes_per_second: rate as f64 };
        let schedule = Schedule::constant(competitive_depth(switch_ns as f64, rate as f64));
        let found = cost(&stream, &schedule, Switches::Alike(switch_ns as f64));
        // Rounding may count one prefetch more or less if the last one is used completely.
        prop_assert!(u128::from(found.prefetches).abs_diff(prefetches) <= u128::from(length_units % unit == 0));
    }

    /// (15).
    #[test]
    fn a_slow_start_costs_less_than_its_ratio(
        (switch_ns, rate) in disk(),
        first in prop_oneof![0.0001..1.0, 0.1..2.0],
        length in multiples(100_000),
    ) {
        let depth = competitive_depth(switch_ns, rate);
        let schedule = Schedule::slow_start(first * depth, depth);
        let slow = schedule.slow_prefetches();
        let stream = Stream { length_bytes: length * depth, bytes_per_second: rate };
        let found = cost(&stream, &schedule, Switches::Alike(switch_ns)).total_ns();
        prop_assert!(found < competitive_ratio(slow) * optimum(&stream, switch_ns).total_ns());
        let stated = 2.0 * stream.transfer_ns(stream.length_bytes) + competitive_ratio(slow) * switch_ns;
        prop_assert!(near(upper_bounds(&stream, &schedule, switch_ns).less_than_ns, stated));
        prop_assert!(worst(&schedule, switch_ns, rate).ratio < competitive_ratio(slow).max(2.0 + 1e-12));
    }

    /// The supremum is the least upper bound: some stream comes arbitrarily close.
    #[test]
    fn the_worst_is_approached((switch_ns, rate) in disk(), first in 0.001..2.0, depth in 0.01..10.0) {
        let unit = competitive_depth(switch_ns, rate);
        let schedule = Schedule::slow_start(first * unit, depth * unit);
        let found = worst(&schedule, switch_ns, rate);
        let above = if found.above_bytes.is_finite() { found.above_bytes } else { 1e9 * schedule.depth_bytes };
        let stream = Stream { length_bytes: above + 1e-7 * unit, bytes_per_second: rate };
        let spent = cost(&stream, &schedule, Switches::Alike(switch_ns)).total_ns();
        let ratio = spent / optimum(&stream, switch_ns).total_ns();
        prop_assert!((ratio / found.ratio - 1.0).abs() < 1e-5, "{ratio} against {found:?}");
    }

    /// (9) to (13): for any schedule, some stream costs more than alpha times its optimum.
    #[test]
    fn every_schedule_is_defeated(
        (switch_ns, rate) in disk(),
        schedule in schedule(),
        below in prop_oneof![1e-9..1e-3, 1e-3..1.9],
    ) {
        let (alpha, unit) = (2.0 - below, competitive_depth(switch_ns, rate));
        let sizes = |k: u64| schedule.size(k) * unit;
        let found = defeat(sizes, alpha, switch_ns, rate).expect("a stream");
        let (total, least) = step_by_step(sizes, found.length_bytes, switch_ns, rate);
        prop_assert!(near(found.total_ns, total) && near(found.optimum_ns, least), "{found:?}: {total}, {least}");
        prop_assert!(total > alpha * least, "{} is not above {alpha}: {found:?}", total / least);
        // Up to there the schedule satisfied (9), (10) and (11); it could not do so for longer than (13) allows.
        let k = found.prefetch;
        let before: Vec<f64> = (1..k).map(sizes).collect();
        prop_assert!(before.windows(2).all(|pair| pair[1] < pair[0]) && before.iter().all(|size| *size < unit));
        prop_assert!(k as f64 <= latest_violation(sizes(1), switch_ns, rate), "{found:?}");
        let room = if k == 1 { unit } else { before.iter().sum::<f64>() - (k - 2) as f64 * unit };
        prop_assert!(sizes(k) >= room * (1.0 - 1e-9) - 1e-9 * unit);
    }
}

/// Schedules in multiples of a switch's worth of data.
#[derive(Debug, Clone)]
enum Sizes {
    Constant(f64),
    Doubling {
        first: f64,
        most: f64,
    },
    /// Repeatedly.
    Random(Vec<f64>),
    /// Shrinks by this factor from prefetch to prefetch; the sum may stay finite.
    Shrinking {
        first: f64,
        factor: f64,
    },
    /// As large as (10) allows, minus a share: lasts as long as possible.
    Obedient {
        first: f64,
        part: f64,
    },
}

fn schedule() -> impl Strategy<Value = Sizes> {
    prop_oneof![
        prop_oneof![0.001..3.0, 0.99..1.0].prop_map(Sizes::Constant),
        (0.001..1.0, 0.5..4.0).prop_map(|(first, most)| Sizes::Doubling { first, most }),
        prop::collection::vec(0.01..2.0, 1..12).prop_map(Sizes::Random),
        prop::collection::vec(0.95..1.0, 1..12).prop_map(Sizes::Random),
        (0.1..1.0, 0.3..0.9999).prop_map(|(first, factor)| Sizes::Shrinking { first, factor }),
        (0.5..0.999, 0.0001..0.2).prop_map(|(first, part)| Sizes::Obedient { first, part }),
    ]
}

impl Sizes {
    fn size(&self, k: u64) -> f64 {
        let power = i32::try_from(k - 1).expect("few");
        match self {
            Self::Constant(size) => *size,
            Self::Doubling { first, most } => (first * 2.0_f64.powi(power.min(60))).min(*most),
            Self::Random(sizes) => sizes[(k - 1) as usize % sizes.len()],
            Self::Shrinking { first, factor } => first * factor.powi(power),
            Self::Obedient { first, part } => {
                let (mut size, mut room) = (*first, *first);
                for _ in 1..k {
                    (size, room) = ((room * (1.0 - part)).max(1e-6), room * (2.0 - part) - 1.0);
                }
                size
            }
        }
    }
}

/// With a different switch time for each prefetch, the bound holds on average and not for each stream: the paper
/// replaces them by their mean between (4) and (7).
#[test]
fn uneven_switches_keep_the_bound_on_average_only() {
    let times = [2.0 * MS, 10.0 * MS, 18.0 * MS];
    let mean = 10.0 * MS;
    let rate = 5e7;
    let depth = competitive_depth(mean, rate);
    let stream = Stream { length_bytes: 2.5 * depth, bytes_per_second: rate };
    let orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
    let mut sums = (0.0, 0.0);
    for order in orders {
        let each = order.map(|index: usize| times[index]);
        let total = cost(&stream, &Schedule::constant(depth), Switches::Each(&each)).total_ns();
        let least = optimum(&stream, each[0]).total_ns();
        sums = (sums.0 + total, sums.1 + least);
    }
    // 6 x (30 + 30) ms against 6 x (25 + 10) ms.
    assert!(near(sums.0, 360.0 * MS) && near(sums.1, 210.0 * MS));
    // A single stream: 60 ms against 27.
    let alone = cost(&stream, &Schedule::constant(depth), Switches::Each(&times)).total_ns();
    assert!(alone > 2.2 * optimum(&stream, times[0]).total_ns());
}

/// How far a slow start exceeds 2, exactly: P prefetches cost most if the depth is 2^P times the first. Scanned over
/// all depths from one first prefetch.
#[test]
fn the_most_that_a_slow_start_costs() {
    let first = 16.0 * 4096.0;
    let mut found = Vec::new();
    for slow in 1_u32..=12 {
        let shortest = first * f64::from(1 << (slow - 1));
        let ratio = |step: u32| {
            let depth = shortest * (1.0 + f64::from(step) / 256.0);
            let schedule = Schedule::slow_start(first, depth);
            assert_eq!(schedule.slow_prefetches(), u64::from(slow));
            (worst(&schedule, depth, 1e9).ratio, step)
        };
        let most = (1..=256).map(ratio).fold((0.0, 0), |most, next| if next.0 > most.0 { next } else { most });
        assert_eq!(most.1, 256, "{slow} prefetches: {most:?}");
        assert!(most.0 < competitive_ratio(slow.into()));
        found.push(most.0);
    }
    // By hand, at the prefetch after the ramp: 1 + (P + 1) / (2 - 2^-P). Longer ramps are worst before their end, and
    // from then on the ratio grows almost as fast as P.
    for (slow, by_hand) in [(1, 7.0 / 3.0), (2, 19.0 / 7.0), (3, 47.0 / 15.0), (4, 111.0 / 31.0)] {
        assert!(near(found[slow - 1], by_hand), "{slow} prefetches: {}", found[slow - 1]);
    }
    // Of 12 prefetches the 11th: (11 + (2^11 - 1) / 2^12) / (1 + (2^10 - 1) / 2^12).
    assert!(near(found[11], (11.0 + 2047.0 / 4096.0) / (1.0 + 1023.0 / 4096.0)), "{}", found[11]);
}

/// How far rounding a depth of n pages and a fraction to whole pages exceeds 2: up to 1 / 2n, just below half a page.
/// Depths of less than a page have no such bound, because a page is the minimum.
#[test]
fn the_most_that_whole_pages_cost() {
    let page = 4096.0;
    let ratio = |pages: f64| {
        let rounded = Schedule::constant(whole_pages(pages * page, page));
        worst(&rounded, pages * page, 1e9).ratio
    };
    for step in 32..64 * 200 {
        let pages = f64::from(step) / 64.0;
        let whole = pages.round();
        let by_hand = 1.0 + f64::max(whole / pages, pages / whole);
        assert!(near(ratio(pages), by_hand));
        assert!(pages < 1.0 || by_hand <= 2.0 + 0.5 / pages.floor(), "{pages} pages: {by_hand}");
    }
    assert!(ratio(1.4999) > 2.499);
    assert!(near(ratio(0.01), 101.0));
}

/// The paper's drives with its slow start of 16 pages, depths in whole pages: 96, 109 and 158 of them.
#[test]
fn the_papers_drives_beyond_twice() {
    let worst_of = |switch_ms: f64, megabytes_per_second: f64| {
        let depth = competitive_depth(switch_ms * MS, megabytes_per_second * 1e6);
        let pages = whole_pages(depth, 4096.0);
        let without = worst(&Schedule::constant(pages), depth, 1e9).ratio;
        let with = worst(&Schedule::slow_start(65_536.0, pages), depth, 1e9);
        (pages / 4096.0, without, with.above_bytes / 4096.0, with.ratio)
    };
    for (drive, pages, without, with) in [
        (worst_of(10.53, 37.3), 96.0, 2.0012, 2.846),
        (worst_of(7.98, 55.8), 109.0, 2.0027, 2.972),
        (worst_of(7.98, 80.9), 158.0, 2.0025, 3.229),
    ] {
        // All at the fourth prefetch, after 112 pages.
        assert_eq!((drive.0, drive.2), (pages, 112.0));
        assert!(drive.1 > 2.0 && drive.1 < without, "{drive:?}");
        assert!((drive.3 - with).abs() < 0.001, "{drive:?}");
    }
}
