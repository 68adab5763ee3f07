//! Scenario files and trace files drawn at random, with any of the keys there are: each is refused in one line or runs
//! to its end, and what it counts adds up. Nothing panics, nothing runs for ever.
//!
//! `HEADSTART_RANDOM=1000000` runs so many; `HEADSTART_RANDOM_SEED=N` begins at seed N, and runs that one alone if no
//! number is given. A failure names its seed, and shows the scenario and its trace. `HEADSTART_RANDOM_WRITE=FOLDER` writes
//! the files to a folder and runs none: for other programs.

mod drawn;

use std::fs;
use std::path::{Path, PathBuf};

use headstart_sim::{simulate, Error, Report, Scenario, Source};

/// Scenarios of a quick run.
const COUNT: u64 = 6_000;

/// One of so many is run again: from its file, and with every default written out.
const AGAIN: u64 = 16;

/// Accepted scenarios of a hundred, at least: what is refused tests little.
const ACCEPTED_MIN: u64 = 45;

/// Reports of progress after which a run counts as endless: each stands for thousands of steps, and no trace drawn here
/// has more than a hundred requests.
const REPORTS_MAX: u32 = 200;

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable}: {text:?} is no number")))
}

/// Where the files of a scenario are while it runs; says on a panic what it was.
struct Files {
    seed: u64,
    scenario: PathBuf,
    drawn: drawn::Drawn,
}

impl Files {
    fn new(folder: &Path, name: &str, seed: u64, write_all: bool) -> Self {
        let trace = folder.join(format!("{name}.csv"));
        let drawn = drawn::scenario(seed, &trace.display().to_string());
        let scenario = folder.join(format!("{name}.toml"));
        if seed % AGAIN == 0 || write_all {
            fs::write(&scenario, &drawn.text).expect("the folder can be written");
        }
        if let Some(text) = &drawn.trace {
            fs::write(trace, text).expect("the folder can be written");
        }
        Self { seed, scenario, drawn }
    }

    /// As from the file.
    fn run(&self) -> Result<Report, Error> {
        run(&Scenario::from_table(self.drawn.text.parse().expect("it has been a table"))?)
    }

    fn run_file(&self) -> Result<Report, Error> {
        run(&Scenario::read(&Source::File(self.scenario.clone()), &[])?)
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let trace = self.drawn.trace.as_deref().unwrap_or("none\n");
            eprintln!("HEADSTART_RANDOM_SEED={}\n{}\ntrace:\n{trace}", self.seed, self.drawn.text);
        }
    }
}

fn run(scenario: &Scenario) -> Result<Report, Error> {
    let mut reports = 0;
    simulate(scenario, &mut |_| {
        reports += 1;
        assert!(reports < REPORTS_MAX, "the run does not end");
        true
    })
}

/// What holds of every run.
fn adds_up(report: &Report) {
    let counts = &report.counts;
    assert_eq!(counts.references, counts.hits_ready + counts.hits_unready + counts.misses);
    for counts in std::iter::once(counts).chain(report.levels.iter().map(|level| &level.counts)) {
        assert_eq!(counts.references, counts.hits_ready + counts.hits_unready + counts.misses);
        assert_eq!(counts.fetches, counts.demand_fetches + counts.prefetches);
        assert_eq!(counts.prefetches, counts.prefetches_used + counts.prefetches_wasted);
        assert!(counts.prefetches_late <= counts.prefetches_used);
        assert!(counts.demand_fetches + counts.write_misses <= counts.misses);
        assert!(counts.write_misses <= counts.writes && counts.writes <= counts.references);
    }
    let parts = report.compute_ns + report.driver_ns + report.overhead_ns + report.stall_ns + report.barrier_ns;
    let whole: u64 = report.processes.iter().map(|process| process.elapsed_ns).sum();
    assert_eq!(whole, parts + report.idle_ns);
    for process in &report.processes {
        let busy = process.compute_ns + process.driver_ns + process.overhead_ns;
        assert_eq!(process.elapsed_ns, busy + process.stall_ns + process.barrier_ns + process.idle_ns);
        assert!(process.elapsed_ns <= report.elapsed_ns);
    }
    assert!(report.devices.iter().all(|device| device.busy_ns <= report.elapsed_ns));
    let response = &report.response_ns;
    assert!(response.p50 <= response.p90 && response.p90 <= response.p99 && response.p99 <= response.max);
    assert!(report.requests <= counts.references);
}

fn json(report: &Report) -> String {
    serde_json::to_string(report).expect("plain values")
}

/// Every default written out is the same scenario.
fn resolved_is_the_same(report: &Report) {
    let text = report.scenario.to_string();
    let table = text.parse().expect("it has been a table");
    let scenario = Scenario::from_table(table).unwrap_or_else(|error| panic!("{error} in the resolved\n{text}"));
    let mut again = run(&scenario).unwrap_or_else(|error| panic!("{error} of the resolved\n{text}"));
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
        seeds.for_each(|seed| drop(Files::new(Path::new(&folder), &seed.to_string(), seed, true)));
        return;
    }
    let folder = std::env::temp_dir().join(format!("headstart-random-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("the temporary folder can be written");
    let mut accepted = 0;
    for seed in seeds {
        let files = Files::new(&folder, "drawn", seed, false);
        match files.run() {
            Ok(report) => {
                accepted += 1;
                adds_up(&report);
                if seed % AGAIN == 0 {
                    assert_eq!(json(&report), json(&files.run_file().expect("it has just run")), "the same again");
                    resolved_is_the_same(&report);
                }
            }
            Err(error) => {
                let said = error.to_string();
                assert!(!said.is_empty() && said.lines().count() == 1, "{said:?} is no line");
                assert!(!said.contains("internal"), "{said}");
            }
        }
    }
    fs::remove_dir_all(&folder).expect("it is ours");
    println!("{accepted} scenarios were accepted and ran, {} were refused in a line", count - accepted);
    let enough = accepted * 100 >= ACCEPTED_MIN * count;
    assert!(count < 1_000 || enough, "only {accepted} of {count} scenarios were accepted");
}
