//! What hints would save: replays a recorded command on simulated disks, plain and prefetched as by `headstart run`.
//!
//! ```text
//! recording -> program (threads, think times) -+
//! file systems' maps -> places of the pages ---+-> host: page cache, kernel's read-ahead, drives -> elapsed time
//! policy, budget -> machine of `hints` --------+
//! ```
//!
//! - `program.rs`: what the command does; `places.rs`: where its pages lie;
//! - `memory.rs`, `disks.rs`: the page cache, a level of `headstart_engine`, under the kernel's read-ahead, over drives;
//! - `system.rs`: the recorded system in the simulator's terms; `study.rs`: what all runs share;
//! - `host.rs`, `prefetcher.rs`: the command and the readers of prefetches, in virtual time; the code of [`crate`]
//!   decides.
//!
//! Known limits: think times are those of the recording; waits of one thread for another are known only if the other
//! one ends; writes, direct I/O and other programs are left out.

mod disks;
mod host;
mod memory;
mod places;
mod prefetcher;
mod program;
mod report;
mod study;
mod system;
mod text;

use std::collections::BTreeSet;
use std::fs;

use headstart_device::DeviceError;
use headstart_host::Roots;
use headstart_policy::registry::PolicyRow;
use headstart_policy::BlockMap;
use headstart_trace::hints::{RecordedFile, Recording};
use headstart_types::{KeyError, Nanos};
use toml::Table;

use crate::list::{HintList, PAGE_BYTES};
use crate::recorded::identity;
use crate::universe::Universe;
use crate::Error as HintsError;

use host::Times;
use report::{recommended, SCHEMA};
use study::Study;

pub use places::DiskFound;
pub use report::{DiskUsed, Forecast, Recommendation, Row, BENEFIT_MIN};

/// The smallest budget tried.
const BUDGET_BYTES_MIN: u64 = 8 << 20;
/// Maximum references to pages that are replayed: 64 GiB of pages.
const PAGES_MAX: u64 = 1 << 24;
/// Maximum number of budgets tried by default: up to 16 GiB.
const BUDGETS_MAX: usize = 12;

/// Time to open a file and to ask where it lies or what of it is cached: 40 to 55 us were measured (ext4, Linux 6.18,
/// inodes cached as pages).
pub const OPEN: Nanos = Nanos(50_000);

/// The parameters of a forecast.
#[derive(Clone)]
pub struct Settings {
    /// The device that the recorded run waited for most: name or path of a profile, and keys that override it; `None`:
    /// guessed from its waits and from what the system says.
    pub device: Option<(String, Table)>,
    /// The scheduler of its queue; `None`: the kernel's current one.
    pub scheduler: Option<String>,
    /// Hinted policies; empty: all that work with `headstart run`.
    pub policies: Vec<&'static PolicyRow>,
    /// Maximum bytes prefetched and not yet used; empty: from 8 MiB up to what the hints need, doubling.
    pub budgets: Vec<u64>,
    /// The kernel's read-ahead; `None`: its current setting.
    pub read_ahead_bytes: Option<u64>,
    /// Like `headstart run --trust`.
    pub trusted: bool,
    /// The hints to prefetch from if they are not the recording itself: an older recording, or a wrong one.
    pub hints: Option<Recording>,
    /// Every page is in the page cache at the start: only thinking remains.
    pub cached: bool,
    /// Processor time that a prefetching thread needs to open a file; zero if that does not matter.
    pub open: Nanos,
    /// Where the system's virtual file systems are.
    pub roots: Roots,
}

/// Why there is no forecast.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The device.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// A policy or the scheduler.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The recording.
    #[error(transparent)]
    Hints(#[from] HintsError),
    /// It has no reads.
    #[error("nothing was read; allowed: a recording with at least one read")]
    Empty,
    /// It has more pages than are played.
    #[error("{0} pages were read; allowed: up to {PAGES_MAX}")]
    Pages(u64),
}

