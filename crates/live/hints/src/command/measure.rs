//! `--measure N`: runs the command N times plain and N times under `headstart run`, each with empty caches, and
//! compares them.
//!
//! Times cover the whole command line, including the start and end of `headstart run`. Plain and helped runs come in
//! pairs, in random order, so that other load on the machine affects both alike. The range of the ratio is the 95 %
//! confidence interval of the median of the pairs: the N sorted ratios between which the median lies, from the binomial
//! distribution alone (the sign test).

use std::env;
use std::ffi::OsString;
use std::io::{self, Write};
use std::process::{Command, Stdio};

use headstart_types::KeyError;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::Serialize;

use super::super::store::{Slot, Store};
use super::super::system::begin;
use super::super::{Error, Status};
use super::options::{Kind, Line, OPTIONS};
use super::{outputs, say, Problem};
use crate::record::drop_caches;

const RUNS_MAX: usize = 10_000;
/// Seed for the order of the pairs.
const SEED: u64 = 37;
/// The probability that the median lies outside its range.
const DOUBT: f64 = 0.05;
/// Options of the measurement, not of the run.
const OWN: [&str; 6] = ["--measure", "--report", "--openmetrics", "--cold", "--forget", "--verbose"];
/// Prefix of the line that says why a command is not helped.
pub const ALONE: &str = "left alone: ";

/// The times of plain or helped runs.
#[derive(Debug, Serialize)]
struct Times {
    median_ns: u64,
    min_ns: u64,
    max_ns: u64,
    /// In the order of measurement.
    elapsed_ns: Vec<u64>,
}

/// The content of `--report`.
#[derive(Debug, Serialize)]
struct Measured {
    command: Vec<String>,
    plain: Times,
    run: Times,
    /// Helped time as a share of plain time: the median of the pairs, and its range if there are enough pairs.
    ratio: f64,
    ratio_range: Option<[f64; 2]>,
    verdict: &'static str,
    /// Why the command is not helped, if it is not.
    left_alone: Option<String>,
}

/// Measures the command of `line` `runs` times.
///
/// # Errors
/// An invalid option, caches that may not be dropped, or a command that cannot be started.
pub fn measure(line: &Line, runs: &str) -> Result<Status, Problem> {
    let count = runs.parse().ok().filter(|count| (1..=RUNS_MAX).contains(count));
    let wrong = || KeyError::new("--measure", format!("\"{runs}\""), format!("a number of runs from 1 to {RUNS_MAX}"));
    let count: usize = count.ok_or_else(wrong)?;
    if line.has("--openmetrics") {
        return Err(KeyError::new("--openmetrics", "cannot be combined with --measure", "--report").into());
    }
    drop_caches()?;
    let ours = ours(line)?;
    if line.value("--hints").is_none() && (line.has("--forget") || !is_recorded(line)) {
        say("headstart run: recording the command first");
        let forget = OsString::from("--forget");
        cold(&[&ours[..], &[forget, "--".into()], &line.command].concat(), false)?;
    }
    let run = [&ours[..], &["--".into()], &line.command].concat();
    // The notes come from one extra run, which does not count.
    let said = cold(&[&ours[..], &["-v".into(), "--".into()], &line.command].concat(), true)?.2;
    let left_alone = said.lines().find_map(|line| Some(line.split_once(ALONE)?.1.to_owned()));
    let mut random = ChaCha8Rng::seed_from_u64(SEED);
    let (mut plain_ns, mut run_ns, mut statuses) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..count {
        let first = random.random::<bool>();
        for is_run in [first, !first] {
            let (elapsed_ns, status, _) = cold(if is_run { &run } else { &line.command }, false)?;
            if is_run { &mut run_ns } else { &mut plain_ns }.push(elapsed_ns);
            statuses.push(status);
        }
    }
    if statuses.iter().any(|status| *status != 0) {
        statuses.sort_unstable();
        statuses.dedup();
        say(&format!("headstart run: the command ended with status {statuses:?}"));
    }
    let command = line.command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let measured = Measured::of(command, plain_ns, run_ns, left_alone);
    let report = line.value("--report");
    if let Some(target) = report {
        outputs::write(target, &(serde_json::to_string(&measured).expect("numbers and texts") + "\n"))?;
    }
    let lines = measured.lines();
    match report.is_some_and(|target| target == "-") {
        true => drop(io::stderr().write_all(lines.as_bytes())),
        false => drop(io::stdout().write_all(lines.as_bytes())),
    }
    Ok(Status::Code(0))
}

/// The start of a command line of this program, with the options of the run.
fn ours(line: &Line) -> Result<Vec<OsString>, Problem> {
    let program = env::current_exe().map_err(|source| Error::Wait { source })?;
    let is_launcher = program.file_name().is_some_and(|name| name.to_string_lossy().starts_with("headstart-run"));
    let mut words = vec![program.into_os_string()];
    if !is_launcher {
        words.extend(["-m", "headstart", "run"].map(OsString::from));
    }
    for row in OPTIONS.iter().filter(|row| !OWN.contains(&row.name)) {
        for value in line.all(row.name) {
            words.push(row.name.into());
            words.extend((row.kind != Kind::Flag).then(|| value.clone()));
        }
    }
    Ok(words)
}

fn is_recorded(line: &Line) -> bool {
    let slot = Store::of_user().ok().and_then(|store| Slot::of(&store, &line.command));
    slot.is_some_and(|slot| slot.recorded().is_ok_and(|recorded| recorded.is_some()))
}

