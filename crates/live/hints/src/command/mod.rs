//! The whole command `headstart run`: options, the store, the report, and the exit status, which is the command's. Both
//! the program `headstart-run` and the Python module call it.
//!
//! - `options.rs`: the table of options, and parsing; `outputs.rs`: where the report goes; `measure.rs`: what a run
//!   saves.

mod measure;
mod options;
mod outputs;

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use headstart_device::build_device;
use headstart_policy::registry::{PolicyRow, POLICIES};
use headstart_trace::hints::Recording;
use headstart_types::{printable, Bytes, KeyError};
use toml::{Table, Value};

use super::run::{check, facts_of, run_whole, Finished, Settings};
use super::store::{self, Slot, Store};
use super::worth::why_alone;
use super::{Error, HintList, Report, Status, PAGE_BYTES};
use crate::record::{self, Summary};
use headstart_host::tracefs::sweep_beside;
use headstart_host::Roots;

use options::Line;
pub use options::{Kind, OptionRow, COMMAND, OPTIONS};

/// The default policy.
pub const POLICY: &str = "just-in-time";
/// Exit statuses: a user's mistake; an internal fault; and, as in a shell, a command that cannot be run and one that
/// does not exist.
const MISTAKE: i32 = 2;
const FAULT: i32 = 70;
const NOT_STARTED: i32 = 126;
const NOT_FOUND: i32 = 127;
/// Maximum time for which a command is recorded: a service does not end.
const RECORD_MAX: Duration = Duration::from_secs(120);
/// Maximum time for which file systems are searched for files that the kernel does not name: the user waits for this,
/// once.
const WALK_MAX: Duration = Duration::from_secs(1);

/// A message for the user, and the exit status.
struct Problem(String, i32);

impl From<String> for Problem {
    fn from(line: String) -> Self {
        Self(line, MISTAKE)
    }
}

impl From<KeyError> for Problem {
    fn from(error: KeyError) -> Self {
        error.to_string().into()
    }
}

impl From<headstart_host::PathError> for Problem {
    fn from(error: headstart_host::PathError) -> Self {
        error.to_string().into()
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        let status = match &error {
            Error::Start { .. } if error.is_missing() => NOT_FOUND,
            Error::Start { .. } => NOT_STARTED,
            Error::Wait { .. } => FAULT,
            _ => MISTAKE,
        };
        Self(error.to_string(), status)
    }
}

/// The hinted policy of this name.
///
/// # Errors
/// There is none.
pub fn hinted_policy(name: &str) -> Result<&'static PolicyRow, KeyError> {
    let hinted = || POLICIES.iter().copied().filter(|row| row.is_hinted());
    let unknown = || KeyError::unknown("policy", "hinted policy", name, hinted().map(|row| row.name));
    hinted().find(|row| row.name == name).ok_or_else(unknown)
}

/// Runs `words`, which follow `headstart run`. Messages go to stderr; returns how this process must end.
///
/// A command that is not helped, recorded or reported on replaces this process.
#[must_use]
pub fn main(words: &[OsString]) -> Status {
    attempt(words).unwrap_or_else(|Problem(line, status)| {
        say(&line);
        Status::Code(status)
    })
}

/// Ends this process in the same way as the command ended.
#[allow(unsafe_code)]
pub fn end(status: Status) -> ! {
    if let Status::Signal(signal) = status {
        // SAFETY: no memory of ours is involved but `limit`, which lives.
        unsafe {
            // The command has dumped core already, if it had to.
            let mut limit = std::mem::zeroed();
            libc::getrlimit(libc::RLIMIT_CORE, &raw mut limit);
            libc::setrlimit(libc::RLIMIT_CORE, &libc::rlimit { rlim_cur: 0, ..limit });
            libc::signal(signal, libc::SIG_DFL);
            libc::kill(libc::getpid(), signal);
        }
    }
    std::process::exit(status.shell_code())
}

/// Prints a line to stderr.
pub fn say(line: &str) {
    let line = if line.starts_with("headstart run: ") { line.to_owned() } else { format!("headstart: {line}") };
    let _ = writeln!(io::stderr(), "{}", printable(&line));
}

