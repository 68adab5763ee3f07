//! Writes that reach the devices: worked out by hand, and at random with every policy.

use headstart_policy::registry::read_aheads;
use headstart_policy::registry::POLICIES;
use headstart_sim::Report;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::common;
use crate::common::Trace;

const READ: bool = false;
const WRITE: bool = true;
/// Blocks A, B and C of the examples.
const ABAC: [(bool, u64); 4] = [(READ, 0), (WRITE, 1), (READ, 0), (WRITE, 2)];
const TWO_MS: &str = "policy = \"demand\"\ndevice = {model = \"uniform\", fetch_time = \"2ms\"}\n";

/// (elapsed, stall) in ms, and (hits, misses, write misses, demand fetches, evictions).
fn times_and_counts(report: &Report) -> ((f64, f64), [u64; 5]) {
    let ms = |ns: u64| ns as f64 / 1e6;
    let counts = &report.counts;
    let counts = [counts.hits_ready, counts.misses, counts.write_misses, counts.demand_fetches, counts.evictions];
    ((ms(report.elapsed_ns), ms(report.stall_ns)), counts)
}

#[test]
fn writing_through_waits_for_the_disk() {
    // Read A 0-2, think 1; write B 3-5, without a fetch, think 1; A hits at 6, think 1; write C 7-9 in the place of
    // B, which is clean; think 1: 10 ms, of which 6 waiting.
    let trace = Trace::new("through", &ABAC, 1);
    let report = common::run(&trace.scenario("through", &format!("cache = {{blocks = 2}}\n{TWO_MS}")));
    assert_eq!(times_and_counts(&report), ((10.0, 6.0), [1, 3, 2, 1, 1]));
    assert_eq!((report.counts.writes, report.counts.blocks_written, report.levels[0].dirty_blocks), (2, 2, 0));
    let device = &report.devices[0];
    assert_eq!((device.requests, device.writes, device.busy_ns), (3, 2, 6_000_000));
    // From issue to reply: 2, 2, 0 and 2 ms.
    assert_eq!(report.response_ns.mean, 1_500_000);
}

#[test]
fn a_request_is_written_through_as_one() {
    // 16 blocks with 2 ms a request: as one block of their size, where one after another takes 16 times as long.
    let trace = Trace::new("through-whole", &[(WRITE, 0)], 16);
    let run = |issue: &str, rest: &str| {
        let text = trace.scenario("through", &format!("cache = {{blocks = 20}}\n{rest}"));
        let report = common::run(&text.replace("writes =", &format!("{issue}writes =")).replace("1ms", "0ms"));
        (report.elapsed_ns, report.devices[0].requests, report.counts.blocks_written)
    };
    assert_eq!(run("", TWO_MS), (2_000_000, 1, 16));
    assert_eq!(run("issue = \"blocks\", ", TWO_MS), (32_000_000, 16, 16));
    // On a drive it is one write of 256 sectors.
    let (drive, one_block) = ("device = \"hp97560\"\n", "block_size = \"128KiB\", ");
    let (whole, of_one) = (run("", drive), run(one_block, drive));
    assert_eq!((whole.0, whole.1), (of_one.0, 1));
}

#[test]
fn a_prefetch_that_is_overwritten_is_of_no_use() {
    // A at 0-2 brings B with it; B is written at 3, then read: the read's hit is the write's.
    let trace = Trace::new("overwritten", &[(READ, 0), (WRITE, 1), (READ, 1)], 1);
    let rest = TWO_MS.replace("demand", "obl");
    let report = common::run(&trace.scenario("back", &format!("cache = {{blocks = 9}}\n{rest}")));
    assert_eq!((report.counts.prefetches, report.counts.prefetches_used), (1, 0));
    assert_eq!((report.counts.hits_ready, report.counts.misses), (2, 1));
}

#[test]
fn writing_back_waits_for_nobody() {
    // Read A 0-2; write B at 3: dirty; A hits at 4; C takes the place of B at 5, which is written 5-7 while the
    // process thinks until 6.
    let trace = Trace::new("back", &ABAC, 1);
    let report = common::run(&trace.scenario("back", &format!("cache = {{blocks = 2}}\n{TWO_MS}")));
    assert_eq!(times_and_counts(&report), ((6.0, 2.0), [1, 3, 2, 1, 1]));
    assert_eq!((report.counts.writes, report.counts.blocks_written, report.levels[0].dirty_blocks), (2, 1, 1));
    // The write of B is under way at the end: busy from 5 to 6.
    assert_eq!((report.devices[0].requests, report.devices[0].busy_ns), (1, 3_000_000));
}

