//! Runs that share their traces have the same results, notes and errors as separate runs.

use std::fs;
use std::path::{Path, PathBuf};

use headstart_sim::{lower_bound, simulate, Scenario, Source, Traces};

fn trace(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples/traces").join(name)
}

/// A run's result and bound as JSON, or its error's line.
fn outcome(text: &str, traces: &Traces) -> (String, String) {
    let mut scenario = match Scenario::read(&Source::Json(text.to_owned()), &[]) {
        Ok(scenario) => scenario,
        Err(error) => return (error.to_string(), String::new()),
    };
    scenario.traces = traces.clone();
    let result = simulate(&scenario, &mut |_| true).map(|report| serde_json::to_string(&report).expect("JSON"));
    let bound = lower_bound(&scenario).map(|bound| bound.elapsed_ns);
    let shown = |error: headstart_sim::Error| format!("error: {error}");
    (result.unwrap_or_else(shown), bound.map_or_else(shown, |bound| format!("{bound:?}")))
}

fn scenario(path: &Path, workload: &str, policy: &str, device: &str) -> String {
    format!(
        r#"{{"workload": {{"trace": {path:?} {workload}}}, "cache": {{"blocks": 300}},
            "policy": {{"name": "{policy}"}}, "device": {{"model": "{device}"}}}}"#
    )
}

/// Whole and in part, with one pass before the run, two or none, by process, and one after another of the same trace.
#[test]
fn a_shared_trace_changes_no_result() {
    let workloads = [
        "",
        r#", "limit": 5000"#,
        r#", "addresses": "auto""#,
        r#", "addresses": "auto", "limit": 7000"#,
        r#", "addresses": "compact""#,
        r#", "compute_total": "2s""#,
        r#", "processes": "per-pid", "limit": 4000"#,
        r#", "block_size": "4KiB", "issue": "whole""#,
        r#", "placement": "address""#,
    ];
    let traces = Traces::shared();
    let (mut done, mut refused) = (0, 0);
    for name in ["cscope1.csv.xz", "glimpse.csv.xz", "multi6.csv.xz", "offsets.txt"] {
        // A part of the longest is enough.
        for workload in workloads.into_iter().filter(|each| !name.starts_with("multi6") || each.contains("limit")) {
            for (policy, device) in [("demand", "hp97560"), ("forestall", "nvme"), ("linux", "nvme")] {
                let text = scenario(&trace(name), workload, policy, device);
                let (alone, shared) = (outcome(&text, &Traces::default()), outcome(&text, &traces));
                assert_eq!(alone, shared, "{text}");
                let counter = if alone.0.starts_with('{') { &mut done } else { &mut refused };
                *counter += 1;
            }
        }
    }
    assert!(done > 50, "{done} runs, {refused} refusals");
}

/// The first error of a trace reaches each run, after the records before it; a limit avoids it if the bad line is not
/// among the records held back for sorting.
#[test]
fn a_bad_line_is_every_run_s_error() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let path = folder.join("bad.csv");
    let lines =
        (0..12_000).map(|at| if at == 11_500 { "x,0,R,1\n".to_owned() } else { format!("{at},{at}000,R,4096\n") });
    fs::write(&path, "time,offset,op,size\n".to_owned() + &lines.collect::<String>()).expect("a trace");
    let traces = Traces::shared();
    for limit in ["", r#", "limit": 8000"#, ""] {
        for policy in ["demand", "aggressive"] {
            let text = scenario(&path, limit, policy, "nvme");
            let (alone, shared) = (outcome(&text, &Traces::default()), outcome(&text, &traces));
            assert_eq!(alone, shared, "{text}");
            assert_eq!(alone.0.contains("bad.csv, line 11502"), limit.is_empty(), "{}", alone.0);
        }
    }
}

#[test]
fn a_file_that_has_been_written_since_is_read_anew() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let path = folder.join("grows.txt");
    let traces = Traces::shared();
    let text = scenario(&path, r#", "format": "offsets", "request_size": "4KiB""#, "demand", "nvme");
    for requests in [10u64, 20] {
        fs::write(&path, (0..requests).map(|at| format!("{}\n", at * 8192)).collect::<String>()).expect("a trace");
        let (result, _) = outcome(&text, &traces);
        assert!(result.contains(&format!("\"requests\":{requests},")), "{result}");
        assert_eq!(outcome(&text, &Traces::default()).0, result);
    }
}
