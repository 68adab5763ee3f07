//! The same scenario simulated and live. On a virtual clock both results are identical to the nanosecond; in real time
//! they agree as far as the machine permits.

use std::time::Duration;

use headstart_host::{RealClock, SteppedClock};
use headstart_parallel::{run, workers};
use headstart_sim::{playable, played, Report, Scenario};
use serde_json::Value;
use toml::Table;

const PREFETCHING: &str = "rapid-transit";

/// A small program; `pattern` and `barrier` are as in a scenario.
fn scenario(pattern: &str, barrier: &str, policy: &str, more: &str) -> Scenario {
    let text = format!(
        r#"
        workload = {{compute = "exp:30ms", block_size = "1KiB"}}
        cache = {{blocks = 16}}
        policy = {{name = "{policy}", replacement = "ru-set"}}
        device = {{model = {{name = "uniform", fetch_time = "30ms"}}, count = 8, scheduler = "fcfs"}}
        [process]
        count = 8
        pattern = {pattern}
        barrier = {barrier}
        {more}
        "#
    );
    Scenario::from_table(text.parse::<Table>().expect("TOML")).unwrap_or_else(|error| panic!("{error} in {text}"))
}

fn simulated(scenario: &Scenario) -> Report {
    headstart_sim::simulate(scenario, &mut |_| true).expect("it runs")
}

fn live_stepped(scenario: &Scenario) -> Report {
    let (setup, places, description) = playable(scenario).expect("it can be played");
    let clock = SteppedClock::new(workers(&setup));
    let outcome = run(setup, places, &clock, &mut |_, _| true).expect("it runs");
    played(scenario, description, &outcome)
}

fn json(report: &Report) -> Value {
    serde_json::to_value(report).expect("it is plain data")
}

#[test]
fn equal_by_a_virtual_clock() {
    let patterns = ["lfp", "lrp", "lw", "gfp", "grp", "gw"]
        .map(|name| format!("{{name = \"{name}\", blocks = 160, reads = 160}}"));
    let barriers = ["{every = 5, scope = \"process\"}", "{every = 40, scope = \"all\"}", "\"none\"", "\"portion\""];
    for pattern in &patterns {
        for barrier in barriers {
            for (policy, more) in [
                ("demand", ""),
                ("demand", "contention = \"1ms\""),
                (PREFETCHING, ""),
                (PREFETCHING, "action_issues = \"start\""),
                (PREFETCHING, "contention = \"500us\"\nmin_time = \"10ms\"\nbuffers = 5"),
                (PREFETCHING, "contention = \"500us\"\ncontention_scope = \"all\"\nidle_order = \"number\""),
                (PREFETCHING, "idle_order = \"shortest\"\nbuffers = 3"),
                (PREFETCHING, "for_others = false\nmin_lead = 2"),
            ] {
                let scenario = scenario(pattern, barrier, policy, more);
                let (sim, live) = (json(&simulated(&scenario)), json(&live_stepped(&scenario)));
                let differing: Vec<&String> =
                    sim.as_object().expect("an object").keys().filter(|key| sim[*key] != live[*key]).collect();
                let what = format!("{pattern}, {barrier}, {policy}, {more}");
                assert!(differing.is_empty(), "{what}: {differing:?} differ\n{sim}\n{live}");
            }
        }
    }
}

