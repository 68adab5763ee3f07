//! Imperfect hints: the properties of every hinted policy of the registry, and of `min`, if hints are missing, wrong or
//! displaced.

use headstart_policy::registry::POLICIES;
use headstart_sim::Report;

use crate::common;

/// Disks, and how blocks are referenced: a loop with think times about as long as a fetch, zipf, and an I/O-bound scan.
const SYSTEMS: [&str; 3] = [
    "workload = {generator = \"loop\", blocks = 300, requests = 3000, compute = \"exp:2ms\"}\ncache = {blocks = 120}\n\
     device = {model = \"uniform\", fetch_time = \"3ms\", count = 2}",
    "workload = {generator = \"zipf\", blocks = 600, requests = 3000, compute = \"exp:4ms\"}\ncache = {blocks = 90}\n\
     device = {model = \"hp97560\", count = 2}\nhost = {driver_overhead = \"0.5ms\"}",
    "workload = {generator = \"synth\", blocks = 400, passes = 6, compute = \"1ms\"}\ncache = {blocks = 130}\n\
     device = {model = \"hp97560\", count = 3}",
];

/// Every policy that accepts imperfect hints: `optimum` does not.
fn policies() -> impl Iterator<Item = String> {
    let hinted = POLICIES.iter().filter(|row| row.is_hinted() && row.name != "optimum");
    hinted.map(|row| format!("name = \"{}\"", row.name)).chain(["name = \"demand\", replacement = \"min\"".to_owned()])
}

fn run(system: &str, policy: &str) -> Report {
    common::run(&format!("{system}\npolicy = {{{policy}}}\n"))
}

fn with_hints(system: &str, policy: &str, hints: &str) -> Report {
    run(system, &format!("{policy}, hints = {{{hints}}}"))
}

/// A run's result without its inputs.
fn result(mut report: Report) -> String {
    report.scenario.remove("policy");
    report.notes.clear();
    serde_json::to_string(&report).expect("plain values")
}

#[test]
fn requests_of_several_blocks_are_asked_for_at_once() {
    // Blocks 0 to 2, then 6 to 8, 2 ms for a request to the disk however long, and 1 ms of thought for each block. On
    // demand: 0-2, think until 5, 5-7, think until 10. Aggressive by threes fetches the second request while the
    // process thinks. By fours it fetches 6 with the first one, in an order of its own behind it (2-4), and 7 and 8 at
    // 4-6.
    let trace = common::Trace::new("at-once", &[(false, 0), (false, 6)], 3);
    let run = |policy: &str| {
        let rest = format!(
            "cache = {{blocks = 9}}\npolicy = {{{policy}}}\ndevice = {{model = \"uniform\", fetch_time = \"2ms\"}}\n"
        );
        let report = common::run(&trace.scenario("as-read", &rest));
        (report.elapsed_ns / 1_000_000, report.devices[0].requests, report.counts.fetches)
    };
    for by_request in ["name = \"demand\"", "name = \"demand\", replacement = \"min\""] {
        assert_eq!(run(by_request), (10, 2, 6), "{by_request}");
    }
    assert_eq!(run("name = \"aggressive\", batch_size = 3"), (8, 2, 6));
    assert_eq!(run("name = \"aggressive\", batch_size = 4"), (9, 3, 6));
    // Without hints each is a demand fetch.
    for policy in policies().filter(|policy| policy.contains("aggressive") || policy.contains("horizon")) {
        assert_eq!(run(&format!("{policy}, hints = {{fraction = 0.0}}")), (10, 2, 6), "{policy}");
    }
}

#[test]
fn perfect_hints_are_all_hints() {
    for (system, policy) in SYSTEMS.iter().flat_map(|system| policies().map(move |policy| (system, policy))) {
        let all = result(run(system, &policy));
        for hints in
            ["fraction = 1.0", "wrong = 0.0", "fraction = 1.0, wrong = 0.0, reordered = 0.0, distance = 3, seed = 9"]
        {
            assert_eq!(result(with_hints(system, &policy, hints)), all, "{policy}, {hints}\n{system}");
        }
        let window = result(with_hints(system, &policy, "window = 50"));
        let perfect = result(with_hints(system, &policy, "window = 50, wrong = 0.0, reordered = 0.0"));
        assert_eq!(perfect, window, "{policy}\n{system}");
    }
}

