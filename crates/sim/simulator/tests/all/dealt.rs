//! Files dealt to processes that share hints: worked by hand, and accounts that must add up.

use headstart_sim::Report;

use crate::common;

const MS: u64 = 1_000_000;

/// Two workers that read files of one block, and file 3 of two: (worker, file, block).
const READS: [(u32, u64, u64); 9] =
    [(7, 1, 0), (8, 2, 0), (7, 3, 0), (8, 4, 0), (7, 3, 1), (8, 5, 0), (7, 1, 0), (8, 6, 0), (7, 7, 0)];

fn trace(name: &str, reads: &[(u32, u64, u64)]) -> common::Trace {
    let mut text = "time,op,pid,file,offset,size,dur_us\n".to_owned();
    for (at, (pid, file, block)) in reads.iter().enumerate() {
        text += &format!("0.{at:06},R,{pid},{file},{},8192,0\n", block * 8192);
    }
    common::Trace::of_text(name, &text)
}

/// 2 ms of think time after each read, on 24 disks of 10 ms with one block each in turn.
fn scenario(trace: &common::Trace, processes: &str, policy: &str, process: &str) -> String {
    format!(
        "workload = {{trace = \"{}\", processes = \"{processes}\", compute = \"2ms\"}}\ncache = {{blocks = 64}}\n\
         policy = {policy}\nprocess = {{{process}}}\n\
         device = {{model = \"uniform\", fetch_time = \"10ms\", count = 24, stripe_unit = \"8KiB\"}}\n",
        trace.path()
    )
}

fn references(report: &Report) -> Vec<u64> {
    report.processes.iter().map(|process| process.references).collect()
}

#[test]
fn files_go_to_the_processes_in_turn_each_time_that_they_are_begun() {
    let trace = trace("dealt-turns", &READS);
    // Begun in the order 1, 2, 3, 4, 5, 1, 6, 7; process 0 gets 1, 4, 6 and process 1 gets 2, 5, 7 of three, ...
    for (count, expected) in [(1, vec![9]), (2, vec![5, 4]), (3, vec![3, 3, 3]), (8, vec![1, 1, 2, 1, 1, 1, 1, 1])] {
        let report = common::run(&scenario(&trace, "dealt", "\"demand\"", &format!("count = {count}")));
        assert_eq!(references(&report), expected, "{count}");
        assert_eq!(report.scenario["process"]["count"].as_integer(), Some(i64::from(count)));
    }
    // More processes than files begun: the others have no references and do not exist.
    let report = common::run(&scenario(&trace, "dealt", "\"demand\"", "count = 20"));
    assert_eq!(references(&report).len(), 8);
    // Two processes on demand: 0 reads 1, 3, 3', 5, 6 and 1 reads 2, 4, 1, 7. File 1 is there when it is read again.
    let report = common::run(&scenario(&trace, "dealt", "\"demand\"", "count = 2"));
    let stalls: Vec<u64> = report.processes.iter().map(|process| process.stall_ns / MS).collect();
    assert_eq!((stalls, report.elapsed_ns / MS), (vec![50, 30], 60));
}

#[test]
fn what_is_fetched_ahead_is_waited_for_once() {
    let trace = trace("dealt-ahead", &READS);
    for policy in ["fixed-horizon", "aggressive", "forestall"] {
        let policy = format!("{{name = \"{policy}\"}}");
        let report = common::run(&scenario(&trace, "dealt", &policy, "count = 2, barrier = {every = 2}"));
        // Everything is requested at the start: each process only waits for its first block, then computes 5 or 4
        // times.
        let times: Vec<(u64, u64)> =
            report.processes.iter().map(|process| (process.stall_ns / MS, process.compute_ns / MS)).collect();
        assert_eq!((times, report.elapsed_ns / MS), (vec![(10, 10), (10, 8)], 20), "{policy}");
        assert_eq!((report.counts.fetches, report.counts.prefetches_wasted), (8, 0), "{policy}");
    }
    // One block ahead of the lowest unserved position is less than two processes use at once.
    let near = "{name = \"fixed-horizon\", horizon = 1}";
    let report = common::run(&scenario(&trace, "dealt", near, "count = 2"));
    assert!(report.stall_ns > 20 * MS && report.counts.fetches == 8, "{}", report.stall_ns);
}

