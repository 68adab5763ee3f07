//! The exact result of every row of the registry on one small scenario per kind of device. A change here changes
//! results: inspect the difference, then accept it with `HEADSTART_UPDATE_GOLDEN=1 cargo test -p headstart-sim --test
//! all golden`. Two consecutive runs must give the same result.

use std::path::PathBuf;
use std::{env, fs};

use headstart_policy::readahead::Needs;
use headstart_policy::registry::{read_aheads, COORDINATORS, POLICIES, REPLACEMENTS};
use serde_json::Value;

use crate::common;

const UPDATE: &str = "HEADSTART_UPDATE_GOLDEN";

/// By device: the scenario without the policy. Two disks, think times, costs, requests of three blocks.
const SYSTEMS: [(&str, &str); 2] = [
    (
        "hp97560",
        "seed = 7\nworkload = {generator = \"synth\", blocks = 300, passes = 4, request_blocks = 3, compute = \"exp:1ms\"}\n\
         cache = {blocks = 200}\ndevice = {model = \"hp97560\", count = 2, scheduler = \"cscan\"}\n\
         host = {driver_overhead = \"0.5ms\", hit_time = \"10us\", system_call = \"20us\", copy_per_kib = \"1us\"}\n",
    ),
    (
        "uniform",
        "seed = 7\nworkload = {generator = \"zipf\", blocks = 400, requests = 1500, compute = \"1ms\"}\n\
         cache = {blocks = 100}\ndevice = {model = \"uniform\", fetch_time = \"7ms\", count = 3, scheduler = \"fcfs\"}\n",
    ),
];

/// The one that `optimum` can handle: Figure 1 of kimbrel96.
const FIGURE_1: &str = "workload = {references = [\"A\", \"b\", \"C\", \"d\", \"E\", \"F\"], compute = \"1ms\"}\n\
    cache = {blocks = 4, initial = [\"A\", \"b\", \"d\", \"F\"]}\n\
    device = {model = \"uniform\", fetch_time = \"2ms\", layout = [[\"A\", \"C\", \"E\", \"F\"], [\"b\", \"d\"]]}\n";

/// By device: the workload of read-aheads and coordinators. Runs of requests and random positions, issued whole; a
/// scheduler that merges, and one that does not.
const STREAMS: [(&str, &str, &str); 2] = [
    (
        "hp97560",
        "seed = 7\nworkload = {generator = \"zipf\", blocks = 900, requests = 900, request_blocks = 5, compute = \"exp:8ms\", \
         issue = \"whole\"}\n",
        "device = {model = \"hp97560\", count = 2, scheduler = \"deadline\"}\n\
         host = {driver_overhead = \"0.5ms\", hit_time = \"10us\", system_call = \"20us\", copy_per_kib = \"1us\"}\n",
    ),
    (
        "uniform",
        "seed = 7\nworkload = {generator = \"synth\", blocks = 300, passes = 4, request_blocks = 3, compute = \"1ms\", \
         issue = \"blocks\"}\n",
        "device = {model = \"uniform\", fetch_time = \"7ms\", count = 3, scheduler = \"fcfs\"}\n",
    ),
];

/// The workload of policies for parallel programs: processes that read portions of one file, synchronise and prefetch
/// in the meantime.
const PROGRAM: &str = "seed = 7\nworkload = {compute = \"exp:20ms\", block_size = \"1KiB\"}\n\
    process = {count = 5, pattern = \"gw\", barrier = {scope = \"process\", every = 10}, min_lead = 2}\n\
    cache = {blocks = 20}\n\
    device = {model = \"uniform\", fetch_time = \"30ms\", count = 5, stripe_unit = \"1KiB\", scheduler = \"fcfs\"}\n";

/// Two levels with a read-ahead on each, and a coordinator between them.
fn two_levels(coordinator: &str) -> String {
    format!(
        "[[level]]\nblocks = 60\npolicy = {{name = \"linux-2.6\"}}\n\
         [[level]]\nblocks = 120\npolicy = {{name = \"ra\", degree = 4}}\nlink = {{alpha = \"6ms\", beta = \"30us\"}}\n\
         coordinator = \"{coordinator}\"\n"
    )
}