fn attempt(words: &[OsString]) -> Result<Status, Problem> {
    let line = Line::parse(words)?;
    if line.help {
        let _ = io::stdout().write_all(options::help().as_bytes());
        return Ok(Status::Code(0));
    }
    let outputs = ["--report", "--openmetrics"];
    for (name, stdout) in outputs.into_iter().zip([true, false]) {
        line.value(name).map(|target| outputs::check_target(target, stdout)).transpose()?;
    }
    outputs::check_distinct(&["--hints", outputs[0], outputs[1]].map(|name| (name, line.value(name))))?;
    let settings = settings(&line)?;
    check(&settings)?;
    if let Some(runs) = line.text("--measure")? {
        return measure::measure(&line, runs);
    }
    if line.has("--cold") {
        record::drop_caches()?;
    }
    let finished = match line.value("--hints") {
        Some(_) if line.has("--forget") => {
            let problem = "cannot be combined with --hints";
            return Err(KeyError::new("--forget", problem, "one of the two").into());
        }
        Some(hints) => helped(&line, settings, read(hints.as_ref()).map_err(Error::Hints)?)?,
        None => stored(&line, settings)?,
    };
    for (name, text) in outputs.into_iter().zip([json, Report::to_openmetrics]) {
        // The exit status is the command's even if this fails.
        let written = line.value(name).map(|target| outputs::write(target, &text(&finished.report))).transpose();
        written.err().into_iter().for_each(|problem| say(&problem.to_string()));
    }
    if line.has("--verbose") {
        said(&finished.report).iter().for_each(|line| say(line));
    }
    Ok(finished.status)
}

/// The output of `-v`: one line, and notes.
fn said(report: &Report) -> Vec<String> {
    let took = format!("{:.2} s", report.elapsed_ns as f64 / 1e9);
    let mut notes = report.notes.clone();
    let first = match &report.stopped {
        Some(why) if why.starts_with(measure::ALONE) => format!("{took}, {why}"),
        _ if report.hinted_bytes > 0 => report.line(),
        _ if notes.is_empty() => took,
        _ => format!("{took}, {}", notes.remove(0)),
    };
    [vec![first], notes].concat()
}

fn json(report: &Report) -> String {
    serde_json::to_string(report).expect("numbers and texts") + "\n"
}

fn settings(line: &Line) -> Result<Settings, Problem> {
    let roots = Roots::of_machine();
    let budget = line.text("--budget")?.map(str::parse::<Bytes>).transpose();
    let budget = budget.map_err(|problem| KeyError::new("budget", problem, Bytes::ALLOWED))?;
    let device = line.text("--device")?.map(|name| build_device(name, Table::new())).transpose();
    let arm = device.map_err(|problem| problem.to_string())?.map(|device| device.drive_facts().is_some());
    Ok(Settings {
        command: line.command.clone(),
        list: HintList::default(),
        row: hinted_policy(line.text("--policy")?.unwrap_or(POLICY))?,
        keys: keys(line.all("--set"))?,
        budget_bytes: budget.map_or(0, |bytes| bytes.0.max(1)),
        trusted: line.has("--trust"),
        arm,
        roots,
    })
}

/// The keys of "a.b=value" settings, nested.
fn keys(settings: &[OsString]) -> Result<Table, Problem> {
    let mut keys = Table::new();
    for setting in settings {
        let setting = options::text("--set", setting)?;
        let (path, value) = setting.split_once('=').unwrap_or((setting, ""));
        let (mut path, value): (Vec<_>, _) = (path.split('.').map(str::trim).collect(), value.trim());
        if value.is_empty() || path.iter().any(|part| part.is_empty()) {
            return Err(format!("--set: \"{setting}\"; allowed: key=value, or table.key=value").into());
        }
        // A bare word is a string.
        let read = format!("value = {value}").parse::<Table>().ok().and_then(|mut read| read.remove("value"));
        let last = path.pop().unwrap_or_default();
        let mut table = &mut keys;
        for part in path {
            let inner = table.entry(part).or_insert_with(|| Value::Table(Table::new())).as_table_mut();
            let taken = || format!("--set: \"{setting}\" is within a key that has a value; allowed: one of the two");
            table = inner.ok_or_else(taken)?;
        }
        table.insert(last.to_owned(), read.unwrap_or_else(|| value.into()));
    }
    Ok(keys)
}

/// Runs the command with what an earlier run of it read, or records it.
fn stored(line: &Line, settings: Settings) -> Result<Finished, Problem> {
    let unrecorded = |problem: headstart_host::PathError| Some(format!("{problem}; this run is not recorded"));
    let store = match Store::of_user() {
        Ok(store) => store,
        Err(problem) => return plain(line, settings, unrecorded(problem)),
    };
    let Some(slot) = Slot::of(&store, &settings.command) else { return plain(line, settings, None) };
    if line.has("--forget") {
        if let Err(problem) = slot.remove() {
            return plain(line, settings, unrecorded(problem));
        }
    } else {
        match slot.recorded() {
            Err(problem) => return plain(line, settings, unrecorded(problem)),
            Ok(None) => {}
            Ok(Some((path, file))) => {
                store::touch(&file);
                let list = Recording::read_from(&path, file).map_err(|problem| problem.to_string());
                match list.and_then(|recording| hints(&path, &recording)) {
                    Ok(list) => {
                        let mut finished = helped(line, settings, list)?;
                        if let Some(why) = &finished.unfit {
                            finished.report.notes.push(anew(&slot, why));
                        }
                        return Ok(finished);
                    }
                    Err(problem) => return plain(line, settings, Some(anew(&slot, &problem))),
                }
            }
        }
    }
    match slot.turn() {
        Ok(Some(turn)) => recorded(line, settings, &slot, &turn),
        Ok(None) => {
            plain(line, settings, line.has("--verbose").then(|| "another run of this command is recorded".to_owned()))
        }
        Err(problem) => plain(line, settings, unrecorded(problem)),
    }
}

