//! The whole-system fuzzer of the server: random exports, clients and backings with their faults, on a virtual clock. The first case that breaks a rule
//! is shrunk and printed.
//!
//!     make fuzz-system SECONDS=3600
//!     cargo run --release -p headstart-serve --example fuzz_server -- --seed 7 --cases 1

#[path = "../tests/whole/mod.rs"]
mod whole;

use std::panic;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use whole::{fault, run, shrunk, Plan};

const USAGE: &str = "fuzz [--seed N] [--cases N] [--seconds N] (by default: from seed 0, for 60 seconds)";

/// `--seed`, `--cases`, `--seconds`.
fn arguments() -> Option<[Option<u64>; 3]> {
    let mut given = [None; 3];
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let at = ["--seed", "--cases", "--seconds"].iter().position(|name| *name == word)?;
        given[at] = Some(words.next()?.parse().ok()?);
    }
    Some(given)
}

#[expect(clippy::disallowed_methods, reason = "it says how long to go on, and decides nothing in a case")]
fn main() -> ExitCode {
    let Some([seed, cases, seconds]) = arguments() else {
        eprintln!("usage: {USAGE}");
        return ExitCode::from(2);
    };
    let started = Instant::now();
    let patience = Duration::from_secs(seconds.unwrap_or(if cases.is_some() { u64::MAX } else { 60 }));
    let first = seed.unwrap_or(0);
    panic::set_hook(Box::new(|_| ()));
    let (mut ran, mut requests, mut failed, mut instants) = (0u64, 0u64, 0u64, 0u64);
    let mut result = ExitCode::SUCCESS;
    for seed in first..first.saturating_add(cases.unwrap_or(u64::MAX - first)) {
        if started.elapsed() > patience {
            break;
        }
        let plan = Plan::drawn(seed);
        let Ok(done) = panic::catch_unwind(|| run(&plan, None)) else {
            let small = shrunk(&plan, None);
            let said = fault(&small, None).unwrap_or_else(|| "it does not happen again".to_owned());
            println!("{small}seed {seed}: {said}");
            println!("again: cargo run --release -p headstart-serve --example fuzz_server -- --seed {seed} --cases 1");
            result = ExitCode::FAILURE;
            break;
        };
        ran += 1;
        requests += done.requests;
        failed += done.failed;
        instants += done.instants;
    }
    let took = started.elapsed().as_secs();
    println!("from seed {first}: {ran} servers answered {requests} requests, {failed} by errors, in {instants} instants, {took} s");
    result
}