/// Every row's files: name and scenario.
fn cases() -> Vec<(String, String)> {
    let mut cases = vec![];
    for (device, workload, machine) in STREAMS {
        for row in read_aheads().filter(|row| row.needs() != Needs::Drive || device != "uniform") {
            let level = format!("cache = {{blocks = 120}}\npolicy = {{name = \"{}\"}}\n", row.name);
            cases.push((format!("{}.{device}.json", row.name), format!("{workload}{level}{machine}")));
        }
        for row in COORDINATORS {
            // Arrays of tables must follow the top-level keys, so they come last.
            let scenario = format!("{workload}{machine}{}", two_levels(row.name));
            cases.push((format!("two-levels-{}.{device}.json", row.name), scenario));
        }
    }
    for row in POLICIES.iter().filter(|row| row.is_parallel()) {
        let policy = format!("policy = {{name = \"{}\"}}\n", row.name);
        cases.push((format!("{}.uniform.json", row.name), format!("{PROGRAM}{policy}")));
    }
    for row in POLICIES.iter().filter(|row| row.goes_by_blocks()) {
        let systems = if row.name == "optimum" { vec![("uniform", FIGURE_1)] } else { SYSTEMS.to_vec() };
        let variants = match row.has_open_replacement() {
            true => REPLACEMENTS
                .iter()
                .map(|each| (format!("-{}", each.name), format!(", replacement = \"{}\"", each.name)))
                .collect(),
            false => vec![(String::new(), String::new())],
        };
        for (device, system) in systems {
            for (suffix, key) in &variants {
                let policy = format!("policy = {{name = \"{}\"{key}}}\n", row.name);
                cases.push((format!("{}{suffix}.{device}.json", row.name), format!("{system}{policy}")));
            }
        }
    }
    cases
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

fn json(scenario: &str) -> String {
    let report = serde_json::to_value(common::run(scenario)).expect("reports are plain values");
    laid_out(&report, 0) + "\n"
}

fn is_plain(value: &Value) -> bool {
    !value.is_object() && !value.is_array()
}

/// JSON with the plain values of an object or a list on one line.
fn laid_out(value: &Value, depth: usize) -> String {
    let (items, [open, close]): (Vec<(String, &Value)>, _) = match value {
        Value::Object(table) => (table.iter().map(|(key, value)| (format!("{key:?}: "), value)).collect(), ['{', '}']),
        Value::Array(list) => (list.iter().map(|value| (String::new(), value)).collect(), ['[', ']']),
        plain => return plain.to_string(),
    };
    if items.iter().all(|(_, value)| is_plain(value)) {
        return value.to_string();
    }
    let lines: Vec<String> = items
        .chunk_by(|(_, one), (_, next)| is_plain(one) && is_plain(next))
        .map(|line| {
            let line: Vec<String> = line.iter().map(|(key, value)| key.clone() + &laid_out(value, depth + 1)).collect();
            format!("{:1$}{2}", "", 2 * depth + 2, line.join(", "))
        })
        .collect();
    format!("{open}\n{}\n{:2$}{close}", lines.join(",\n"), "", 2 * depth)
}

/// The first value that differs, with its place, ignoring the release's version.
fn first_difference(ours: &Value, golden: &Value, place: &str) -> Option<String> {
    match (ours, golden) {
        (Value::Object(one), Value::Object(other)) if one.keys().eq(other.keys()) => one
            .iter()
            .filter(|(key, _)| *key != "version")
            .find_map(|(key, value)| first_difference(value, &other[key], &format!("{place}.{key}"))),
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            (0..one.len()).find_map(|at| first_difference(&one[at], &other[at], &format!("{place}.{at}")))
        }
        (one, other) => (one != other).then(|| format!("{place}: {one} where {other} was")),
    }
}

#[test]
fn a_difference_is_seen() {
    let difference = |ours: &str, golden: &str| {
        let [ours, golden] = [ours, golden].map(|text| text.parse::<Value>().expect("JSON"));
        assert_eq!(laid_out(&ours, 0).parse::<Value>().expect("JSON"), ours);
        first_difference(&ours, &golden, "")
    };
    assert_eq!(difference(r#"{"a": [1, {"b": 2.0}], "c": 1}"#, r#"{"a": [1, {"b": 2.0}], "c": 1}"#), None);
    let found = difference(r#"{"a": [1, {"b": 2}]}"#, r#"{"a": [1, {"b": 3}]}"#);
    assert_eq!(found.as_deref(), Some(".a.1.b: 2 where 3 was"));
    for other in [r#"{"a": [1]}"#, r#"{"a": [1, {"c": 2}]}"#, r#"{"a": [1, {"b": 2}], "c": 1}"#] {
        assert!(difference(r#"{"a": [1, {"b": 2}]}"#, other).is_some(), "{other}");
    }
}

#[test]
fn every_row_gives_exactly_what_it_gave() {
    let update = env::var_os(UPDATE).is_some();
    let mut wrong = vec![];
    for (name, scenario) in cases() {
        let path = folder().join(&name);
        let ours = json(&scenario);
        assert_eq!(ours, json(&scenario), "{name}: the same scenario gives the same bytes");
        if update {
            fs::write(&path, &ours).expect("the folder can be written to");
            continue;
        }
        match fs::read_to_string(&path) {
            Err(_) => wrong.push(format!("{name} is missing")),
            Ok(golden) => {
                let [ours, golden] = [ours, golden].map(|text| text.parse().expect("JSON"));
                wrong.extend(first_difference(&ours, &golden, &name));
            }
        }
    }
    let how = format!("{UPDATE}=1 cargo test -p headstart-sim --test all golden writes the files anew");
    assert!(wrong.is_empty(), "{}\n{how}", wrong.join("\n"));
}

#[test]
fn no_file_is_left_over() {
    let known: Vec<String> = cases().into_iter().map(|(name, _)| name).collect();
    for entry in fs::read_dir(folder()).expect("the folder is there") {
        let name = entry.expect("an entry").file_name().to_string_lossy().into_owned();
        assert!(known.contains(&name), "tests/golden/{name} belongs to no row");
    }
}
