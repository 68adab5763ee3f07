//! Whole-system fuzzer of the server: random exports, clients and faulty backings on a virtual clock. Shrinks and
//! prints the first case that breaks an invariant.
//!
//!     make fuzz-system SECONDS=3600
//!     cargo run --release -p headstart-serve --example fuzz_server -- --seed 7 --cases 1

#[path = "../../../sim/simulator/examples/fuzz/seeds.rs"]
mod seeds;
#[path = "../tests/whole/mod.rs"]
mod whole;

use std::panic;
use std::process::ExitCode;

use seeds::Seeds;
use whole::{fault, run, shrunk, Done, Plan};

fn main() -> ExitCode {
    let Some(mut seeds) = Seeds::asked_for() else { return ExitCode::from(2) };
    let first = seeds.first;
    panic::set_hook(Box::new(|_| ()));
    let (mut ran, mut all) = (0u64, Done::default());
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
        all.add(&done);
    }
    let took = seeds.seconds();
    let Done { requests, failed, instants, checked_bytes, faults, .. } = all;
    println!(
        "from seed {first}: {ran} servers answered {requests} requests, {failed} by errors, in {instants} instants, {took} s"
    );
    println!("{checked_bytes} bytes checked; faults: {faults:?}");
    result
}