#[test]
fn without_hints_every_policy_is_lru_on_demand() {
    for system in SYSTEMS {
        let lru = run(system, "name = \"demand\", replacement = \"lru\"");
        for policy in policies() {
            for hints in ["fraction = 0.0", "fraction = 0.0, wrong = 1.0, reordered = 1.0", "window = 0, wrong = 1.0"] {
                let report = with_hints(system, &policy, hints);
                let of = |report: &Report| (report.counts.fetches, report.counts.prefetches, report.elapsed_ns);
                assert_eq!(of(&report), of(&lru), "{policy}, {hints}\n{system}");
            }
        }
    }
}

/// With or without prefetching, every schedule fetches at least as much as `min` with perfect hints (Belady): no error
/// reduces it.
#[test]
fn no_hints_are_better_than_the_truth() {
    let mistakes = [
        "wrong = 0.05",
        "wrong = 1.0",
        "reordered = 0.3",
        "wrong = 1.0, reordered = 1.0, distance = 200",
        "fraction = 0.5",
    ];
    for system in SYSTEMS {
        let best = run(system, "name = \"demand\", replacement = \"min\"").counts.fetches;
        for (policy, hints) in policies().flat_map(|policy| mistakes.map(|hints| (policy.clone(), hints))) {
            let counts = with_hints(system, &policy, hints).counts;
            assert!(counts.fetches >= best, "{policy}, {hints}: {} < {best}\n{system}", counts.fetches);
            if policy.contains("min") {
                assert_eq!((counts.fetches, counts.prefetches), (counts.misses, 0), "{hints}\n{system}");
            }
        }
    }
}

/// By seed of the hints, what the policy minimises: run times in nanoseconds, or the fetches of `min`.
fn costs(system: &str, policy: &str, hints: &str) -> [f64; SEEDS] {
    std::array::from_fn(|seed| {
        let report = with_hints(system, policy, &format!("{hints}, seed = {seed}"));
        (if policy.contains("min") { report.counts.fetches } else { report.elapsed_ns }) as f64
    })
}

const SEEDS: usize = 8;

fn mean(each: &[f64]) -> f64 {
    each.iter().sum::<f64>() / each.len() as f64
}

/// The more is missing, wrong or displaced, the more a run costs: on average over seeds, minus three standard errors of
/// the difference, since an error may help by chance. One step is excluded: a drive reads ahead for a process that
/// reads in order, so no hints may be better than some (see below).
#[test]
fn worse_hints_cost_more() {
    for (system, policy) in SYSTEMS.iter().flat_map(|system| policies().map(move |policy| (system, policy))) {
        let mut fractions = vec!["fraction = 1.0", "fraction = 0.8", "fraction = 0.5"];
        fractions.extend((*system != SYSTEMS[2]).then_some("fraction = 0.0"));
        for kind in [
            fractions,
            vec!["wrong = 0.0", "wrong = 0.1", "wrong = 0.4", "wrong = 1.0"],
            vec!["reordered = 0.0", "reordered = 0.2", "reordered = 0.6", "reordered = 1.0"],
        ] {
            let all: Vec<_> = kind.iter().map(|hints| costs(system, &policy, hints)).collect();
            let to_perfect = |each: &[f64; SEEDS]| format!("{:8.3}", mean(each) / mean(&all[0]));
            println!("{policy:40} {:16}{}", kind[1], all.iter().map(to_perfect).collect::<String>());
            for (hints, pair) in kind[1..].iter().zip(all.windows(2)) {
                let more: [f64; SEEDS] = std::array::from_fn(|seed| pair[1][seed] - pair[0][seed]);
                let spread = more.iter().map(|each| (each - mean(&more)).powi(2)).sum::<f64>() / (SEEDS - 1) as f64;
                let margin = 3.0 * (spread / SEEDS as f64).sqrt();
                assert!(mean(&more) >= -margin, "{policy}, {hints}: {} more, margin {margin}\n{system}", mean(&more));
            }
        }
    }
}

