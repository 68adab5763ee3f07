//! What hints would save: a recorded command played on simulated disks, plain and as `headstart run` prefetches for it.
//!
//! ```text
//! recording -> program (threads, think times) -+
//! file systems' maps -> places of the pages ---+-> host: page cache, kernel's read-ahead, drives -> elapsed time
//! policy, budget -> machine of `hints` --------+
//! ```
//!
//! - `program.rs`: what the command does; `places.rs`: where its pages lie;
//! - `memory.rs`, `storage.rs`: page cache and read-ahead of the kernel, over simulated drives;
//! - `system.rs`: the recorded system, in the terms of the simulator; `study.rs`: what all runs share;
//! - `host.rs`: the command, and the readers of prefetches, in virtual time; what decides is the code of [`crate`].
//!
//! Known limits: think times are those of the recording; threads that wait for one another are known only where one ends; writes,
//! direct I/O and other programs are left out.

mod host;
mod memory;
mod places;
mod program;
mod report;
mod storage;
mod study;
mod system;
mod text;

use std::collections::BTreeMap;
use std::fs;

use headstart_device::DeviceError;
use headstart_host::Roots;
use headstart_policy::registry::PolicyRow;
use headstart_policy::BlockMap;
use headstart_trace::hints::{FileKind, RecordedFile, Recording};
use headstart_types::{KeyError, Nanos};
use toml::Table;

use crate::list::{HintList, PAGE_BYTES};
use crate::universe::Universe;
use crate::Error as HintsError;

use host::Times;
use study::Study;

pub use places::DiskFound;
pub use report::{DiskUsed, Forecast, Recommendation, Row, BENEFIT_MIN};

/// The smallest budget of those that are tried.
const BUDGET_BYTES_MIN: u64 = 8 << 20;
/// References to pages that are played at most: 64 GiB of pages.
const PAGES_MAX: u64 = 1 << 24;
/// Budgets that are tried where none are given: up to 16 GiB.
const BUDGETS_MAX: usize = 12;

/// What it takes to open a file, and to ask where it lies or what of it is cached: 40 to 55 us were measured (ext4, Linux 6.18, inodes
/// cached as pages).
pub const OPEN: Nanos = Nanos(50_000);

/// What is asked.
#[derive(Clone)]
pub struct Settings {
    /// The device that the recorded run has waited for most, by name or path of a profile, and keys laid over it; `None`: by its waits
    /// and what the system says.
    pub device: Option<(String, Table)>,
    /// What orders its queue; `None`: as the kernel's scheduler is set.
    pub scheduler: Option<String>,
    /// Hinted policies; empty: all that work with `headstart run`.
    pub policies: Vec<&'static PolicyRow>,
    /// Bytes prefetched and not yet used, at most; empty: from 8 MiB up to what the hints need, doubling.
    pub budgets: Vec<u64>,
    /// The kernel's read-ahead; `None`: as it is set.
    pub read_ahead_bytes: Option<u64>,
    /// As `headstart run --trust`.
    pub trusted: bool,
    /// What is prefetched, where that is not what the recording says: an older recording, or a wrong one.
    pub hints: Option<Recording>,
    /// Every page is in the page cache at first: what remains is thinking.
    pub cached: bool,
    /// What a thread that prefetches takes of the processor to open a file; zero where that does not matter.
    pub open: Nanos,
    /// Where the system shows itself.
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

/// Forecasts the command of `recording`. `between` is called between runs; false ends it early, and what has been run by then
/// is forecast.
///
/// # Errors
/// The device, the scheduler or a policy is not as it should be, or the recording is of no use.
pub fn forecast(
    recording: &Recording,
    settings: &Settings,
    mut between: impl FnMut(f64) -> bool,
) -> Result<Forecast, Error> {
    let recording = &within_files(recording)?;
    let hints = settings.hints.as_ref().map(within_files).transpose()?;
    let hints = hints.as_ref().unwrap_or(recording);
    let list = HintList::try_from(hints)?;
    let (files, of_hints) = joined(&recording.files, &hints.files);
    let both = Recording { files, ..recording.clone() };
    let recorded = hinted(hints).map(|file| of_hints[file as usize]).collect();
    let mut study = Study::try_new(&both, recording.files.len(), settings, list, recorded)?;
    let compute = study.host(true, None)?.run(None).elapsed;
    let (demand, _) = study.plain(Some(0))?;
    let (plain, times) = study.plain(None)?;
    if settings.hints.is_none() {
        study.list = HintList::try_from(&timed(recording, &times, plain.elapsed_ns))?;
    }
    let universe = Universe::new(&study.list, study.disk_of_hint.clone(), &study.in_order_left());
    let hinted_bytes = universe.blocks() as u64 * PAGE_BYTES;
    let policies = study.policies(settings)?;
    let budgets = budgets(settings, hinted_bytes);
    let (mut rows, runs) = (Vec::new(), policies.len() * budgets.len());
    for row in policies {
        for budget_bytes in &budgets {
            if !between(rows.len() as f64 / runs as f64) {
                break;
            }
            rows.push(study.hinted(row, *budget_bytes, &plain)?);
        }
    }
    let mut notes = std::mem::take(&mut study.notes);
    if !recording.about.cold {
        notes.push(format!(
            "recorded with caches as they were: the forecast is for an empty cache of {}, and metadata that was cached is missing",
            study.places.disks[study.main].shown()
        ));
    }
    if recording.about.lost_events > 0 {
        notes.push(format!(
            "the kernel has dropped {} events while recording: reads may be missing",
            recording.about.lost_events
        ));
    }
    let bound = study.lower_bound(compute);
    Ok(Forecast::new(
        recording,
        study.disks_used(),
        (hinted_bytes, compute, bound),
        (plain, demand),
        rows,
        (settings.trusted, notes),
    ))
}

/// The recording without pages beyond the ends of its files: as large as those were, or as they are if that is less.
///
/// # Errors
/// It has no reads, or too many pages.
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

/// The recording as it would be of the simulated devices: what is prefetched on them has been recorded on them.
///
/// # Errors
/// As [`forecast`].
pub fn as_simulated(recording: &Recording, settings: &Settings) -> Result<Recording, Error> {
    let recording = &within_files(recording)?;
    let list = HintList::try_from(recording)?;
    let study = Study::try_new(recording, recording.files.len(), settings, list, hinted(recording).collect())?;
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

/// All files of both, and which of them each of the second is.
fn joined(files: &[RecordedFile], more: &[RecordedFile]) -> (Vec<RecordedFile>, Vec<u32>) {
    let identity = |file: &RecordedFile| (file.major, file.minor, file.inode, file.kind == FileKind::Device);
    let (mut all, mut place) = (files.to_vec(), BTreeMap::new());
    place.extend((0u32..).zip(files).map(|(at, file)| (identity(file), at)));
    let of_more = more.iter().map(|file| {
        *place.entry(identity(file)).or_insert_with(|| {
            all.push(file.clone());
            all.len() as u32 - 1
        })
    });
    let of_more = of_more.collect();
    (all, of_more)
}

/// The files that [`HintList`] has, in its order: without those that cannot be read ahead.
fn hinted(hints: &Recording) -> impl Iterator<Item = u32> + '_ {
    let is_hinted = |file: &RecordedFile| file.kind != FileKind::Other && !file.path.as_os_str().is_empty();
    (0u32..).zip(&hints.files).filter(move |(_, file)| is_hinted(file)).map(|(at, _)| at)
}

/// Doubling from the least up to what the hints need.
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
