//! One case of the whole-system fuzzer: a scenario and its trace. It is refused in one line, or it runs, is checked
//! after every step, and its counts add up. A failing case is shrunk.

use std::fs;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::path::{Path, PathBuf};

use headstart_sim::{checked, lower_bound, Error, Machine, Report, Scenario};
use toml::{Table, Value};

use crate::drawn;

/// Number of progress reports after which a run counts as endless: each stands for thousands of steps, and no trace
/// drawn here has more than a hundred requests.
const REPORTS_MAX: u32 = 200;

/// Maximum number of attempts to shrink a case.
const ATTEMPTS_MAX: u32 = 3_000;

/// A scenario, its trace, and the trace's file.
#[derive(Clone)]
pub struct Case {
    /// As in a file.
    pub scenario: Table,
    /// The lines of the trace; empty if it reads none.
    pub trace: Vec<String>,
    file: PathBuf,
}

/// Changes a machine after each step: only used in tests of the fuzzer itself.
pub type Meddle<'a> = &'a mut dyn FnMut(&mut Machine);

/// The outcome of a case.
pub enum Outcome {
    /// It has run.
    Ran(Box<Report>),
    /// It was refused, in one line.
    Refused,
}

impl Case {
    /// The case of a seed, with its trace in `folder`.
    pub fn drawn(seed: u64, folder: &Path) -> Self {
        let file = folder.join("drawn.csv");
        let drawn = drawn::scenario(seed, &file.display().to_string());
        let trace = drawn.trace.map(|text| text.lines().map(str::to_owned).collect());
        Self { scenario: drawn.text.parse().expect("it has been a table"), trace: trace.unwrap_or_default(), file }
    }

    /// The scenario; writes the trace.
    pub fn scenario(&self) -> Result<Scenario, Error> {
        if !self.trace.is_empty() {
            // Some file systems write what replaces the content of a file to the disk at once, and the caller waits.
            drop(fs::remove_file(&self.file));
            fs::write(&self.file, self.trace.join("\n") + "\n").expect("the folder can be written");
        }
        Ok(Scenario::from_table(self.scenario.clone())?)
    }

    /// Runs the case.
    ///
    /// # Panics
    /// If an invariant does not hold, an error is not one line, or a run does not end.
    pub fn run(&self, meddle: Meddle<'_>) -> Outcome {
        match self.scenario().and_then(|scenario| looked_at(&scenario, meddle).map(|report| (scenario, report))) {
            Ok((scenario, report)) => {
                adds_up(&report);
                keeps_its_bound(&scenario, &report);
                Outcome::Ran(Box::new(report))
            }
            Err(error) => {
                let said = error.to_string();
                assert!(!said.is_empty() && said.lines().count() == 1, "{said:?} is no line");
                assert!(!said.contains("internal"), "{said}");
                Outcome::Refused
            }
        }
    }

    /// The failure of the case, if any.
    pub fn fault(&self, meddle: Meddle<'_>) -> Option<String> {
        let payload = catch_unwind(AssertUnwindSafe(|| drop(self.run(meddle)))).err()?;
        let text = payload.downcast_ref::<String>().map(String::as_str).or(payload.downcast_ref::<&str>().copied());
        Some(text.unwrap_or("a panic").to_owned())
    }

    /// A minimal case that `fails` too.
    pub fn shrunk(self, fails: &mut dyn FnMut(&Case) -> bool) -> Self {
        let mut best = self;
        let mut attempts = 0;
        loop {
            let smaller = best.smaller().find(|case| {
                attempts += 1;
                attempts < ATTEMPTS_MAX && fails(case)
            });
            match smaller {
                Some(case) => best = case,
                None => return best,
            }
        }
    }

    /// Cases that lack something: large parts of the trace first, then small ones, then each key.
    fn smaller(&self) -> impl Iterator<Item = Case> + '_ {
        let lines = self.trace.len();
        let parts =
            std::iter::successors(Some(lines / 2), |part| (*part > 1).then_some(part / 2)).filter(|part| *part > 0);
        let without_lines =
            parts.flat_map(move |part| (0..lines).step_by(part).map(move |at| at..(at + part).min(lines)));
        let without_lines = without_lines.filter(move |cut| cut.len() < lines).map(|cut| {
            let mut case = self.clone();
            case.trace.drain(cut);
            case
        });
        let mut paths = Vec::new();
        paths_of(&Value::Table(self.scenario.clone()), &mut Vec::new(), &mut paths);
        let without_keys = paths.into_iter().map(|path| {
            let mut case = self.clone();
            let mut scenario = Value::Table(case.scenario);
            remove(&mut scenario, &path);
            case.scenario = scenario.try_into().expect("it is a table");
            case
        });
        without_lines.chain(without_keys)
    }

    /// The case as files: the scenario and, in comments after it, its trace.
    pub fn text(&self) -> String {
        let trace: String = self.trace.iter().map(|line| format!("# {line}\n")).collect();
        format!("{}\n# the trace:\n{trace}", self.scenario)
    }
}

/// The paths of all keys and list items, tables before their contents.
fn paths_of(value: &Value, at: &mut Vec<String>, paths: &mut Vec<Vec<String>>) {
    let children: Vec<(String, &Value)> = match value {
        Value::Table(table) => table.iter().map(|(key, value)| (key.clone(), value)).collect(),
        Value::Array(list) => list.iter().enumerate().map(|(at, value)| (at.to_string(), value)).collect(),
        _ => return,
    };
    for (name, child) in children {
        at.push(name);
        paths.push(at.clone());
        paths_of(child, at, paths);
        at.pop();
    }
}

fn remove(value: &mut Value, path: &[String]) {
    let [name, rest @ ..] = path else { return };
    match value {
        Value::Table(table) if rest.is_empty() => drop(table.remove(name)),
        Value::Array(list) if rest.is_empty() => drop(list.remove(name.parse().expect("an index"))),
        Value::Table(table) => remove(&mut table[name], rest),
        Value::Array(list) => remove(&mut list[name.parse::<usize>().expect("an index")], rest),
        _ => {}
    }
}

/// Stops endless runs.
pub fn patience() -> impl FnMut(headstart_sim::Progress) -> bool {
    let mut reports = 0;
    move |_| {
        reports += 1;
        assert!(reports < REPORTS_MAX, "the run does not end");
        true
    }
}

/// A run that is checked after every step.
pub fn looked_at(scenario: &Scenario, meddle: Meddle<'_>) -> Result<Report, Error> {
    checked(scenario, &mut patience(), meddle)
}

/// The laws of every run.
pub fn adds_up(report: &Report) {
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
    assert_eq!(whole, parts + report.idle_ns, "times of processes are the sum of their parts");
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

/// No run takes less than the lower bound, if there is one.
fn keeps_its_bound(scenario: &Scenario, report: &Report) {
    if let Ok(bound) = lower_bound(scenario) {
        let elapsed = report.elapsed_ns;
        assert!(bound.elapsed_ns.0 <= elapsed, "{elapsed} ns are less than the lower bound, {}", bound.elapsed_ns);
    }
}
