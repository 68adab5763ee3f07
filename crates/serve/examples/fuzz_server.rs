//! The whole-system fuzzer of the server: random exports, clients and backings with their faults, on a virtual clock. The first case that breaks a rule
//! is shrunk and printed.
//!
//!     make fuzz-system SECONDS=3600
//!     cargo run --release -p headstart-serve --example fuzz_server -- --seed 7 --cases 1

#[path = "../../sim/examples/fuzz/seeds.rs"]
mod seeds;
#[path = "../tests/whole/mod.rs"]
mod whole;

use std::panic;
use std::process::ExitCode;

use seeds::Seeds;
use whole::{fault, run, shrunk, Plan};

fn main() -> ExitCode {
    let Some(mut seeds) = Seeds::asked_for() else { return ExitCode::from(2) };
    let first = seeds.first;
    panic::set_hook(Box::new(|_| ()));
    let (mut ran, mut requests, mut failed, mut instants) = (0u64, 0u64, 0u64, 0u64);
    let mut result = ExitCode::SUCCESS;
    for seed in &mut seeds {
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
    let took = seeds.seconds();
    println!("from seed {first}: {ran} servers answered {requests} requests, {failed} by errors, in {instants} instants, {took} s");
    result
}
