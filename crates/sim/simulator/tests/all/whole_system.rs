//! Random whole systems (any workload, policy, hints, drives, costs), each reproducible from the seed in the message:
//! the result must add up, and must be reproducible.

use headstart_policy::registry::read_aheads;
use headstart_sim::{Report, Scenario};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::common;

/// Whole systems in the test.
const COUNT: u64 = 4_000;

/// The statements of the result's contract, and physical limits.
fn adds_up(report: &Report, text: &str) {
    let counts = &report.counts;
    let equal = |what: &str, left: u64, right: u64| assert_eq!(left, right, "{what}\n{text}");
    equal("references", counts.references, counts.hits_ready + counts.hits_unready + counts.misses);
    equal("fetches", counts.fetches, counts.demand_fetches + counts.prefetches);
    equal("prefetches", counts.prefetches, counts.prefetches_used + counts.prefetches_wasted);
    assert!(counts.prefetches_late <= counts.prefetches_used, "late ones are used\n{text}");
    equal("misses, each fetched on demand", counts.misses, counts.demand_fetches);
    assert!(counts.evictions <= counts.fetches, "a fetch evicts one block at most\n{text}");
    let frames = u64::from(report.levels[0].blocks);
    assert!(counts.fetches - counts.evictions <= frames, "a fetch without a victim takes a free frame\n{text}");
    let parts = report.compute_ns + report.driver_ns + report.overhead_ns + report.stall_ns;
    equal("elapsed", report.elapsed_ns, parts + report.barrier_ns + report.idle_ns);
    assert!(report.requests <= counts.references && report.requests > 0, "{text}");
    // A process waits for all blocks of a whole request together.
    let whole = !text.contains("issue = \"blocks\"");
    let waited = counts.hit_wait_ns_mean * counts.hits_unready;
    assert!(whole || waited <= report.elapsed_ns, "waits do not overlap\n{text}");
    let process = &report.processes[0];
    equal(
        "process",
        process.elapsed_ns,
        process.compute_ns + process.driver_ns + process.overhead_ns + process.stall_ns,
    );
    let response = &report.response_ns;
    assert!(response.p50 <= response.p90 && response.p90 <= response.p99 && response.p99 <= response.max, "{text}");
    assert!(response.mean <= response.max && response.max <= report.elapsed_ns, "{text}");
    devices_add_up(report, text);
}

fn devices_add_up(report: &Report, text: &str) {
    let elapsed = report.elapsed_ns;
    let mut blocks = 0;
    for device in &report.devices {
        assert!((0.0..=1.0).contains(&device.utilization) && device.busy_ns <= elapsed, "busy past the end\n{text}");
        let requests = device.requests + device.merged;
        match common::gathers(text) {
            true => assert!(requests <= device.blocks, "each request of the host is one block at least\n{text}"),
            false => assert_eq!(requests, device.blocks, "each request of the host is one block\n{text}"),
        }
        let service = device.service_ns_mean * device.requests;
        // What is in service at the end counts as busy, not yet as served; means are rounded down.
        // Behind a controller several are in service at once.
        let one_at_a_time = !["mirror", "raid0", "raid5"].iter().any(|array| text.contains(array));
        assert!(service <= device.busy_ns || !one_at_a_time, "service times fit into the busy time\n{text}");
        let merged = device.merged > 0;
        assert!(device.response_ns_mean >= device.service_ns_mean || merged, "queueing is not negative\n{text}");
        // Little: with one request in service at a time, those waiting were outstanding no longer than the run.
        let outstanding = device.response_ns_mean * (device.requests + device.merged) / elapsed.max(1);
        assert!(outstanding <= report.counts.fetches, "{text}");
        let parts = device.seek_ns + device.rotation_ns + device.transfer_ns + device.overhead_ns + device.wait_ns;
        let fit = parts <= device.busy_ns + device.requests;
        assert!(fit || !one_at_a_time, "parts of service fit into the busy time\n{text}");
        blocks += device.blocks;
    }
    let counts = &report.counts;
    assert!(blocks <= counts.fetches, "nothing is read that was not asked for\n{text}");
    let least = counts.fetches - blocks;
    assert!(least <= u64::from(report.levels[0].blocks), "what is in flight at the end has a frame\n{text}");
}

/// The costs of the host, computed from the counts.
fn costs_are_charged(report: &Report, scenario: &Scenario, text: &str) {
    let (host, counts) = (&scenario.host, &report.counts);
    let requests: u64 = report.devices.iter().map(|device| device.requests + device.merged).sum();
    let (least, most) =
        if common::gathers(text) { (requests, counts.fetches) } else { (counts.fetches, counts.fetches) };
    let driver = host.driver_overhead.0;
    let fits = (driver * least..=driver * most).contains(&report.driver_ns);
    assert!(fits, "driver work is a cost per request, or per fetch\n{text}");
    let copy = host.copy_per_kib.0 * scenario.workload.block_bytes() / 1024;
    let overhead = (host.hit_time.0 + copy) * counts.references + host.system_call.0 * report.requests;
    assert_eq!(report.overhead_ns, overhead, "per reference and per request\n{text}");
}

#[test]
fn a_request_to_each_disk_is_the_drivers_work() {
    for row in read_aheads() {
        for disks in [1, 2, 5] {
            let text = format!(
                "workload = {{generator = \"synth\", blocks = 400, passes = 2, compute = \"1ms\"}}\n\
                 cache = {{blocks = 150}}\npolicy = \"{}\"\nhost = {{driver_overhead = \"90us\"}}\n\
                 device = {{model = \"seagate-exos-x20\", count = {disks}, stripe_unit = \"16KiB\"}}\n",
                row.name
            );
            let report = common::run(&text);
            let ended: u64 = report.devices.iter().map(|device| device.requests + device.merged).sum();
            let blocks: u64 = report.devices.iter().map(|device| device.blocks).sum();
            let under_way = report.counts.fetches - blocks;
            let charged = report.driver_ns / 90_000;
            assert!((ended..=ended + under_way).contains(&charged), "{charged} for {ended} requests\n{text}");
        }
    }
}

