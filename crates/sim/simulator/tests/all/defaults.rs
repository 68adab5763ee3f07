//! Defaults that depend on the device and the policy, and errors that are found before a trace is read.

use headstart_device::MODELS;
use headstart_policy::registry::read_aheads;
use headstart_policy::registry::{POLICIES, REPLACEMENTS};
use headstart_sim::{check_devices, simulate, Scenario};

use crate::common;

/// A scenario whose trace does not exist: its errors are found without the trace.
fn scenario(policy: &str, more: &str) -> String {
    format!("workload = {{trace = \"no such file\"}}\npolicy = {policy}\n{more}")
}

fn read(text: &str) -> Scenario {
    Scenario::from_table(common::table(text)).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn driver_overhead(text: &str) -> String {
    read(text).table()["host"]["driver_overhead"].as_str().expect("a time").to_owned()
}

#[test]
fn driver_overhead_is_that_of_the_device() {
    let of = |device: &str| driver_overhead(&scenario("\"demand\"", &format!("device = \"{device}\"\n")));
    assert_eq!((of("uniform"), of("hp97560")), ("0s".to_owned(), "500us".to_owned()));
    assert_eq!((of("nvme"), of("seagate-exos-x20")), ("3us".to_owned(), "10us".to_owned()));
    assert_eq!(of("my-own-drive.toml"), "10us");
    for row in MODELS {
        assert_eq!(of(row.name), row.driver_cost.overhead.to_string(), "{}", row.name);
    }
    let given = "device = \"hp97560\"\nhost = {driver_overhead = \"1us\"}\n";
    assert_eq!(driver_overhead(&scenario("\"demand\"", given)), "1us");
    let open = "workload = {trace = \"t\", arrival = \"open\"}\ndevice = \"hp97560\"\n";
    assert_eq!(driver_overhead(open), "0s", "open arrivals take no processor time");
    let files = "workload = {generator = \"files\", placement = \"ffs\"}\ndevice = \"hp97560\"\n";
    assert_eq!(driver_overhead(files), "0s", "a file system has costs of its own");
}

#[test]
fn requests_are_issued_whole_unless_each_is_one_block() {
    let issue = |text: &str| read(text).table()["workload"]["issue"].as_str().expect("a name").to_owned();
    for row in POLICIES.iter().filter(|row| !row.is_parallel()) {
        assert_eq!(issue(&scenario(&format!("\"{}\"", row.name), "")), "whole", "{}", row.name);
    }
    for of_blocks in
        ["references = [\"A\"]", "trace = \"t\", block_size = \"object\"", "generator = \"files\", placement = \"ffs\""]
    {
        assert_eq!(issue(&format!("workload = {{{of_blocks}}}\n")), "blocks", "{of_blocks}");
    }
    let given = "workload = {trace = \"t\", issue = \"blocks\"}\npolicy = \"linux\"\n";
    assert_eq!(issue(given), "blocks");
    let below = "workload = {trace = \"t\"}\nlevel = [{blocks = 9}, {blocks = 9, policy = \"linux\"}]\n";
    assert_eq!(issue(below), "whole");
}

/// The error of a run, which would read the trace.
fn refused(text: &str) -> String {
    match Scenario::from_table(common::table(text)) {
        Ok(scenario) => simulate(&scenario, &mut |_| true).expect_err(text).to_string(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn right_keys_pass_and_the_trace_is_what_is_missing() {
    let names = POLICIES.iter().filter(|row| row.goes_by_blocks()).map(|row| row.name);
    for name in names.chain(read_aheads().map(|row| row.name)) {
        check_devices(&read(&scenario(&format!("\"{name}\""), ""))).unwrap_or_else(|error| panic!("{name}: {error}"));
        let error = refused(&scenario(&format!("\"{name}\""), ""));
        assert!(error.contains("no such file"), "{name}: {error}");
    }
    for row in REPLACEMENTS {
        let policy = format!("{{name = \"demand\", replacement = \"{}\"}}", row.name);
        check_devices(&read(&scenario(&policy, ""))).unwrap_or_else(|error| panic!("{}: {error}", row.name));
    }
    for row in MODELS {
        let device = format!("device = \"{}\"\n", row.name);
        let device =
            if row.name == "uniform" { "device = {model = \"uniform\", fetch_time = \"1ms\"}\n" } else { &device };
        check_devices(&read(&scenario("\"demand\"", device))).unwrap_or_else(|error| panic!("{}: {error}", row.name));
    }
}

#[test]
fn wrong_keys_are_found_before_the_trace_is_read() {
    let names = POLICIES.iter().filter(|row| row.goes_by_blocks()).map(|row| row.name);
    for name in names.chain(read_aheads().map(|row| row.name)) {
        let error = refused(&scenario(&format!("{{name = \"{name}\", nonsense = 1}}"), ""));
        assert!(error.starts_with("policy.nonsense: unknown key"), "{name}: {error}");
    }
    for row in MODELS {
        let fetch_time = if row.name == "uniform" { ", fetch_time = \"1ms\"" } else { "" };
        let device = format!("device = {{model = \"{}\", nonsense = 1{fetch_time}}}\n", row.name);
        let error = refused(&scenario("\"demand\"", &device));
        assert!(error.contains("nonsense") && !error.contains("no such file"), "{}: {error}", row.name);
    }
    let below = |level: &str| {
        format!("workload = {{trace = \"no such file\"}}\nlevel = [{{blocks = 9}}, {{blocks = 9, {level}}}]\n")
    };
    let error = refused(&below("policy = {name = \"ra\", degre = 3}"));
    assert!(error.starts_with("level[1].policy.degre: unknown key (did you mean \"degree\"?)"), "{error}");
    let error = refused(&below("coordinator = {name = \"pfc\", queue = \"long\"}"));
    assert!(error.starts_with("level[1].coordinator.queue: "), "{error}");
    let error = refused(&scenario("{name = \"linux\", version = \"6.1\"}", ""));
    assert!(
        error.starts_with("policy.version: ") && error.contains("allowed: \"6.12\", \"6.17\" or \"6.18\""),
        "{error}"
    );
}

#[test]
fn a_version_may_be_written_as_a_number() {
    check_devices(&read(&scenario("{name = \"linux\", version = 6.17}", ""))).expect("a version");
    let error = refused(&scenario("{name = \"linux\", version = true}", ""));
    assert!(error.starts_with("policy.version: true is not accepted here; allowed: \"6.12\""), "{error}");
}

/// A sequential reader whose requests begin every 10 ms.
fn timed(columns: &str, fields: &str) -> common::Trace {
    let lines: String =
        (0..50).map(|at| format!("{}.{:02},R,{},8192{fields}\n", at / 100, at % 100, at * 8192)).collect();
    common::Trace::of_text(&format!("defaults-{}", columns.len()), &format!("time,op,offset,size{columns}\n{lines}"))
}

#[test]
fn waits_are_no_think_times() {
    let run = |trace: &common::Trace, more: &str| {
        let device = "device = {model = \"uniform\", fetch_time = \"1ms\"}\n";
        common::run(&format!("workload = {{trace = \"{}\"{more}}}\n{device}", trace.path()))
    };
    let bare = timed("", "");
    let found = run(&bare, "");
    assert_eq!((found.elapsed_ns, found.compute_ns), (50_000_000, 0));
    assert!(found.notes.iter().any(|note| note.contains("not how long they took")), "{:?}", found.notes);
    let gaps = run(&bare, ", compute = \"gaps\"");
    assert_eq!(gaps.compute_ns, 49 * 10_000_000);
    assert!(gaps.notes.iter().any(|note| note.contains("whole gaps")), "{:?}", gaps.notes);
    let total = run(&bare, ", compute_total = \"49ms\"");
    assert_eq!(total.compute_ns, 49_000_000);
    assert!(total.notes.iter().any(|note| note.contains("whole gaps")), "{:?}", total.notes);
    let told = run(&timed(",dur_us", ",4000"), "");
    assert_eq!(told.compute_ns, 49 * 6_000_000, "durations tell waits from thinking");
    assert!(!told.notes.iter().any(|note| note.contains("think times")), "{:?}", told.notes);
}
