//! The naive models compared with each other: the instance of the paper's Figure 1, a few sequences worked by hand, and
//! over thousands of seeded random instances the theory's guarantees (Kimbrel et al., OSDI 1996, theorems 1 and 2 and
//! section 2.3). A failure prints the seed and the smallest instance that still fails.

use crate::naive::laws::{at_most, distinct, same, Hinted};
use crate::naive::random::{instance, shrink, Limits, Random, TINY};
use crate::naive::*;

/// Beyond the exact optimum's reach, for the statements that do not need it.
const SMALL: Limits = Limits { refs: 40, blocks: 14, frames: 8, disks: 4, fetch: 12 };

fn figure_1() -> Instance {
    // A b C d E F = 0 1 2 3 4 5
    Instance {
        refs: vec![0, 1, 2, 3, 4, 5],
        initial: vec![0, 1, 3, 5],
        frames: 4,
        disk_of: vec![0, 1, 0, 1, 0, 0],
        disks: 2,
        fetch: 2,
    }
}

/// One disk, the cache empty.
fn one_disk(refs: &[usize], frames: usize, fetch: u64) -> Instance {
    let blocks = refs.iter().max().map_or(0, |most| most + 1);
    Instance { refs: refs.to_vec(), initial: vec![], frames, disk_of: vec![0; blocks], disks: 1, fetch }
}

/// Reverse aggressive as the theory has it.
fn reverse(i: &Instance) -> Outcome {
    reverse_aggressive(i, i.fetch, 1, Replay::Mirror, 1)
}

/// Checks a law over `count` instances; the law returns the first statement that does not hold.
fn holds(count: u64, limits: Limits, law: impl Fn(u64, &Instance) -> Result<(), String>) {
    for seed in 0..count {
        let drawn = instance(seed, limits);
        if law(seed, &drawn).is_err() {
            let least = shrink(drawn, |i| law(seed, i).is_err());
            panic!("seed {seed}, shrunk to {least:?}: {}", law(seed, &least).unwrap_err());
        }
    }
}

#[test]
fn figure_1_of_the_paper() {
    let i = figure_1();
    assert_eq!(demand_min(&i), Outcome { elapsed: 10, fetches: 2 });
    assert_eq!(aggressive(&i, 1), Outcome { elapsed: 7, fetches: 3 });
    assert_eq!(forestall(&i, 2.0, 1, None, 0).elapsed, 7);
    assert_eq!(fixed_horizon(&i, 2), Outcome { elapsed: 7, fetches: 3 });
    assert_eq!(fixed_horizon(&i, 1), Outcome { elapsed: 8, fetches: 2 });
    // Reversed: b for F in 1..3, A for E in 3..5, F for C in 5..7. Turned round, C for F, E for A, F for b.
    assert_eq!(reverse(&i), Outcome { elapsed: 7, fetches: 3 });
    assert_eq!(reverse_aggressive(&i, 2, 1, Replay::Released, 1), Outcome { elapsed: 7, fetches: 3 });
    assert_eq!(optimum(&i), 6);
}

#[test]
fn replacements_by_hand() {
    // A B A C A B in 2 frames: C takes B's place under LRU and MIN (A is used next), A's under FIFO.
    let i = one_disk(&[0, 1, 0, 2, 0, 1], 2, 3);
    assert_eq!(demand_min(&i), Outcome { elapsed: 6 + 4 * 3, fetches: 4 });
    assert_eq!(demand_lru(&i), Outcome { elapsed: 6 + 4 * 3, fetches: 4 });
    assert_eq!(demand_fifo(&i), Outcome { elapsed: 6 + 5 * 3, fetches: 5 });
    // Initial blocks are as old as they are listed.
    let i = Instance { initial: vec![1, 0], ..one_disk(&[2, 0], 2, 3) };
    assert_eq!(demand_lru(&i).fetches, 1);
    assert_eq!(demand_fifo(&i).fetches, 1);
    let i = Instance { initial: vec![0, 1], ..i };
    assert_eq!(demand_lru(&i).fetches, 2);
    assert_eq!(demand_fifo(&i).fetches, 2);
}