#[test]
fn random_systems_add_up() {
    for seed in 0..COUNT {
        let text = common::random_system(seed);
        let report = common::run(&text);
        adds_up(&report, &text);
        let scenario = Scenario::from_table(common::table(&text)).expect("it has just run");
        costs_are_charged(&report, &scenario, &text);
        let discloses_nothing =
            ["hints = {window = 0}", "hints = {fraction = 0.0,"].iter().any(|hint| text.contains(hint));
        if discloses_nothing || text.contains("name = \"demand\"") {
            assert_eq!(report.counts.prefetches, 0, "{text}");
        }
        if seed % 20 == 0 {
            let again = serde_json::to_string(&common::run(&text)).expect("plain values");
            assert_eq!(serde_json::to_string(&report).expect("plain values"), again, "the same again\n{text}");
        }
    }
}

/// The system of `seed`, whose workload is files in a file system, with any layout.
fn of_files(seed: u64) -> String {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut system = common::table(&common::random_system(seed));
    let opens = if rng.random_bool(0.5) { "before" } else { "read" };
    let placement = format!(
        "{{name = \"ffs\", size = \"{}MiB\", cylinder_group = \"1MiB\", cluster = \"{}KiB\", direct_blocks = {}, full = 0.{}, \
         free_run = \"{}KiB\", directory_files = {}, opens = \"{opens}\"}}",
        rng.random_range(16..100),
        8 * rng.random_range(1..=16),
        rng.random_range(1..=12),
        rng.random_range(0..=4),
        8 * rng.random_range(1..=8),
        rng.random_range(1..=3),
    );
    let processes = if rng.random_bool(0.5) { "per-pid" } else { "merged" };
    let workload = format!(
        "workload = {{generator = \"files\", files = {}, file_size = \"{}B\", request = \"{}B\", compute = \"exp:1ms\", \
         processes = \"{processes}\", placement = {placement}}}",
        rng.random_range(1..=6),
        rng.random_range(1..=500_000),
        rng.random_range(2_000..=100_000),
    );
    system.extend(common::table(&workload));
    if rng.random_bool(0.5) || processes == "per-pid" {
        // Hinted policies of several processes have rules of their own: see `dealt.rs`.
        let policy = [
            "policy = \"ffs\"",
            "policy = {name = \"ffs\", first = 4, max = 6}",
            "policy = \"demand\"",
            "policy = \"linux\"",
        ];
        system.extend(common::table(policy[rng.random_range(0..policy.len())]));
    }
    let device = system["device"].as_table_mut().expect("a section");
    device.remove("array");
    device.remove("stripe_unit");
    system.to_string()
}

#[test]
fn files_in_file_systems_add_up() {
    for seed in 0..600 {
        let text = of_files(seed);
        let report = common::run(&text);
        let counts = &report.counts;
        assert_eq!(counts.references, counts.hits_ready + counts.hits_unready + counts.misses, "{text}");
        assert_eq!(counts.fetches, counts.demand_fetches + counts.prefetches, "{text}");
        for process in &report.processes {
            let parts = process.compute_ns + process.driver_ns + process.overhead_ns + process.stall_ns;
            assert_eq!(process.elapsed_ns, parts + process.barrier_ns + process.idle_ns, "{text}");
        }
        // The application's requests pay for calls, its bytes for copies; metadata cost nothing.
        let keys = report.scenario["workload"].as_table().expect("a section");
        let bytes =
            |key: &str| keys[key].as_str().expect("a size").trim_end_matches('B').parse::<u64>().expect("bytes");
        let (files, size, request) =
            (keys["files"].as_integer().expect("a count") as u64, bytes("file_size"), bytes("request"));
        assert_eq!(report.requests, files * size.div_ceil(request), "{text}");
        let again = serde_json::to_string(&common::run(&text)).expect("plain values");
        assert_eq!(serde_json::to_string(&report).expect("plain values"), again, "the same again\n{text}");
        let mut resolved = common::run(&report.scenario.to_string());
        resolved.scenario.clone_from(&report.scenario);
        resolved.trace_sha256.clone_from(&report.trace_sha256);
        assert_eq!(serde_json::to_string(&resolved).expect("plain values"), again, "resolved\n{text}");
    }
}

#[test]
fn the_resolved_scenario_gives_the_same_result() {
    for seed in (0..COUNT).step_by(10) {
        let text = common::random_system(seed);
        let report = common::run(&text);
        let resolved = report.scenario.to_string();
        let mut again = common::run(&resolved);
        assert_eq!(report.scenario, again.scenario, "every default is there already\n{text}");
        // The two are written with a different order of keys; a generated workload's hash is that of its description.
        again.scenario.clone_from(&report.scenario);
        again.trace_sha256.clone_from(&report.trace_sha256);
        let json = |report: &Report| serde_json::to_string_pretty(report).expect("plain values");
        assert_eq!(json(&report), json(&again), "{text}\n{resolved}");
    }
}

#[test]
fn another_seed_is_another_run() {
    let run = |seed: u64| {
        let text = format!(
            "seed = {seed}\nworkload = {{generator = \"zipf\", requests = 500, blocks = 200, compute = \"exp:1ms\"}}\n\
             cache = {{blocks = 50}}\npolicy = \"forestall\"\ndevice = \"hp97560\"\n"
        );
        common::run(&text).elapsed_ns
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}
