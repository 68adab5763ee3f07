//! The model of open arrivals compared with the simulation of generator `runs`.

use headstart_analytic::file_system::OpenResponse;
use headstart_sim::model::open;
use headstart_sim::Scenario;
use proptest::prelude::*;

use crate::common::{run, table};

fn modelled(text: &str) -> Result<OpenResponse, String> {
    let scenario = Scenario::from_table(table(text)).map_err(|error| error.to_string())?;
    open(&scenario).map_err(|error| error.to_string())
}

/// Requests that arrive at a disk; further keys of the workload.
fn arrivals(workload: &str, device: &str) -> String {
    format!(
        "workload = {{generator = \"runs\", arrival = \"open\"{workload}}}\n\
         cache = {{blocks = 64}}\npolicy = \"demand\"\ndevice = {{scheduler = \"fcfs\", {device}}}\n"
    )
}

const UNIFORM: &str = "model = \"uniform\", fetch_time = \"2ms\"";
/// Reads on while the next request is processed.
const CHEETAH: &str = "model = \"seagate-cheetah-4lp\", buffer = {read_during_overhead = true}";
const ON_SEQUENCE: &str =
    "model = \"seagate-cheetah-4lp\", buffer = {read_during_overhead = true, read_ahead_on_sequence = true}";

/// Model over simulation minus 1, for the mean response over `seeds` runs of 20,000 requests, and for the busy time.
fn relative_errors(workload: &str, device: &str, seeds: u32) -> (f64, f64) {
    let text = arrivals(&format!(", requests = 20000{workload}"), device);
    let (mut response, mut busy) = (0.0, 0.0);
    for seed in 1..=seeds {
        let report = run(&format!("seed = {seed}\n{text}"));
        response += report.response_ns.mean as f64 / f64::from(seeds);
        busy += report.devices[0].busy_ns as f64 / report.elapsed_ns as f64 / f64::from(seeds);
    }
    let model = modelled(&text).expect("modelled");
    let errors = (model.response_ns / response - 1.0, model.busy / busy - 1.0);
    println!("{workload} {device}: response {:+.3}, busy {:+.3}", errors.0, errors.1);
    errors
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() })]

    /// A disk that always takes the same time: Pollaczek and Khinchine's result, within some standard errors.
    #[test]
    fn a_uniform_disk_is_the_textbooks_queue(interval_us in 3_000u32..12_000, burst in 1u32..5, run in 1u32..10) {
        for (timing, most) in [("\"poisson\"".to_owned(), 0.05), (format!("\"bursty\", burst = {burst}.0"), 0.10)] {
            let keys = format!(", timing = {timing}, interval = \"{interval_us}us\", run_length = {run}.0");
            let (response, busy) = relative_errors(&keys, UNIFORM, 3);
            prop_assert!(response.abs() < most && busy.abs() < 0.02, "{keys}: {response:+.3} {busy:+.3}");
        }
    }
}

#[test]
fn a_constant_rate_waits_for_nothing() {
    let (response, busy) = relative_errors(", timing = \"constant\", interval = \"3ms\"", UNIFORM, 1);
    assert!(response.abs() < 0.001 && busy.abs() < 0.001, "{response} {busy}");
}

#[test]
fn a_cheetah_is_near_the_simulation() {
    // Loads of about a half; the standard error of two runs of 20,000 is about 2 %, of bursts 3 %.
    for (workload, device, most) in [
        (", interval = \"25ms\"", CHEETAH, 0.05),
        (", interval = \"25ms\"", ON_SEQUENCE, 0.05),
        (", interval = \"8ms\", run_length = 8.0", CHEETAH, 0.08),
        (", interval = \"10ms\", run_length = 8.0", ON_SEQUENCE, 0.08),
        (", interval = \"30ms\", timing = \"bursty\", burst = 4.0", CHEETAH, 0.08),
        (", interval = \"20ms\", timing = \"constant\"", CHEETAH, 0.06),
        (", interval = \"25ms\", run_length = 4.0, request = \"64KiB\"", CHEETAH, 0.09),
    ] {
        let (response, busy) = relative_errors(workload, device, 2);
        assert!(response.abs() < most && busy.abs() < 0.05, "{workload} {device}: {response:+.3} {busy:+.3}");
    }
}

#[test]
fn what_the_equations_do_not_know_is_refused() {
    let error = |workload: &str, device: &str| modelled(&arrivals(workload, device)).expect_err(workload);
    for (workload, device, expected) in [
        ("", "model = \"seagate-cheetah-4lp\", count = 2", "device.count: the model has one disk; allowed: 1"),
        (", request = \"12KiB\", span = \"12MiB\"", CHEETAH, "workload.request: 12KiB is not a whole number of blocks"),
        (
            ", span = \"16MiB\"",
            CHEETAH,
            "cache.blocks: a cache of 64 blocks serves requests, which the model does not cover",
        ),
        (", interval = \"5ms\"", CHEETAH, "workload.interval: requests arrive faster than the disk serves them"),
        (", interval = \"0ms\"", CHEETAH, "workload.interval: all requests arrive at once"),
    ] {
        let found = error(workload, device);
        assert!(found.starts_with(expected), "{found}");
    }
    assert!(error("", "model = \"object-store\"").starts_with("device.model: "));
    let closed = arrivals("", CHEETAH).replace("\"open\"", "\"closed\"");
    assert!(modelled(&closed).expect_err("closed").starts_with("workload.arrival: the model has open arrivals"));
    let sorted = arrivals("", CHEETAH).replace("fcfs", "clook");
    assert!(modelled(&sorted).expect_err("sorted").starts_with("device.scheduler: the model serves requests in"));
}