#[test]
fn prefetchers_by_hand() {
    // A B C D, all to be fetched through one disk, F = 2: 4 F + 1 is the minimum.
    let cold = one_disk(&[0, 1, 2, 3], 4, 2);
    for outcome in [aggressive(&cold, 1), aggressive(&cold, 4), reverse(&cold), fixed_horizon(&cold, 2)] {
        assert_eq!(outcome, Outcome { elapsed: 9, fetches: 4 });
    }
    assert_eq!(optimum(&cold), 9);
    assert_eq!(demand_min(&cold), Outcome { elapsed: 12, fetches: 4 });

    // Section 5, F = 2: the next 2F - 1 = 3 blocks are here and two missing ones follow. Forestall and
    // aggressive fetch 3 at 0 and 4 at 2; fixed horizon fetches 3 at 1 and 4 at 3, one unit late.
    let two = Instance { initial: vec![0, 1, 2, 5, 6], ..one_disk(&[0, 1, 2, 3, 4, 5, 6], 7, 2) };
    assert_eq!(aggressive(&two, 1).elapsed, 7);
    assert_eq!(forestall(&two, 2.0, 1, None, 0).elapsed, 7);
    assert_eq!(fixed_horizon(&two, 2).elapsed, 8);

    // One missing block only, 3: aggressive takes 4's frame for it at 0 and must fetch 4 again; forestall and
    // fixed horizon wait until 1, when 0 is done with.
    let one = Instance { initial: vec![0, 1, 2, 4], ..one_disk(&[0, 1, 2, 3, 4], 4, 2) };
    assert_eq!(aggressive(&one, 1), Outcome { elapsed: 5, fetches: 2 });
    assert_eq!(forestall(&one, 2.0, 1, None, 0), Outcome { elapsed: 5, fetches: 1 });
    assert_eq!(fixed_horizon(&one, 2), Outcome { elapsed: 5, fetches: 1 });
}

#[test]
fn batches_and_horizons_by_hand() {
    // Batch 2 at time 0: 2 for 4, and 3 for 1, which has to come back. Alone, 2 leaves 3 to take 0's place.
    let i = Instance { initial: vec![0, 1, 4], disk_of: vec![0; 5], ..one_disk(&[0, 2, 3, 1], 3, 2) };
    assert_eq!(aggressive(&i, 1), Outcome { elapsed: 6, fetches: 2 });
    assert_eq!(aggressive(&i, 2), Outcome { elapsed: 7, fetches: 3 });

    // H = 2. At 0, block 2 is within the horizon, but so is block 1, exactly: no victim. At 1, block 0 is.
    let i = Instance { initial: vec![0, 1], ..one_disk(&[0, 2, 1], 2, 2) };
    assert_eq!(fixed_horizon(&i, 2), Outcome { elapsed: 5, fetches: 1 });
    // The current reference takes a frame in any case, here 1's, though 1 is at distance 1 only.
    let i = Instance { initial: vec![1], ..one_disk(&[0, 1], 1, 3) };
    assert_eq!(fixed_horizon(&i, 4), Outcome { elapsed: 8, fetches: 2 });
}

#[test]
fn the_search_agrees_with_the_rules_of_one_disk() {
    holds(12_000, Limits { disks: 1, ..TINY }, |_, i| {
        let (all, ruled) = (optimum(i), optimum_of_one_disk(i));
        at_most("unpruned <= by the rules", all, ruled)?;
        at_most("by the rules <= unpruned", ruled, all)
    });
}