/// Removes a useless recording.
fn anew(slot: &Slot, why: &str) -> String {
    match slot.remove() {
        Ok(()) => format!("the next run is recorded anew: {why}"),
        Err(problem) => format!("{why}; {problem}"),
    }
}

/// The hints of a recording.
fn read(path: &Path) -> Result<HintList, String> {
    Recording::read(path).map_err(|problem| problem.to_string()).and_then(|recording| hints(path, &recording))
}

fn hints(path: &Path, recording: &Recording) -> Result<HintList, String> {
    HintList::try_from(recording).map_err(|problem| format!("{}: {problem}", path.display()))
}

/// Runs the command with these hints, or leaves it alone.
fn helped(line: &Line, mut settings: Settings, list: HintList) -> Result<Finished, Problem> {
    let (of_file, facts) = facts_of(&settings, &list);
    let arms: Vec<bool> = facts.iter().map(|disk| disk.arm).collect();
    let alone = if settings.trusted { None } else { why_alone(&list, &of_file, &arms) };
    if let Some(why) = alone {
        let mut finished = plain(line, settings, None)?;
        finished.report.hinted_bytes = list.pages() * PAGE_BYTES;
        finished.report.stopped = Some(format!("{}{why}", measure::ALONE));
        return Ok(finished);
    }
    settings.list = list;
    Ok(run_whole(settings)?)
}

/// Runs the command and records it.
fn recorded(line: &Line, settings: Settings, slot: &Slot, turn: &store::Turn) -> Result<Finished, Problem> {
    let wanted = record::Settings {
        roots: settings.roots.clone(),
        command: settings.command.clone(),
        cold: line.has("--cold"),
        buffer_kib: record::BUFFER_KIB,
        walk_max: WALK_MAX,
        elapsed_max: Some(RECORD_MAX),
    };
    let mut recorded = match record::begin(&wanted, |_| {}, || true) {
        Ok(recorded) => recorded,
        Err(record::Error::Start { program, source }) => return Err(Error::Start { program, source }.into()),
        Err(problem) => return plain(line, settings, Some(format!("{problem}; this run is not recorded"))),
    };
    let kept = match recorded.failed.take() {
        Some(problem) => Err(problem),
        None => slot.keep(&recorded.recording, turn),
    };
    let status = recorded.wait().map_err(|source| Error::Wait { source })?;
    let mut report = Report::new(settings.row.name);
    report.elapsed_ns = recorded.elapsed_ns();
    match kept {
        Ok((path, bytes)) => report.notes.push(note(&Summary::of(&recorded.recording), bytes, &path)),
        Err(problem) => say(&format!("{problem}; this run is not recorded")),
    }
    Ok(Finished { status, report, unfit: None })
}

fn note(summary: &Summary, bytes: u64, path: &Path) -> String {
    format!(
        "recorded for the next run: {} reads of {} files, {:.1} MB of them from devices; {:.1} kB in {}",
        summary.references,
        summary.files,
        (summary.miss_bytes + summary.metadata_bytes) as f64 / 1e6,
        bytes as f64 / 1e3,
        path.display(),
    )
}

/// Runs the command without help: in place of this process, if nothing is to be reported.
fn plain(line: &Line, settings: Settings, why: Option<String>) -> Result<Finished, Problem> {
    if !line.has("--verbose") {
        why.iter().for_each(|why| say(why));
    }
    sweep_beside(&settings.roots);
    if ["--report", "--openmetrics", "--verbose"].iter().any(|name| line.has(name)) {
        let mut finished = run_whole(settings)?;
        finished.report.notes.clear();
        finished.report.notes.extend(why);
        return Ok(finished);
    }
    let source = Command::new(&settings.command[0]).args(&settings.command[1..]).exec();
    let program = settings.command[0].to_string_lossy().into_owned();
    Err(Error::Start { program, source }.into())
}

/// Reports a panic to the user.
#[must_use]
pub fn fault(panic: &str) -> Status {
    say(&format!("internal error: {}; please report it", panic.split_whitespace().collect::<Vec<_>>().join(" ")));
    Status::Code(FAULT)
}