/// A program over two levels: links take time, coordinators act, and the lower level reads ahead.
#[test]
fn equal_by_a_virtual_clock_over_levels() {
    let lower = ["{name = \"none\"}", "{name = \"du\"}", "{name = \"pfc\"}", "{name = \"demote\"}"];
    let mut differ = Vec::new();
    for coordinator in lower {
        for policy in ["demand", "ra", "linux", "amp"] {
            for (first, pattern) in [("demand", "lfp"), ("demand", "gw"), (PREFETCHING, "gw"), (PREFETCHING, "lrp")] {
                let text = format!(
                    r#"
                    workload = {{compute = "exp:30ms", block_size = "4KiB"}}
                    device = {{model = {{name = "uniform", fetch_time = "30ms"}}, count = 4, scheduler = "fcfs"}}
                    [[level]]
                    name = "L1"
                    blocks = 16
                    policy = {{name = "{first}", replacement = "ru-set"}}
                    [[level]]
                    name = "L2"
                    blocks = 40
                    policy = "{policy}"
                    coordinator = {coordinator}
                    link = {{alpha = "6ms", beta = "30us"}}
                    [process]
                    count = 8
                    pattern = {{name = "{pattern}", blocks = 160, reads = 160}}
                    barrier = {{every = 5, scope = "process"}}
                    "#
                );
                let scenario = Scenario::from_table(text.parse::<Table>().expect("TOML"))
                    .unwrap_or_else(|error| panic!("{error} in {text}"));
                let (sim, live) = (json(&simulated(&scenario)), json(&live_stepped(&scenario)));
                assert!(sim["levels"].as_array().is_some_and(|levels| levels.len() == 2), "{text}");
                // If actions evict, and the level below stores what they evict, it needs no disk for it: the host
                // decides when within the instant that completes, and two of these programs differ.
                let ends_at_once = coordinator.contains("demote") && first == PREFETCHING && pattern == "lrp";
                assert_eq!(sim["references"], live["references"], "{text}");
                if sim != live && !ends_at_once {
                    differ.push(format!("{coordinator}, {policy}, {first}, {pattern}"));
                }
            }
        }
    }
    assert!(differ.is_empty(), "{differ:#?}");
}

/// With too few frames, fetches depend on the order within an instant, which differs from the simulator's. Still, each
/// process gets its blocks.
#[test]
fn too_few_frames_are_survived() {
    let scenario = scenario("{name = \"lfp\", blocks = 160, reads = 160}", "\"none\"", PREFETCHING, "buffers = 12");
    let (sim, live) = (simulated(&scenario), live_stepped(&scenario));
    assert_eq!((sim.counts.references, live.counts.references), (160, 160));
    assert!(live.counts.fetches >= 153, "there are so many different blocks");
}

/// Allowed deviation of the total time, by delays or a different order of events; 0.4 to 4 % were measured on two cores
/// under a load of 10 to 16.
const MARGIN: f64 = 0.10;
/// Attempts, since the machine may be busy otherwise.
const TRIES: u32 = 5;
/// Maximum lateness of waits, mean and maximum, for a run to be valid: 1 % and a third of a fetch.
const LATE: (Duration, Duration) = (Duration::from_micros(300), Duration::from_millis(10));

#[test]
fn agree_in_real_time() {
    let pattern = "{name = \"gw\", blocks = 160, reads = 160}";
    for policy in ["demand", PREFETCHING] {
        let scenario = scenario(pattern, "{every = 5, scope = \"process\"}", policy, "");
        let expected = simulated(&scenario).elapsed_ns as f64;
        let off_by = || {
            let (setup, places, description) = playable(&scenario).expect("it can be played");
            let clock = RealClock::new(workers(&setup), 1.0);
            let outcome = run(setup, places, &clock, &mut |_, _| true).expect("it runs");
            let report = played(&scenario, description, &outcome);
            // Regardless of times, everything is fetched once and no prefetch is wasted.
            assert_eq!((report.counts.references, report.counts.fetches), (160, 160), "{policy}");
            assert_eq!(report.counts.prefetches_wasted, 0, "{policy}");
            assert_eq!(report.counts.prefetches == 0, policy == "demand");
            let late = clock.lateness();
            let kept = late.mean <= LATE.0 && late.most <= LATE.1;
            let off = report.elapsed_ns as f64 / expected - 1.0;
            println!("{policy}: off by {:+.2} %, waits {:?} late", off * 100.0, late.mean);
            kept.then_some(off)
        };
        let kept: Vec<f64> = (0..TRIES).filter_map(|_| off_by()).take(2).collect();
        if kept.is_empty() {
            println!("SKIPPED: {policy} in real time: this machine has kept its times in none of {TRIES} tries");
        } else {
            assert!(kept.iter().any(|off| off.abs() <= MARGIN), "{policy}: off by {kept:?}");
        }
    }
}