#[test]
fn no_policy_beats_the_optimum_and_each_keeps_its_bound() {
    holds(12_000, TINY, |seed, i| {
        let best = optimum(i);
        let f = i.fetch;
        let hinted = Hinted {
            aggressive: aggressive(i, 1),
            reverse_aggressive: reverse(i),
            forestall: forestall(i, f as f64, 1, None, 0),
            fixed_horizon: fixed_horizon(i, f),
        };

        // The settings of the theory, then settings drawn by the seed.
        let mut random = Random::new(!seed);
        let (batch, ahead) = (1 + random.below(4), Some(random.below(2 * i.frames + 1)));
        let (h, guess) = (random.below(12) as u64, 1 + random.below(8) as u64);
        let all = [
            ("demand min", demand_min(i)),
            ("demand lru", demand_lru(i)),
            ("demand fifo", demand_fifo(i)),
            ("aggressive", hinted.aggressive),
            ("fixed horizon", hinted.fixed_horizon),
            ("forestall", hinted.forestall),
            ("reverse aggressive", hinted.reverse_aggressive),
            ("aggressive, batches", aggressive(i, batch)),
            ("fixed horizon, any H", fixed_horizon(i, h)),
            ("forestall, any setting", forestall(i, h as f64 / 2.0, batch, ahead, h)),
            ("mirror, batches", reverse_aggressive(i, f, batch, Replay::Mirror, 1)),
            ("mirror, any F", reverse_aggressive(i, guess, batch, Replay::Mirror, 1)),
            ("released", reverse_aggressive(i, f, 1, Replay::Released, 1)),
            ("released, any F", reverse_aggressive(i, guess, batch, Replay::Released, 1 + random.below(4))),
        ];
        let least_fetches = demand_min(i).fetches;
        for (name, outcome) in all {
            at_most(&format!("optimum <= {name}"), best, outcome.elapsed)?;
            at_most(&format!("fetches of MIN <= {name}"), least_fetches, outcome.fetches)?;
        }
        hinted.keep_their_bounds(i, best)
    });
}

#[test]
fn the_limits_of_each_policy_are_the_next_one() {
    let law = |_: u64, i: &Instance| {
        let demand = demand_min(i);
        let n = i.refs.len() as u64;
        for outcome in [demand, demand_lru(i), demand_fifo(i)] {
            at_most("demand's elapsed <= n + F misses", outcome.elapsed, n + i.fetch * outcome.fetches)?;
            at_most("demand's elapsed >= n + F misses", n + i.fetch * outcome.fetches, outcome.elapsed)?;
            at_most("misses of MIN", demand.fetches, outcome.fetches)?;
        }
        same("forestall without bound = aggressive", forestall(i, f64::INFINITY, 1, None, 0), aggressive(i, 1))?;
        same("and in batches", forestall(i, f64::INFINITY, 3, None, 0), aggressive(i, 3))?;
        same("forestall(0) = demand", forestall(i, 0.0, 1, None, 0), demand)?;
        same("fixed horizon(0) = demand", fixed_horizon(i, 0), demand)?;
        for replay in [Replay::Mirror, Replay::Released] {
            for (ratio, batch, forward) in [(i.fetch, 1, 1), (i.fetch, 3, 2), (1, 2, 1), (2 * i.fetch, 1, 4)] {
                let outcome = reverse_aggressive(i, ratio, batch, replay, forward);
                at_most("fetches of MIN <= reverse aggressive", demand.fetches, outcome.fetches)?;
            }
        }
        Ok(())
    };
    holds(10_000, TINY, law);
    holds(10_000, SMALL, law);
}

#[test]
fn when_all_fits_prefetchers_agree_on_larger_instances() {
    holds(10_000, Limits { blocks: 8, ..SMALL }, |_, i| {
        let i = Instance { frames: i.frames.max(distinct(i)), ..i.clone() };
        let greedy = aggressive(&i, 1).elapsed;
        for (name, outcome) in
            [("forestall", forestall(&i, i.fetch as f64, 1, None, 0)), ("reverse aggressive", reverse(&i))]
        {
            at_most(&format!("all fits: {name} <= aggressive"), outcome.elapsed, greedy)?;
            at_most(&format!("all fits: aggressive <= {name}"), greedy, outcome.elapsed)?;
        }
        Ok(())
    });
}
