//! Scenario files and trace files drawn at random, with any keys: each is refused in one line or runs to its end, the
//! invariants are checked after every step, and its counts add up. Nothing panics, and every run ends.
//!
//! `HEADSTART_RANDOM=1000000` sets the number of runs; `HEADSTART_RANDOM_SEED=N` begins at seed N, and runs only that
//! one if no number is given. A failure prints its seed, the scenario and its trace; `make fuzz-system` also shrinks
//! them. `HEADSTART_RANDOM_WRITE=FOLDER` writes the files to a folder without running them, for other programs.

use std::fs;
use std::path::{Path, PathBuf};

use headstart_engine::Sabotage;
use headstart_sim::{simulate, Error, Report, Scenario, Source};

use crate::case::{patience, Case, Outcome};
use crate::drawn;

/// Scenarios of a quick run.
const COUNT: u64 = 3_000;

/// One of this many is run again: from its file, and with every default written out.
const AGAIN: u64 = 16;

/// Minimum number of accepted scenarios in a hundred: refused ones test little.
const ACCEPTED_MIN: u64 = 45;

/// Number of cases within which each planted fault is found.
const FOUND_WITHIN: u64 = 300;

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable}: {text:?} is no number")))
}

/// A separate folder for this process.
fn scratch(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("headstart-{name}-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("the temporary folder can be written");
    folder
}

/// Prints the current case on a panic.
struct Shown<'a>(u64, &'a Case);

impl Drop for Shown<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("HEADSTART_RANDOM_SEED={}\n{}", self.0, self.1.text());
        }
    }
}

/// A run as users have it.
fn plain(scenario: &Scenario) -> Result<Report, Error> {
    simulate(scenario, &mut patience())
}

fn json(report: &Report) -> String {
    serde_json::to_string(report).expect("plain values")
}

/// The scenario with every default written out gives the same result.
fn resolved_is_the_same(report: &Report) {
    let text = report.scenario.to_string();
    let table = text.parse().expect("it has been a table");
    let scenario = Scenario::from_table(table).unwrap_or_else(|error| panic!("{error} in the resolved\n{text}"));
    let mut again = plain(&scenario).unwrap_or_else(|error| panic!("{error} of the resolved\n{text}"));
    again.scenario.clone_from(&report.scenario);
    again.trace_sha256.clone_from(&report.trace_sha256);
    assert_eq!(json(report), json(&again), "the resolved\n{text}");
}

#[test]
fn each_is_refused_in_a_line_or_adds_up() {
    let first = number("HEADSTART_RANDOM_SEED");
    let count = number("HEADSTART_RANDOM").unwrap_or(if first.is_some() { 1 } else { COUNT });
    let seeds = first.unwrap_or(0)..first.unwrap_or(0) + count;
    if let Some(folder) = std::env::var_os("HEADSTART_RANDOM_WRITE") {
        let folder = Path::new(&folder);
        for seed in seeds {
            let drawn = drawn::scenario(seed, &folder.join(format!("{seed}.csv")).display().to_string());
            fs::write(folder.join(format!("{seed}.toml")), &drawn.text).expect("the folder can be written");
            if let Some(trace) = drawn.trace {
                fs::write(folder.join(format!("{seed}.csv")), trace).expect("the folder can be written");
            }
        }
        return;
    }
    let folder = scratch("random");
    let mut accepted = 0;
    for seed in seeds {
        let case = Case::drawn(seed, &folder);
        let _shown = Shown(seed, &case);
        let Outcome::Ran(report) = case.run(&mut |_| ()) else { continue };
        accepted += 1;
        if seed % 4 == 0 {
            // Checking has no effect, although a single process then takes another code path.
            let again = plain(&case.scenario().expect("it has just run")).expect("it has just run");
            assert_eq!(json(&report), json(&again), "the same, not looked at");
        }
        if seed % AGAIN == 0 {
            let file = folder.join("drawn.toml");
            fs::write(&file, case.scenario.to_string()).expect("the folder can be written");
            let read = Scenario::read(&Source::File(file), &[]).expect("it has just run");
            assert_eq!(json(&report), json(&plain(&read).expect("it has just run")), "the same again");
            resolved_is_the_same(&report);
        }
    }
    fs::remove_dir_all(&folder).expect("it is ours");
    println!("{accepted} scenarios were accepted and ran, {} were refused in a line", count - accepted);
    let enough = accepted * 100 >= ACCEPTED_MIN * count;
    assert!(count < 1_000 || enough, "only {accepted} of {count} scenarios were accepted");
}

/// The failure of a case with a fault planted after its third step, or as soon as possible afterwards.
fn planted(case: &Case, sabotage: Sabotage) -> Option<String> {
    let (mut steps, mut is_planted) = (0, false);
    let fault = case.fault(&mut |machine| {
        steps += 1;
        is_planted = is_planted || (steps >= 3 && machine.plant(sabotage));
    });
    fault.filter(|_| is_planted)
}

/// A case is shrunk without regard to what fails in it, so two of the faults show it; all are shrunk if a number of
/// runs is given.
#[test]
fn each_planted_fault_is_found_and_shrunk() {
    let folder = scratch("planted");
    let shrinks_all = number("HEADSTART_RANDOM").is_some();
    for sabotage in Sabotage::ALL {
        let found = (0..FOUND_WITHIN).map(|seed| Case::drawn(seed, &folder)).find_map(|case| {
            let said = planted(&case, sabotage)?;
            Some((case, said))
        });
        let (case, said) = found.unwrap_or_else(|| panic!("{sabotage:?} is not found in {FOUND_WITHIN} cases"));
        if !shrinks_all && ![Sabotage::FreesTwice, Sabotage::LosesTime].contains(&sabotage) {
            continue;
        }
        let size = case.text().len();
        let small = case.shrunk(&mut |case| planted(case, sabotage).is_some());
        assert!(planted(&small, sabotage).is_some() && small.text().len() <= size, "{sabotage:?}: {said}");
    }
    fs::remove_dir_all(&folder).expect("it is ours");
}