#[test]
fn nothing_is_read_ahead_behind_writes() {
    // A copy of 256 blocks: each of the source is fetched once, none of the destination.
    for row in read_aheads() {
        let report = common::run(&format!(
            "workload = {{generator = \"cp\", copies = 1, size = \"1MiB\", block_size = \"4KiB\", compute = \"1ms\", \
             processes = \"per-pid\", issue = \"whole\", writes = \"back\"}}\ncache = {{blocks = 1024}}\n\
             policy = \"{}\"\ndevice = {{model = \"ibm-36gb-10k\"}}\n",
            row.name
        ));
        let counts = &report.counts;
        assert_eq!((counts.fetches, counts.writes, counts.write_misses), (256, 256, 256), "{}", row.name);
        assert_eq!(report.levels[0].dirty_blocks, 256, "{}", row.name);
    }
}

#[test]
fn a_delay_writes_before_eviction() {
    // B is due 1 ms after 3 and is written 4-6; at 5 it is clean and makes room for C, due at 6, where the run ends.
    let trace = Trace::new("delay", &ABAC, 1);
    let cache = "cache = {blocks = 2, write_delay = \"1ms\"}\n";
    let report = common::run(&trace.scenario("back", &format!("{cache}{TWO_MS}")));
    assert_eq!(times_and_counts(&report), ((6.0, 2.0), [1, 3, 2, 1, 1]));
    assert_eq!((report.counts.blocks_written, report.levels[0].dirty_blocks), (1, 1));
    assert_eq!((report.devices[0].writes, report.devices[0].busy_ns), (1, 4_000_000));
}

#[test]
fn a_read_waits_behind_a_write_of_its_disk() {
    // Write A (no fetch) at 0, back with no delay: on its disk 0-2. Think until 1; read B: its disk is free at 2,
    // done at 4. Another policy than LRU has nothing to say here.
    let trace = Trace::new("behind", &[(WRITE, 0), (READ, 1)], 1);
    let cache = "cache = {blocks = 2, write_delay = \"0s\"}\n";
    let report = common::run(&trace.scenario("back", &format!("{cache}{TWO_MS}")));
    assert_eq!(times_and_counts(&report), ((5.0, 3.0), [0, 2, 1, 1, 0]));
}

#[test]
fn hints_are_of_reads_only() {
    // Read A, write B, read C on one disk with room for all: aggressive fetches C while A is thought about (2-4), and
    // B never. A 0-2, think, B written through at 3: its write waits for C's fetch, 4-6; think; C hits at 7.
    let trace = Trace::new("hints", &[(READ, 0), (WRITE, 1), (READ, 2)], 1);
    let rest = "cache = {blocks = 3}\npolicy = {name = \"aggressive\", batch_size = 1}\n\
                device = {model = \"uniform\", fetch_time = \"2ms\"}\n";
    let report = common::run(&trace.scenario("through", rest));
    assert_eq!(times_and_counts(&report), ((8.0, 5.0), [1, 2, 1, 1, 0]));
    assert_eq!((report.counts.prefetches_used, report.devices[0].requests), (1, 3));
}

#[test]
fn every_policy_with_writes_adds_up() {
    for seed in 0..600 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let blocks = rng.random_range(1..60);
        let share = f64::from(rng.random_range(0..=10)) / 10.0;
        let requests: Vec<(bool, u64)> =
            (0..rng.random_range(1..250)).map(|_| (rng.random_bool(share), rng.random_range(0..blocks))).collect();
        let trace = Trace::new(&format!("random-{seed}"), &requests, rng.random_range(1..=3));
        let policies = common::policies();
        let policy = &policies[rng.random_range(0..policies.len())];
        let back = rng.random_bool(0.5);
        let delay = ["0s", "3ms", "30s"][rng.random_range(0..3)];
        let delay = if back { format!(", write_delay = \"{delay}\"") } else { String::new() };
        let rest = format!(
            "cache = {{blocks = {}{delay}}}\npolicy = {{{policy}}}\n\
             device = {{model = \"{}\", count = {}}}\nhost = {{driver_overhead = \"{}us\"}}\n",
            rng.random_range(1..40),
            ["hp97560", "uniform\", fetch_time = \"3ms"][rng.random_range(0..2)],
            rng.random_range(1..4),
            [0, 500][rng.random_range(0..2)],
        );
        let text = trace.scenario(if back { "back" } else { "through" }, &rest);
        adds_up(&common::run(&text), &requests, back, &text);
    }
    assert!(POLICIES.len() > 4, "the registry has been read");
}

fn adds_up(report: &Report, requests: &[(bool, u64)], back: bool, text: &str) {
    let counts = &report.counts;
    let each = counts.references / requests.len() as u64;
    let writes = requests.iter().filter(|(write, _)| *write).count() as u64;
    assert_eq!(counts.writes, writes * each, "{text}");
    assert_eq!(counts.misses, counts.demand_fetches + counts.write_misses, "{text}");
    assert!(counts.write_misses <= counts.writes, "{text}");
    let dirty = report.levels[0].dirty_blocks;
    if back {
        assert!(counts.blocks_written + dirty <= counts.writes, "no more is written than was\n{text}");
        assert!(writes == 0 || counts.blocks_written + dirty > 0, "a write leaves a trace\n{text}");
    } else {
        assert_eq!((counts.blocks_written, dirty), (counts.writes, 0), "{text}");
    }
    let parts = report.compute_ns + report.driver_ns + report.overhead_ns + report.stall_ns;
    assert_eq!(parts, report.elapsed_ns, "{text}");
    let (requests, rest) = (report.driver_ns / 500_000, report.driver_ns % 500_000);
    let most = counts.fetches + counts.blocks_written;
    let fits = rest == 0 && (requests == 0 || requests == most || (common::gathers(text) && requests < most));
    assert!(fits, "driver work is a cost per request\n{text}");
    let done: u64 = report.devices.iter().map(|device| device.writes).sum();
    assert!(done <= counts.blocks_written, "{text}");
    let read: u64 = report.devices.iter().map(|device| device.requests - device.writes).sum();
    assert!(read <= counts.fetches, "{text}");
}

