//! The whole-system fuzzer: any topology, policies, devices, traces, writes, barriers, hints and coordinators, drawn from
//! seeds. After every step of every run it checks what must hold; the first case that breaks it is shrunk and printed.
//!
//!     make fuzz-system SECONDS=3600
//!     cargo run --release -p headstart-sim --example fuzz -- --seed 7 --cases 1

#[path = "../tests/all/case/mod.rs"]
mod case;
#[path = "../tests/all/drawn/mod.rs"]
mod drawn;

use std::panic;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use case::{Case, Outcome};

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

#[expect(clippy::disallowed_methods, reason = "it says how long to go on, and decides nothing in a run")]
fn main() -> ExitCode {
    let Some([seed, cases, seconds]) = arguments() else {
        eprintln!("usage: {USAGE}");
        return ExitCode::from(2);
    };
    let started = Instant::now();
    let patience = Duration::from_secs(seconds.unwrap_or(if cases.is_some() { u64::MAX } else { 60 }));
    let first = seed.unwrap_or(0);
    let folder = std::env::temp_dir().join(format!("headstart-fuzz-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("the temporary folder can be written");
    panic::set_hook(Box::new(|_| ()));
    let (mut ran, mut references, mut refused) = (0u64, 0u64, 0u64);
    let mut result = ExitCode::SUCCESS;
    for seed in first..first.saturating_add(cases.unwrap_or(u64::MAX - first)) {
        if started.elapsed() > patience {
            break;
        }
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
    let took = started.elapsed().as_secs();
    println!(
        "from seed {first}: {ran} cases ran with {references} references, {refused} were refused in a line, {took} s"
    );
    drop(std::fs::remove_dir_all(&folder));
    result
}

/// A message without its numbers: what tells faults apart.
fn words(said: &str) -> String {
    said.chars().filter(|letter| !letter.is_ascii_digit()).collect()
}
