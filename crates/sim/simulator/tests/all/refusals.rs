//! What a scenario must not ask for: each is refused in one line that begins with the key, whatever the policy.

use headstart_sim::{simulate, Scenario, Source};

const FIGURE_1: &str = r#"{
    "workload": {"references": ["A", "b", "C", "d", "E", "F"], "compute": "1ms"},
    "cache": {"blocks": 4, "initial": ["A", "b", "d", "F"]},
    "policy": {"name": "aggressive", "batch_size": 1},
    "device": {"model": "uniform", "fetch_time": "2ms", "layout": [["A", "C", "E", "F"], ["b", "d"]]}
}"#;

fn refusal(base: &str, overrides: &[&str]) -> String {
    let overrides: Vec<String> = overrides.iter().map(|each| (*each).to_owned()).collect();
    let scenario = Scenario::read(&Source::Json(base.to_owned()), &overrides);
    let error = scenario.and_then(|scenario| simulate(&scenario, &mut |_| true)).map(|_| ()).expect_err(base);
    error.to_string()
}

#[test]
fn times_that_leave_64_bits() {
    for (set, begin) in [
        ("workload.compute=5000000h", "workload: the run takes more than 146 simulated years"),
        ("workload.compute_scale=1e300", "workload: the run takes more than 146 simulated years"),
        ("workload.compute_total=18446744073s", "workload: the run takes more than 146 simulated years"),
        ("host.hit_time=5000000h", "host.hit_time: 18000000000s is too long; allowed: a time of at most 1h"),
        ("host.copy_per_kib=2h", "host.copy_per_kib: 7200s is too long"),
    ] {
        let text = refusal(FIGURE_1, &[set]);
        assert!(text.starts_with(begin), "{set}: {text}");
        assert_eq!(text.lines().count(), 1);
    }
}

#[test]
fn keys_that_would_be_ignored() {
    for (sets, begin) in [
        (&["policy.replacement=min"][..], "policy.replacement: aggressive chooses its victims itself"),
        (&["workload.placement=address"], "workload.placement: inline references have no files"),
        (&["workload.compute_scale=2.0", "workload.compute_total=1s"], "workload.compute_scale: given together with"),
        (&["policy=ra", "workload.processes=per-pid"], "workload.processes: inline references have no processes"),
        (&["workload.time_scale=2"], "workload.time_scale: only valid with arrival = \"open\""),
    ] {
        let text = refusal(FIGURE_1, sets);
        assert!(text.starts_with(begin), "{sets:?}: {text}");
    }
}

#[test]
fn inline_blocks_beyond_the_device() {
    let base = r#"{"workload": {"references": ["A", "B"], "block_size": "1GiB", "compute": "1ms"}}"#;
    let text = refusal(base, &[]);
    assert!(text.starts_with("workload.references: block \"B\" lies beyond the device"), "{text}");
}

#[test]
fn a_limit_cuts_inline_references() {
    let source = Source::Json(FIGURE_1.to_owned());
    let scenario = Scenario::read(&source, &["workload.limit=2".to_owned()]).expect("a scenario");
    let report = simulate(&scenario, &mut |_| true).expect("a run");
    assert_eq!((report.requests, report.elapsed_ns), (2, 2_000_000));
}