#[test]
fn one_process_that_gets_everything_is_the_merged_run() {
    let trace = trace("dealt-one", &READS);
    let policies =
        ["fixed-horizon", "aggressive", "forestall"].map(|name| format!("{{name = \"{name}\", batch_size = 3}}"));
    for policy in policies.iter().map(|policy| if policy.contains("fixed") { "\"fixed-horizon\"" } else { policy }) {
        let dealt = common::run(&scenario(&trace, "dealt", policy, "count = 1"));
        let merged = common::run(&scenario(&trace, "merged", policy, "barrier = \"none\""));
        let facts = |report: &Report| {
            let counts = &report.counts;
            (report.elapsed_ns, report.stall_ns, counts.hits_unready, counts.misses, counts.fetches, counts.evictions)
        };
        assert_eq!(facts(&dealt), facts(&merged), "{policy}");
    }
}

/// A training of 4 ranks on files in another order each epoch, read by three workers in turn.
#[test]
fn accounts_of_ranks_that_share_hints_add_up() {
    let order = |epoch: u64| (0..40u64).map(move |at| (at * [7, 11, 13][epoch as usize]) % 40);
    let reads: Vec<(u32, u64, u64)> =
        (0..3).flat_map(order).zip(0..).map(|(file, at): (u64, u32)| (at % 3, file, 0)).collect();
    let trace = trace("dealt-epochs", &reads);
    for (policy, device) in ["fixed-horizon", "aggressive", "forestall"]
        .iter()
        .flat_map(|policy| ["object-store", "nvme"].map(|device| (*policy, device)))
    {
        for blocks in [8, 40] {
            let report = common::run(&format!(
                "workload = {{trace = \"{}\", processes = \"dealt\", compute = \"exp:3ms\"}}\n\
                 cache = {{blocks = {blocks}}}\npolicy = \"{policy}\"\nprocess = {{count = 4, barrier = {{every = 5}}}}\n\
                 device = {{model = \"{device}\"}}\n",
                trace.path()
            ));
            let counts = &report.counts;
            assert_eq!(references(&report), [30; 4]);
            assert_eq!(report.intervals.len(), 6);
            assert_eq!(counts.references, counts.hits_ready + counts.hits_unready + counts.misses);
            assert_eq!(counts.fetches, counts.demand_fetches + counts.prefetches);
            for process in &report.processes {
                let parts = process.compute_ns + process.driver_ns + process.overhead_ns + process.stall_ns;
                assert_eq!(parts + process.barrier_ns + process.idle_ns, report.elapsed_ns);
            }
            let fetched_once = counts.fetches == 40 && counts.evictions == 0;
            assert_eq!(fetched_once, blocks == 40, "{policy} on {device}: {} fetches", counts.fetches);
        }
    }
}

#[test]
fn what_cannot_be_dealt_is_refused() {
    let trace = trace("dealt-refused", &READS);
    let refused = |text: &str, key: &str| {
        let error = common::try_run(common::table(text)).expect_err("it cannot run");
        assert!(error.starts_with(key), "{error}");
    };
    refused(
        &scenario(&trace, "dealt", "\"demand\"", "min_time = \"0s\""),
        "workload.processes: files are dealt to processes",
    );
    refused(&scenario(&trace, "per-pid", "\"demand\"", "count = 2"), "process.count: the trace determines");
    refused(&scenario(&trace, "dealt", "\"demand\"", "count = 0"), "process.count: 0 is out of range");
    let generated = "workload = {generator = \"synth\", processes = \"dealt\"}\nprocess = {count = 2}\n";
    refused(generated, "workload.processes: the trace does not distinguish files");
    refused("workload = {references = [\"a\"], processes = \"dealt\"}\nprocess = {count = 2}\n", "workload.processes");
}