/// Runs these words with empty caches and no output. Returns the time, the exit status, and stderr if `listens`.
fn cold(words: &[OsString], listens: bool) -> Result<(u64, i32, String), Problem> {
    drop_caches()?;
    let stderr = if listens { Stdio::piped() } else { Stdio::null() };
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(stderr);
    let program = words[0].to_string_lossy().into_owned();
    let begun = begin();
    let done = command
        .spawn()
        .and_then(|child| child.wait_with_output())
        .map_err(|source| Error::Start { program, source })?;
    let elapsed_ns = begun.elapsed().as_nanos() as u64;
    use std::os::unix::process::ExitStatusExt;
    let status = done.status.code().unwrap_or_else(|| 128 + done.status.signal().unwrap_or(0));
    Ok((elapsed_ns, status, String::from_utf8_lossy(&done.stderr).into_owned()))
}

impl Times {
    fn of(elapsed_ns: Vec<u64>) -> Self {
        let mut sorted = elapsed_ns.clone();
        sorted.sort_unstable();
        Self { median_ns: median(&sorted), min_ns: sorted[0], max_ns: sorted[sorted.len() - 1], elapsed_ns }
    }
}

impl Measured {
    fn of(command: Vec<String>, plain_ns: Vec<u64>, run_ns: Vec<u64>, left_alone: Option<String>) -> Self {
        let pairs = plain_ns.iter().zip(&run_ns);
        let mut ratios: Vec<f64> = pairs.map(|(plain, run)| *run as f64 / (*plain).max(1) as f64).collect();
        ratios.sort_unstable_by(f64::total_cmp);
        let ratio_range = outer(ratios.len()).map(|left_out| [ratios[left_out], ratios[ratios.len() - 1 - left_out]]);
        let verdict = match ratio_range {
            None => "too few runs to tell",
            Some([_, high]) if high < 1.0 => "faster",
            Some([low, _]) if low > 1.0 => "slower",
            Some(_) => "no difference",
        };
        let ratio = middle(&ratios);
        Self { command, plain: Times::of(plain_ns), run: Times::of(run_ns), ratio, ratio_range, verdict, left_alone }
    }

    fn lines(&self) -> String {
        let of = |name: &str, times: &Times| {
            let [median, min, max] = [times.median_ns, times.min_ns, times.max_ns].map(shown);
            format!("{name:<5} {median} in the median of {} cold runs ({min} to {max})\n", times.elapsed_ns.len())
        };
        let range = self.ratio_range.map_or_else(String::new, |[low, high]| format!(" ({low:.2} to {high:.2})"));
        let alone = self.left_alone.as_ref().map_or_else(String::new, |why| format!("; {ALONE}{why}"));
        let verdict = format!("run takes {:.2} of plain{range}: {}{alone}\n", self.ratio, self.verdict);
        of("plain", &self.plain) + &of("run", &self.run) + &verdict
    }
}

/// How many of `count` sorted values lie outside the range of the median on each side; `None` if there are too few
/// values.
fn outer(count: usize) -> Option<usize> {
    let mut term = 0.5f64.powi(i32::try_from(count).ok()?);
    let (mut below, mut left_out) = (term, None);
    for at in 0..count / 2 {
        if below > DOUBT / 2.0 {
            break;
        }
        left_out = Some(at);
        term *= (count - at) as f64 / (at + 1) as f64;
        below += term;
    }
    left_out
}

fn middle(sorted: &[f64]) -> f64 {
    let at = sorted.len() / 2;
    if sorted.len() % 2 == 1 {
        sorted[at]
    } else {
        (sorted[at - 1] + sorted[at]) / 2.0
    }
}

fn median(sorted: &[u64]) -> u64 {
    middle(&sorted.iter().map(|each| *each as f64).collect::<Vec<_>>()) as u64
}

fn shown(ns: u64) -> String {
    let seconds = ns as f64 / 1e9;
    if seconds < 1.0 {
        format!("{:.1} ms", seconds * 1e3)
    } else {
        format!("{seconds:.3} s")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_range_of_a_median_by_hand() {
        // Five pairs are all faster by chance once in 16, both ways; six once in 32. Of eleven the second largest of
        // the sums of binomial coefficients is (1 + 11) / 2048, the next (1 + 11 + 55) / 2048 = 0.033.
        assert_eq!([1, 5, 6, 8, 9, 11, 12].map(outer), [None, None, Some(0), Some(0), Some(1), Some(1), Some(2)]);
    }

    #[test]
    fn verdicts_are_by_pairs() {
        let of = |run: &[u64]| {
            let plain: Vec<u64> = (1..).map(|at| at * 100).take(run.len()).collect();
            Measured::of(vec!["x".to_owned()], plain, run.to_vec(), None)
        };
        // Times differ more between pairs than within a pair.
        let faster = of(&[90, 190, 290, 390, 490, 590]);
        assert_eq!((faster.verdict, faster.plain.median_ns, faster.run.median_ns), ("faster", 350, 340));
        assert_eq!(of(&[110, 210, 310, 410, 510, 610]).verdict, "slower");
        assert_eq!(of(&[90, 190, 290, 390, 490, 601]).verdict, "no difference");
        assert_eq!(of(&[90, 190, 290]).verdict, "too few runs to tell");
        assert_eq!(
            of(&[50_000_000, 2_000_000_000]).lines(),
            "plain 0.0 ms in the median of 2 cold runs (0.0 ms to 0.0 ms)\n\
             run   1.025 s in the median of 2 cold runs (50.0 ms to 2.000 s)\n\
             run takes 5250000.00 of plain: too few runs to tell\n"
        );
    }
}