#[test]
fn a_layout_names_every_referenced_block_once() {
    for (layout, begin) in [
        (r#"[["A", "C", "E", "F"], ["b"]]"#, "device.layout: block \"d\" is not listed"),
        (r#"[["A", "C", "E", "F"], ["b", "d", "A"]]"#, "device.layout[1][2]: block is placed twice"),
    ] {
        let text = refusal(FIGURE_1, &[&format!("device.layout={layout}")]);
        assert!(text.starts_with(begin), "{layout}: {text}");
    }
}

#[test]
fn chunks_are_of_compact_chunks() {
    let base = r#"{"workload": {"generator": "random", "blocks": 9, "requests": 9, "compute": "1ms"}}"#;
    for (sets, begin) in [
        (
            &["workload.chunk_blocks=8"][..],
            "workload.chunk_blocks: only valid with addresses = \"compact-chunks\"; allowed: addresses =",
        ),
        (
            &["workload.addresses=compact", "workload.chunk_blocks=1"],
            "workload.chunk_blocks: only valid with addresses",
        ),
        (&["workload.addresses=compact-chunks", "workload.chunk_blocks=0"], "workload.chunk_blocks: 0 is out of range"),
        (
            &["workload.addresses=compact-chunks", "workload.chunk_blocks=2147483649"],
            "workload.chunk_blocks: 2147483649 is out of range; allowed: a whole number from 1 to 2147483648",
        ),
        (&["workload.addresses=compact-chunk"], "workload.addresses: "),
        // Chunks of 1 GiB do not fit into 1.3 GB twice.
        (
            &["workload.addresses=compact-chunks", "workload.chunk_blocks=131072", "workload.blocks=300000"],
            "workload.addresses: the trace touches 3 chunks of 131072 blocks (3.0 GiB), and 1 hp97560 disk holds",
        ),
    ] {
        let text = refusal(base, sets);
        assert!(text.starts_with(begin), "{sets:?}: {text}");
        assert_eq!(text.lines().count(), 1);
    }
    let sets = ["workload.addresses=compact-chunks".to_owned()];
    let scenario = Scenario::read(&Source::Json(base.to_owned()), &sets).expect("a scenario");
    let report = simulate(&scenario, &mut |_| true).expect("a run");
    assert_eq!(serde_json::to_value(&report).expect("plain values")["scenario"]["workload"]["chunk_blocks"], 64);
}

/// A client and a server, by the keys of `[[level]]`.
const TWO_LEVELS: &str = r#"{
    "workload": {"references": ["A", "B", "C"], "compute": "1ms"},
    "level": [{"blocks": 2, "policy": "ra"}, {"name": "server", "size": {"ratio": 2}, "policy": "ra", "link": {"alpha": "1us"}}],
    "device": {"model": "uniform", "fetch_time": "2ms"}
}"#;

#[test]
fn errors_of_levels_name_what_set_takes() {
    for (set, begin) in [
        ("level[0].blocks=0", "level[0].blocks: a cache of 0 blocks"),
        ("level[0].policy.degree=few", "level[0].policy.degree: "),
        ("level[0].policy=foresta", "level[0].policy.name: unknown policy \"foresta\" (did you mean \"forestall\"?)"),
        ("level[0].initial=[\"A\", \"A\"]", "level[0].initial: does not fit the cache"),
        ("level[0].lnik={}", "level[0].lnik: unknown key; allowed: name, blocks"),
        ("level[1].lnik={}", "level[1].lnik: unknown key (did you mean \"link\"?); allowed: name, clients"),
        ("level[1].policy.degre=4", "level[1].policy.degre: unknown key (did you mean \"degree\"?)"),
        (
            "level[1].policy={nam=\"ra\"}",
            "level[1].policy.nam: unknown key (did you mean \"name\"?); allowed: name, replacement",
        ),
        (
            "level[1].size={levl=\"L1\"}",
            "level[1].size.levl: unknown key (did you mean \"level\"?); allowed: level, ratio",
        ),
        ("level[1].size.level=L2", "level[1].size.level: unknown level above \"L2\" (did you mean \"L1\"?)"),
        ("level[1].link={gamma=\"1ms\"}", "level[1].link.gamma: unknown key; allowed: alpha, beta"),
        ("level[1].coordinator=pcf", "level[1].coordinator.name: unknown coordinator \"pcf\" (did you mean \"pfc\"?)"),
    ] {
        let text = refusal(TWO_LEVELS, &[set]);
        assert!(text.starts_with(begin), "{set}: {text}");
    }
    let both = refusal(TWO_LEVELS, &["level[1].replacement=mru", "level[1].policy.replacement=lru"]);
    assert_eq!(both, "level[1].replacement: given together with policy.replacement; allowed: one of the two");
}

#[test]
fn a_setting_of_a_level_does_what_the_key_in_the_scenario_does() {
    let run = |base: &str, overrides: &[&str]| {
        let overrides: Vec<String> = overrides.iter().map(|each| (*each).to_owned()).collect();
        let scenario = Scenario::read(&Source::Json(base.to_owned()), &overrides).expect("a scenario");
        serde_json::to_string(&simulate(&scenario, &mut |_| true).expect("a run")).expect("JSON")
    };
    let written = TWO_LEVELS.replace(r#"{"ratio": 2}"#, "\"64KiB\"").replace("\"blocks\": 2,", "\"blocks\": 1,");
    assert_ne!(written, TWO_LEVELS);
    for keys in [["level[0].blocks=1", "level[1].size=64KiB"], ["level.L1.blocks=1", "level.server.size=64KiB"]] {
        assert_eq!(run(TWO_LEVELS, &keys), run(&written, &[]), "{keys:?}");
    }
}

#[test]
fn the_optimum_is_of_one_level_whose_disks_only_fetch() {
    let refused = "policy.name: optimum is defined for one level on a uniform device";
    let references = r#""workload": {"references": ["A", "b", "C", "A", "b", "d"], "compute": "1ms"}"#;
    let device =
        r#""device": {"model": "uniform", "fetch_time": "7ms", "count": 2}, "host": {"driver_overhead": "0s"}"#;
    let one = format!(r#"{{{references}, "cache": {{"blocks": 2}}, "policy": "optimum", {device}}}"#);
    let scenario = Scenario::read(&Source::Json(one.clone()), &[]).expect("a scenario");
    simulate(&scenario, &mut |_| true).expect("it is tiny");
    // The schedule took a fetch to be over while the level below still waited for its disk: a panic.
    let two =
        format!(r#"{{{references}, "level": [{{"blocks": 2, "policy": "optimum"}}, {{"blocks": 3}}], {device}}}"#);
    let text = refusal(&two, &[]);
    assert!(text.starts_with(&refused.replace("policy.name", "level[0].policy.name")), "{text}");
    let barrier = refusal(&one, &["process={barrier={every=2}}"]);
    assert!(barrier.starts_with(refused), "{barrier}");
    // It keeps a free disk idle for a process that may ask again.
    let idles = refusal(&one, &["device.scheduler=anticipatory"]);
    assert!(idles.starts_with(refused), "{idles}");
    let copies =
        r#""workload": {"generator": "cp", "copies": 1, "size": "24KiB", "compute": "1ms", "writes": "through"}"#;
    let written = refusal(&one.replace(references, copies), &[]);
    assert!(written.starts_with(refused), "{written}");
}
