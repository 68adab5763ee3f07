//! The whole-system fuzzer: any topology, policies, devices, traces, writes, barriers, hints and coordinators, drawn
//! from seeds. After every step of every run it checks the invariants; the first failing case is shrunk and printed.
//!
//!     make fuzz-system SECONDS=3600
//!     cargo run --release -p headstart-sim --example fuzz -- --seed 7 --cases 1

#[path = "../../tests/all/case/mod.rs"]
mod case;
#[path = "../../tests/all/drawn/mod.rs"]
mod drawn;
mod seeds;

use std::panic;
use std::process::ExitCode;

use case::{Case, Outcome};
use seeds::Seeds;

fn main() -> ExitCode {
    let Some(mut seeds) = Seeds::asked_for() else { return ExitCode::from(2) };
    let first = seeds.first;
    let folder = std::env::temp_dir().join(format!("headstart-fuzz-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("the temporary folder can be written");
    panic::set_hook(Box::new(|_| ()));
    let (mut ran, mut references, mut refused) = (0u64, 0u64, 0u64);
    let mut result = ExitCode::SUCCESS;
    for seed in &mut seeds {
        let case = Case::drawn(seed, &folder);
        let outcome = panic::catch_unwind(panic::AssertUnwindSafe(|| case.run(&mut |_| ())));
        match outcome {
            Ok(Outcome::Ran(report)) => {
                ran += 1;
                references += report.counts.references;
            }
            Ok(Outcome::Refused) => refused += 1,
            Err(_) => {
                let said = case.fault(&mut |_| ()).unwrap_or_else(|| "it does not happen again".to_owned());
                println!("seed {seed}: {said}");
                let kind = words(&said);
                let small = case.shrunk(&mut |case| case.fault(&mut |_| ()).is_some_and(|said| words(&said) == kind));
                println!(
                    "{}again: cargo run --release -p headstart-sim --example fuzz -- --seed {seed} --cases 1",
                    small.text()
                );
                result = ExitCode::FAILURE;
                break;
            }
        }
    }
    let took = seeds.seconds();
    println!(
        "from seed {first}: {ran} cases ran with {references} references, {refused} were refused in a line, {took} s"
    );
    drop(std::fs::remove_dir_all(&folder));
    result
}

/// A message without its numbers, which identifies a fault.
fn words(said: &str) -> String {
    said.chars().filter(|letter| !letter.is_ascii_digit()).collect()
}