/// Prefetches out of order interrupt the drive's read-ahead stream. If each block takes the same time, half of the
/// hints are better than none.
#[test]
fn half_of_the_hints_may_be_worse_than_none() {
    let uniform = SYSTEMS[2].replace("\"hp97560\"", "\"uniform\", fetch_time = \"10ms\"");
    for policy in policies().filter(|policy| !policy.contains("min")) {
        for (system, is_worse) in [(SYSTEMS[2], true), (&uniform, false)] {
            let [half, none] = ["fraction = 0.5", "fraction = 0.0"].map(|hints| mean(&costs(system, &policy, hints)));
            assert_eq!(half > none, is_worse, "{policy}: {half} ns, {none} ns without hints\n{system}");
        }
    }
}

#[test]
fn bad_keys_are_refused() {
    let system = "workload = {generator = \"loop\", blocks = 9, requests = 20}\ncache = {blocks = 4}";
    for (hints, said) in [
        ("wrong = 1.5", "policy.hints.wrong"),
        ("reordered = -0.1", "policy.hints.reordered"),
        ("distance = 4", "policy.hints: must disclose in exactly one way"),
        ("wrong = 0.1, distance = 4", "policy.hints.distance: nothing is reordered"),
        ("reordered = 0.1, distance = 0", "policy.hints.distance"),
        ("window = 4, fraction = 0.5, wrong = 0.1", "policy.hints: must disclose in exactly one way"),
    ] {
        let text = format!("{system}\npolicy = {{name = \"aggressive\", hints = {{{hints}}}}}\n");
        let error = common::try_run(common::table(&text)).expect_err(hints);
        assert!(error.contains(said), "{hints}: {error}");
    }
}

/// The fuzzer's seed 50000732: with a horizon that such a slow processor cannot use, two blocks took each other's
/// buffers for ever, and driver work kept the process from its references.
#[test]
fn a_horizon_beyond_what_the_processor_can_use_is_no_endless_exchange_of_buffers() {
    for horizon in [2, 5, 21, 60] {
        let workload = "workload = {generator = \"loop\", blocks = 20, requests = 200, compute = \"0s\"}";
        let host = "host = {driver_overhead = \"7986us\", hit_time = \"7ms\"}";
        let report = run(
            &format!("{workload}\ncache = {{blocks = 14}}\n{host}"),
            &format!("name = \"tip2\", horizon = {horizon}"),
        );
        assert!(report.counts.fetches <= 200, "{horizon}: {:?}", report.counts);
    }
}

/// The fuzzer's seed 50056929: two processes and one buffer, which each took for its next block before the other had
/// read its own.
#[test]
fn two_processes_do_not_take_one_buffer_from_each_other_for_ever() {
    let lines = ["0.020,R,1,2,51008,4083,43", "0.040,R,2,3,37129,12288,313"];
    let path = std::env::temp_dir().join(format!("headstart-next-{}.csv", std::process::id()));
    std::fs::write(&path, format!("time,op,pid,file,offset,size,dur_us\n{}\n", lines.join("\n"))).expect("written");
    let text = format!(
        "workload = {{trace = {path:?}, block_size = \"4096B\", processes = \"per-pid\"}}\nhost = {{copy_per_kib = \"2s\"}}\n\
         [[level]]\nblocks = 1\npolicy = {{name = \"tip2\"}}\n[[level]]\nblocks = 23"
    );
    let report = common::run(&text);
    std::fs::remove_file(&path).expect("removed");
    assert!(report.counts.fetches <= 2 * report.counts.references, "{:?}", report.counts);
}
