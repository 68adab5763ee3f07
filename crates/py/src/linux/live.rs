//! Plays parallel programs with real threads.

use std::path::PathBuf;
use std::time::Duration;

use headstart_host::RealClock;
use headstart_parallel::{run, workers, Error as LiveError};
use headstart_sim::{playable, played, Progress, Scenario};
use headstart_types::KeyError;
use pyo3::prelude::*;

use crate::errors::{outside, to_python};
use crate::simulation::{described, heeded, source};

/// Useful speeds: a slower run would not end, a faster one exceeds any machine.
const SPEEDS: std::ops::RangeInclusive<f64> = 0.01..=1000.0;

/// Maximum mean lateness of waits, as a share of a disk's service time, before the result has a note.
const LATE_MAX: f64 = 0.02;

/// Plays the parallel program of a scenario (as for `simulate`) with a thread per process and disk, at `speed` times
/// its own speed, and returns measurements as JSON of the same form. `on_progress` is called about 20 times a second;
/// the run stops with the exception that it raises, and on Ctrl-C.
#[pyfunction]
#[pyo3(signature = (*, path=None, json=None, overrides=Vec::new(), speed=1.0, on_progress=None))]
pub fn play(
    py: Python<'_>,
    path: Option<PathBuf>,
    json: Option<String>,
    overrides: Vec<String>,
    speed: f64,
    on_progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let source = source(path, json);
    if !SPEEDS.contains(&speed) {
        let allowed = format!("a number from {} to {}", SPEEDS.start(), SPEEDS.end());
        return Err(to_python(KeyError::new("speed", format!("{speed} is out of range"), allowed)));
    }
    outside(py, described(&source, &overrides), || {
        let scenario = Scenario::read(&source, &overrides).map_err(to_python)?;
        let (setup, places, description) = playable(&scenario).map_err(to_python)?;
        let service = Duration::from_nanos(setup.service.0).div_f64(speed);
        let clock = RealClock::new(workers(&setup), speed);
        let is_stop = |error: &LiveError| matches!(error, LiveError::Stopped);
        let outcome = heeded(on_progress.as_ref(), is_stop, |told| {
            run(setup, places, &clock, &mut |share, references| told(Progress { share, references }))
        })?;
        let mut report = played(&scenario, description, &outcome);
        report.notes.extend(notes(speed, service, &clock));
        serde_json::to_string(&report).map_err(to_python)
    })?
}

/// Notes for readers of measured times. `service`: real service time of a disk.
fn notes(speed: f64, service: Duration, clock: &RealClock) -> Vec<String> {
    let late = clock.lateness();
    let faster = if speed == 1.0 { String::new() } else { format!(" at {speed} times the speed") };
    let mut notes = vec![format!(
        "played by real threads{faster}: times are measured; waits ended {:.3} ms late on average, {:.3} ms at most",
        late.mean.as_secs_f64() * 1e3,
        late.most.as_secs_f64() * 1e3,
    )];
    if late.mean > service.mul_f64(LATE_MAX) {
        let problem = "more than 2 % of a fetch: this machine does not keep times that short";
        notes.push(format!("waits ended late by {problem}; a slower speed is more exact"));
    }
    notes
}