#[test]
fn keys_that_do_not_fit_are_refused() {
    let trace = Trace::new("refused", &ABAC, 1);
    let refused = |writes: &str, rest: &str, says: &str| {
        let scenario = common::table(&trace.scenario(writes, &format!("{rest}\n{TWO_MS}")));
        let error = common::try_run(scenario).expect_err(says);
        assert!(error.contains(says), "{error}");
    };
    refused("through", "cache = {write_delay = \"1s\"}", "cache.write_delay: nothing stays dirty");
    refused("sometimes", "", "workload.writes");
    let window = "[policy]\nname = \"aggressive\"\nhints = {window = 4}\n[device]\nmodel = \"hp97560\"\n";
    let error = common::try_run(common::table(&trace.scenario("back", window))).expect_err("a window");
    assert!(error.contains("policy.hints.window"), "{error}");
}

#[test]
fn a_block_whose_frame_another_process_takes_is_written_all_the_same() {
    // One frame, two processes that write a block each, again and again: each takes the other's frame.
    let lines: Vec<String> =
        (0..8).map(|at| format!("0.{at:06},W,{},1,{},8192,0", 1 + at % 2, at % 2 * 8192)).collect();
    let text = format!("time,op,pid,file,offset,size,dur_us\n{}\n", lines.join("\n"));
    let trace = common::Trace::of_text("frame", &text);
    for (writes, hit_time) in [("through", "0s"), ("through", "1ms"), ("back", "0s"), ("back", "1ms")] {
        let report = common::run(&format!(
            "workload = {{trace = \"{}\", processes = \"per-pid\", writes = \"{writes}\", placement = \"address\"}}\n\
             cache = {{blocks = 1}}\nhost = {{hit_time = \"{hit_time}\"}}\n\
             device = {{model = \"uniform\", fetch_time = \"2ms\"}}\n",
            trace.path()
        ));
        assert_eq!(report.counts.writes, 8, "{writes}");
        let dirty = report.levels[0].dirty_blocks;
        assert!(report.counts.blocks_written + dirty >= 2 && (writes == "back" || report.counts.blocks_written == 8));
    }
}

#[test]
fn a_cluster_leaves_without_what_was_due_before() {
    // Blocks 0 to 3 are dirty at 0, 1, 2 and 3 ms. Block 0 is due at 1.5 ms, block 1 at 2.5 ms; 2 and 3 leave at 3 ms,
    // when 3 fills the cluster, as one request. The disk is busy until 7.5 ms; the last think ends at 4 ms.
    let requests = [0, 1, 2, 3, 8].map(|block| (WRITE, block));
    let trace = Trace::new("due-before", &requests, 1);
    let cache = "cache = {blocks = 9, write_delay = \"1500us\", write_cluster = \"32KiB\"}\n";
    let report = common::run(&trace.scenario("back", &format!("{cache}{TWO_MS}")));
    // Block 8 is dirty at the end, 5 ms. Block 0 is on the disk at 3.5 ms, block 1 is being written.
    assert_eq!((report.elapsed_ns, report.counts.blocks_written, report.levels[0].dirty_blocks), (5_000_000, 4, 1));
    assert_eq!((report.devices[0].writes, report.devices[0].busy_ns), (1, 3_500_000));
    // Without an early due time all four leave at 3 ms.
    let late = common::run(&trace.scenario("back", &format!("{cache}{TWO_MS}").replace("1500us", "30s")));
    assert_eq!((late.counts.blocks_written, late.levels[0].dirty_blocks), (4, 1));
    assert_eq!((late.devices[0].writes, late.devices[0].blocks, late.devices[0].busy_ns), (1, 4, 2_000_000));
}

#[test]
fn clusters_are_of_what_stays_dirty() {
    let trace = Trace::new("cluster-keys", &ABAC, 1);
    for (writes, cluster, expected) in [
        ("through", "64KiB", "cache.write_cluster: nothing stays dirty"),
        ("back", "1KiB", "cache.write_cluster: smaller than a block"),
    ] {
        let text = trace.scenario(writes, &format!("cache = {{blocks = 2, write_cluster = \"{cluster}\"}}\n{TWO_MS}"));
        let error = common::try_run(common::table(&text)).expect_err(cluster);
        assert!(error.starts_with(expected), "{error}");
    }
}
