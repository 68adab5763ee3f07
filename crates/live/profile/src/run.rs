//! Measures a real device on a thread of its own, so that nothing delays its reads.

use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use headstart_types::KeyError;

use super::{measure, DirectProbe, Error, Phase, Probe, Profile, Progress, Settings};

/// Interval of progress reports.
const REFRESH: Duration = Duration::from_millis(100);
/// Allowed duration of a measurement in seconds.
const SECONDS: std::ops::RangeInclusive<u64> = 1..=110;

/// Measures the block device or file at `path` with direct reads; it never writes. `name` is written into the profile.
/// `tell` is called 10 times a second and returns whether to continue.
///
/// # Errors
/// `path` cannot be read directly or fails, the device is too small, its times are inconclusive, or `tell` stopped it.
pub fn profile(
    path: &Path,
    name: &str,
    settings: &Settings,
    tell: impl FnMut(Progress) -> bool,
) -> Result<Profile, Error> {
    check(settings)?;
    profile_with(&mut DirectProbe::open(path)?, path, name, settings, tell)
}

/// Rejects a duration that is too short or too long.
///
/// # Errors
/// The duration is out of range.
pub fn check(settings: &Settings) -> Result<(), Error> {
    if SECONDS.contains(&(settings.time.0 / 1_000_000_000)) {
        return Ok(());
    }
    let problem = format!("{} is outside", settings.time);
    Err(KeyError::new("time", problem, format!("from {} s to {} s", SECONDS.start(), SECONDS.end())).into())
}

/// Measures `probe` on a thread of its own; errors name `path`.
///
/// # Errors
/// As for [`profile`].
pub fn profile_with(
    probe: &mut (dyn Probe + Send),
    path: &Path,
    name: &str,
    settings: &Settings,
    mut tell: impl FnMut(Progress) -> bool,
) -> Result<Profile, Error> {
    // The progress, and whether to continue.
    let state = Mutex::new((Progress { phase: Phase::Look, share: 0.0 }, true));
    let locked = || state.lock().unwrap_or_else(PoisonError::into_inner);
    thread::scope(|scope| {
        let measuring = scope.spawn(|| {
            probe.begin();
            measure(probe, name, settings, &mut |progress| {
                let mut state = locked();
                state.0 = progress;
                state.1
            })
        });
        while !measuring.is_finished() {
            thread::park_timeout(REFRESH);
            let now = locked().0;
            if !tell(now) {
                locked().1 = false;
            }
        }
        let measured = measuring.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        measured.map_err(|error| match error {
            Error::Unclear { problem, allowed } => Error::path(path, problem, allowed),
            other => other,
        })
    })
}
