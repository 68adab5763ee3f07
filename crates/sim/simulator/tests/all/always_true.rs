//! The theory's guarantees for the library's own policies, compared with its own exact optimum, on random tiny
//! instances (Kimbrel et al., OSDI 1996, theorems 1 and 2, sections 2.3 and 5; batch 1, unlimited look-ahead, horizon 0
//! in forestall, F' = H = F), and the lower bound of every policy on uniform and on HP 97560 drives.
//!
//! Not guaranteed, and not true: that a prefetcher beats demand fetching, or any order among aggressive, fixed horizon
//! and forestall.

use headstart_policy::registry::REPLACEMENTS;
use headstart_sim::{lower_bound, Scenario};

use crate::bridge::{bound, fast, holds};
use crate::common;
use crate::naive::laws::{at_most, distinct, same, Hinted};
use crate::naive::random::{Limits, Random, TINY};
use crate::naive::{Instance, Outcome};

/// Tiny instances in each test of a quick run.
const COUNT: u64 = 1_500;
/// Beyond the optimum's reach, for laws that do not need it.
const SMALL: Limits = Limits { refs: 60, blocks: 16, frames: 10, disks: 4, fetch: 12 };
/// Unlimited look-ahead.
const FAR: &str = "lookahead = 4294967295";

const MIN: &str = "name = \"demand\", replacement = \"min\"";
const AGGRESSIVE: &str = "name = \"aggressive\", batch_size = 1";

fn forestall(ratio: &str) -> String {
    format!("name = \"forestall\", fetch_ratio = {ratio}, batch_size = 1, horizon = 0, {FAR}")
}

fn fixed_horizon(horizon: u64) -> String {
    format!("name = \"fixed-horizon\", horizon = {horizon}")
}

fn reverse(fetch: u64) -> String {
    format!("name = \"reverse-aggressive\", fetch_ratio = {fetch}, batch_size = 1, replay = \"mirror\"")
}

/// A policy with keys drawn from the seed, for laws that hold for all keys.
fn drawn(i: &Instance, random: &mut Random) -> [String; 5] {
    let (batch, horizon, lookahead) = (1 + random.below(6), random.below(12), random.below(2 * i.frames + 2));
    let (guess, forward) = (1 + random.below(9), 1 + random.below(4));
    let replay = ["mirror", "released"][random.below(2)];
    [
        format!("name = \"aggressive\", batch_size = {batch}"),
        format!("name = \"fixed-horizon\", horizon = {horizon}"),
        format!(
            "name = \"forestall\", fetch_ratio = {guess}, batch_size = {batch}, lookahead = {lookahead}, horizon = {horizon}"
        ),
        format!("name = \"forestall\", batch_size = {batch}"),
        format!(
            "name = \"reverse-aggressive\", fetch_ratio = {guess}, batch_size = {batch}, forward_batch_size = {forward}, replay = \"{replay}\""
        ),
    ]
}

#[test]
fn no_policy_beats_the_optimum_and_each_keeps_its_bound() {
    holds(common::times(COUNT), TINY, |seed, i| {
        let best = fast(i, "name = \"optimum\"").elapsed;
        let f = i.fetch;
        let hinted = Hinted {
            aggressive: fast(i, AGGRESSIVE),
            reverse_aggressive: fast(i, &reverse(f)),
            forestall: fast(i, &forestall(&f.to_string())),
            fixed_horizon: fast(i, &fixed_horizon(f)),
        };
        let min = fast(i, MIN);
        let mut all: Vec<(String, Outcome)> = vec![
            ("min".into(), min),
            ("aggressive".into(), hinted.aggressive),
            ("reverse aggressive".into(), hinted.reverse_aggressive),
            ("forestall".into(), hinted.forestall),
            ("fixed horizon".into(), hinted.fixed_horizon),
        ];
        all.extend(drawn(i, &mut Random::new(!seed)).map(|policy| (policy.clone(), fast(i, &policy))));
        for row in REPLACEMENTS {
            let policy = format!("name = \"demand\", replacement = \"{}\"", row.name);
            let outcome = fast(i, &policy);
            let expected = i.refs.len() as u64 + f * outcome.fetches;
            same("demand's elapsed = n + F misses", outcome, Outcome { elapsed: expected, ..outcome })?;
            all.push((policy, outcome));
        }
        at_most("lower bound <= optimum", bound(i), best)?;
        for (name, outcome) in &all {
            at_most(&format!("optimum <= {name}"), best, outcome.elapsed)?;
            at_most(&format!("fetches of MIN <= {name}"), min.fetches, outcome.fetches)?;
        }
        hinted.keep_their_bounds(i, best)
    });
}

#[test]
fn the_limits_of_each_policy_are_the_next_one() {
    let law = |_: u64, i: &Instance| {
        let min = fast(i, MIN);
        same("forestall(inf) = aggressive", fast(i, &forestall("inf")), fast(i, AGGRESSIVE))?;
        same("forestall(0) = demand", fast(i, &forestall("0")), min)?;
        same("fixed horizon(0) = demand", fast(i, &fixed_horizon(0)), min)
    };
    holds(common::times(COUNT), TINY, law);
    holds(1_000, SMALL, law);
}

#[test]
fn when_all_fits_prefetchers_agree() {
    holds(common::times(COUNT), Limits { blocks: 8, ..SMALL }, |_, i| {
        let i = Instance { frames: i.frames.max(distinct(i)), ..i.clone() };
        let greedy = fast(&i, AGGRESSIVE).elapsed;
        for policy in [forestall(&i.fetch.to_string()), reverse(i.fetch)] {
            let elapsed = fast(&i, &policy).elapsed;
            at_most(&format!("{policy} <= aggressive"), elapsed, greedy)?;
            at_most(&format!("aggressive <= {policy}"), greedy, elapsed)?;
        }
        Ok(())
    });
}

#[test]
fn every_policy_keeps_the_lower_bound_on_uniform_disks() {
    let law = |_: u64, i: &Instance| {
        common::policies().iter().try_for_each(|policy| at_most(policy, bound(i), fast(i, policy).elapsed))
    };
    holds(2_000, TINY, law);
    holds(200, Limits { refs: 300, blocks: 50, frames: 25, disks: 6, fetch: 20 }, law);
}

#[test]
fn every_policy_keeps_the_lower_bound_in_whole_systems() {
    for seed in 0..1_500 {
        let text = common::random_system_of_any_model(seed);
        let scenario = Scenario::from_table(common::table(&text)).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let least = lower_bound(&scenario).unwrap_or_else(|error| panic!("{error}\n{text}")).elapsed_ns;
        let elapsed = common::run(&text).elapsed_ns;
        assert!(least.0 <= elapsed, "{elapsed} is below the bound of {least}\n{text}");
    }
}

/// The fuzzer's seed 20472688: the bound included a drive's start-up for data that was never read.
#[test]
fn what_is_cached_from_the_start_takes_no_time() {
    for device in ["hp97560", "sata-ssd", "nvme", "object-store"] {
        let cache = "cache = {blocks = 1, initial = [\"A\"]}";
        let text = format!("workload = {{references = [\"A\"]}}\n{cache}\ndevice = {device:?}");
        let scenario = Scenario::from_table(common::table(&text)).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let least = lower_bound(&scenario).unwrap_or_else(|error| panic!("{error}\n{text}")).elapsed_ns;
        assert_eq!((least.0, common::run(&text).elapsed_ns), (0, 0), "{text}");
    }
}
