//! Several processes of which some give hints: the properties of every hinted policy of the registry.

use headstart_policy::registry::POLICIES;
use headstart_sim::Report;

use crate::common;
use crate::common::Trace;

/// Policies that accept several processes.
fn policies() -> impl Iterator<Item = &'static str> {
    let alone = ["optimum", "reverse-aggressive"];
    POLICIES.iter().filter(|row| row.is_hinted()).map(|row| row.name).filter(move |name| !alone.contains(name))
}

/// Process 1 reads 40 blocks of file 1 in order, five times; process 2 reads 30 of file 2 in another order, as often.
fn trace(name: &str) -> Trace {
    let mut text = "time,op,pid,file,offset,size,dur_us\n".to_owned();
    for at in 0..200u64 {
        let other = (at * 7 + at / 30) % 30;
        text += &format!("0.{:06},R,1,1,{},8192,0\n", at * 2_000, at % 40 * 8192);
        text += &format!("0.{:06},R,2,2,{},8192,0\n", at * 2_000 + 1_000, other * 8192);
    }
    Trace::of_text(name, &text)
}

fn scenario(trace: &Trace, policy: &str, processes: &str) -> String {
    format!(
        "workload = {{trace = \"{}\", processes = \"{processes}\", compute = \"exp:2ms\"}}\ncache = {{blocks = 32}}\n\
         policy = {{{policy}}}\ndevice = {{model = \"hp97560\", count = 2}}\nhost = {{driver_overhead = \"0.5ms\"}}\n",
        trace.path()
    )
}

fn run(trace: &Trace, policy: &str, hints: &str) -> Report {
    common::run(&scenario(trace, &format!("name = \"{policy}\"{hints}"), "per-pid"))
}

/// A run's result without its inputs.
fn result(mut report: Report) -> String {
    report.scenario.remove("policy");
    report.notes.clear();
    serde_json::to_string(&report).expect("plain values")
}

#[test]
fn all_processes_are_what_no_key_says() {
    let trace = trace("hinting-all");
    for policy in policies() {
        let all = result(run(&trace, policy, ""));
        for hints in ["processes = [0, 1]", "processes = [1, 0, 1], wrong = 0.0", "fraction = 1.0", "reordered = 0.0"] {
            assert_eq!(result(run(&trace, policy, &format!(", hints = {{{hints}}}"))), all, "{policy}, {hints}");
        }
    }
}

#[test]
fn where_none_gives_hints_every_policy_is_lru_on_demand() {
    let trace = trace("hinting-none");
    let lru = run(&trace, "demand", ", replacement = \"lru\"");
    for policy in policies() {
        for hints in
            ["processes = []", "processes = [], wrong = 0.5", "fraction = 0.0", "processes = [1], fraction = 0.0"]
        {
            let report = run(&trace, policy, &format!(", hints = {{{hints}}}"));
            let of = |report: &Report| (report.counts.fetches, report.counts.prefetches, report.elapsed_ns);
            assert_eq!(of(&report), of(&lru), "{policy}, {hints}");
        }
    }
}

/// A single process uses another code path than several do.
#[test]
fn a_process_that_is_alone_may_give_none() {
    let mut text = "time,op,pid,file,offset,size,dur_us\n".to_owned();
    for at in 0..200u64 {
        text += &format!("0.{:06},R,1,1,{},8192,0\n", at * 2_000, at * 7 % 40 * 8192);
    }
    let trace = Trace::of_text("hinting-alone", &text);
    let lru = run(&trace, "demand", ", replacement = \"lru\"");
    for policy in policies() {
        let report = run(&trace, policy, ", hints = {processes = []}");
        assert_eq!((report.counts.prefetches, report.elapsed_ns), (0, lru.elapsed_ns), "{policy}");
    }
}

/// Time of process `at`, without the rest after its end if it ends before the other.
fn ended(report: &Report, at: usize) -> u64 {
    let process = &report.processes[at];
    process.compute_ns + process.driver_ns + process.overhead_ns + process.stall_ns
}

/// Nothing is prefetched for the process without hints, and the one with hints ends sooner than without.
#[test]
fn the_process_that_gives_hints_gains() {
    let trace = trace("hinting-one");
    let lru = run(&trace, "demand", ", replacement = \"lru\"");
    for policy in policies() {
        for giver in [0, 1] {
            let report = run(&trace, policy, &format!(", hints = {{processes = [{giver}]}}"));
            let (with, without) = (ended(&report, giver), ended(&lru, giver));
            assert!(with < without, "{policy}: process {giver} takes {with} ns with hints, {without} without");
            assert!(report.counts.prefetches > 0);
            // Demand fetches are those of the other process, and those delayed by its own queues.
            let other = &report.processes[1 - giver];
            assert!(other.misses > 0, "{policy}: nothing is disclosed of what process {} reads", 1 - giver);
        }
    }
}

/// Errors of every kind, of one process or both: the run's identities are asserted after every run.
#[test]
fn mistakes_are_survived() {
    let trace = trace("hinting-mistakes");
    for policy in policies() {
        for hints in ["wrong = 1.0", "reordered = 1.0, distance = 40", "fraction = 0.5, wrong = 0.3, reordered = 0.3"] {
            for processes in ["", ", processes = [0]", ", processes = [1]"] {
                let report = run(&trace, policy, &format!(", hints = {{{hints}{processes}}}"));
                assert_eq!(report.counts.references, 400, "{policy}, {hints}{processes}");
            }
        }
    }
}

#[test]
fn what_makes_no_sense_is_refused() {
    let trace = trace("hinting-refused");
    for (policy, processes, said) in [
        ("name = \"tip2\", hints = {processes = [2]}", "per-pid", "policy.hints.processes: there is no process 2"),
        ("name = \"tip2\", hints = {processes = [0]}", "merged", "policy.hints.processes: the workload is one process"),
        ("name = \"tip2\", hints = {processes = [-1]}", "per-pid", "policy.hints.processes"),
        ("name = \"tip2\", hints = {processes = [0], window = 4}", "per-pid", "policy.hints"),
        ("name = \"tip2\", hints = {window = 4}", "per-pid", "policy.hints.window: a window follows one process"),
        (
            "name = \"tip2\", hints = {processes = [0], seed = 4}",
            "per-pid",
            "policy.hints: must disclose in exactly one way",
        ),
        ("name = \"demand\", replacement = \"min\"", "per-pid", "workload.processes"),
        ("name = \"tip2\", partition = 1.5", "per-pid", "policy.partition"),
        ("name = \"tip2\", horizon = 0", "per-pid", "policy.horizon"),
    ] {
        let error = common::try_run(common::table(&scenario(&trace, policy, processes))).expect_err(policy);
        assert!(error.contains(said), "{policy}: {error}");
    }
}