/// Forecasts the command of `recording`. Calls `between` between runs; if it returns false, the forecast ends early
/// with the runs so far.
///
/// # Errors
/// The device, the scheduler or a policy is invalid, or the recording is unusable.
pub fn forecast(
    recording: &Recording,
    settings: &Settings,
    mut between: impl FnMut(f64) -> bool,
) -> Result<Forecast, Error> {
    let recording = &within_files(recording)?;
    let hints = settings.hints.as_ref().map(within_files).transpose()?;
    let hints = hints.as_ref().unwrap_or(recording);
    let list = HintList::try_from(hints)?;
    let own: BTreeSet<_> = recording.files.iter().map(identity).collect();
    let mut both = recording.clone();
    both.files.extend(hints.files.iter().filter(|file| !own.contains(&identity(file))).cloned());
    let mut study = Study::try_new(&both, recording.files.len(), settings, list)?;
    let compute_ns = study.host(None, true, None)?.run("", None).elapsed_ns;
    let (plain, times) = study.plain(None)?;
    let demand = study.plain(Some(0))?.0.beside(&plain);
    if settings.hints.is_none() {
        study.list = HintList::try_from(&timed(recording, &times, plain.elapsed_ns))?;
    }
    let universe = Universe::new(&study.list, study.disk_of_hint.clone(), &study.in_order_left());
    let hinted_bytes = universe.blocks() as u64 * PAGE_BYTES;
    let policies = study.policies()?;
    let budgets = budgets(settings, hinted_bytes);
    let (mut rows, runs) = (Vec::new(), policies.len() * budgets.len());
    for row in policies {
        for budget_bytes in &budgets {
            if !between(rows.len() as f64 / runs as f64) {
                break;
            }
            rows.push(study.hinted(row, *budget_bytes)?.beside(&plain));
        }
    }
    let mut notes = std::mem::take(&mut study.notes);
    if !recording.about.cold {
        notes.push(format!(
            "recorded with caches as they were: the forecast is for an empty cache of {}, and metadata that was cached is missing",
            study.places.disks[study.main].shown()
        ));
    }
    let lost = recording.about.lost_events;
    if lost > 0 {
        notes.push(format!("the kernel has dropped {lost} events while recording: reads may be missing"));
    }
    Ok(Forecast {
        schema: SCHEMA,
        version: env!("CARGO_PKG_VERSION"),
        command: recording.about.command.clone(),
        devices: study.templates.iter().map(|each| each.used.clone()).collect(),
        trusted: settings.trusted,
        recorded_ns: recording.about.elapsed_ns,
        hinted_bytes,
        compute_ns,
        lower_bound_ns: study.lower_bound_ns(compute_ns),
        plain,
        demand,
        recommendation: recommended(&rows),
        rows,
        notes,
    })
}

/// The recording without pages beyond the ends of its files, by the smaller of the recorded and the current size.
///
/// # Errors
/// The recording has no reads, or too many pages.
fn within_files(recording: &Recording) -> Result<Recording, Error> {
    let mut recording = recording.clone();
    let now =
        |file: &RecordedFile| fs::metadata(&file.path).ok().filter(fs::Metadata::is_file).map(|found| found.len());
    let sizes: Vec<u64> =
        recording.files.iter().map(|file| now(file).map_or(file.size_bytes, |now| now.min(file.size_bytes))).collect();
    recording.cut(&sizes);
    let pages: u64 = recording.references().map(|read| u64::from(read.pages)).sum();
    match pages {
        0 => Err(Error::Empty),
        1..=PAGES_MAX => Ok(recording),
        _ => Err(Error::Pages(pages)),
    }
}

/// The recording as if made on the simulated devices: what is prefetched on them was recorded on them.
///
/// # Errors
/// See [`forecast`].
pub fn as_simulated(recording: &Recording, settings: &Settings) -> Result<Recording, Error> {
    let recording = &within_files(recording)?;
    let list = HintList::try_from(recording)?;
    let study = Study::try_new(recording, recording.files.len(), settings, list)?;
    let (plain, times) = study.plain(None)?;
    Ok(timed(recording, &times, plain.elapsed_ns))
}

/// The recording with other times.
fn timed(recording: &Recording, times: &Times, elapsed_ns: u64) -> Recording {
    let mut timed = recording.clone();
    timed.about.elapsed_ns = elapsed_ns;
    for read in &mut timed.reads {
        if let Some((begun, done)) = times.get(&(read.file, read.start)) {
            (read.time_ns, read.wait_ns) = (begun.0, (*done - *begun).0);
        }
    }
    timed
}

/// From the smallest up to what the hints need, doubling.
fn budgets(settings: &Settings, hinted_bytes: u64) -> Vec<u64> {
    if !settings.budgets.is_empty() {
        return settings.budgets.clone();
    }
    let mut budgets = vec![BUDGET_BYTES_MIN];
    while budgets.len() < BUDGETS_MAX && budgets[budgets.len() - 1] < hinted_bytes {
        budgets.push(budgets[budgets.len() - 1] * 2);
    }
    budgets
}
